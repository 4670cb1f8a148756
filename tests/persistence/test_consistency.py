"""Parts of a model that must fit each other."""

import numpy as np
import pytest

from okforest import OKTree
from okforest.persistence.consistency import check_model

X = np.random.default_rng(0).normal(size=(20, 3))


def test_categories():
    """The trees' numbers of categories are those of the categories."""
    model = OKTree().fit(X, X)
    object.__setattr__(model.trees_, "n_categories", np.array([0, 2, 0], np.int32))
    model.categories_ = [None, np.array(["a", "b"]), None]
    check_model(model)
    for categories in ([None, np.array(["a"]), None], [None, None, None]):
        model.categories_ = categories
        with pytest.raises(ValueError, match="categories_ and the trees' n_categories differ"):
            check_model(model)
