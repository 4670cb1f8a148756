"""Each model checks that its fitted attributes fit each other."""

import numpy as np
import pytest
from sklearn.base import clone

from okforest import OKNeighbors, OKRidge, OKTree
from okforest.kernels import Precomputed

X = np.random.default_rng(0).normal(size=(20, 3))


def test_categories():
    """The trees have as many categories as categories_."""
    model = OKTree().fit(X, X)
    object.__setattr__(model.trees_, "n_categories", np.array([0, 2, 0], np.int32))
    model.categories_ = [None, np.array(["a", "b"]), None]
    model.check_state()
    for categories in ([None, np.array(["a"]), None], [None, None, None]):
        model.categories_ = categories
        with pytest.raises(ValueError, match="categories_ and the trees' n_categories differ"):
            model.check_state()


@pytest.mark.parametrize(
    ("model", "name", "value", "message"),
    [
        (OKNeighbors(), "inputs_", X[:, :2], r"inputs_ has shape \(20, 2\)"),
        (OKNeighbors(), "inputs_", ["a"], r"inputs_ is \['a'\], not an array or a csr_array"),
        (OKNeighbors(), "row_weight_", np.ones((20, 1)), r"row_weight_ has shape \(20, 1\)"),
        (OKNeighbors(), "outputs_", X[:5], "outputs_ has 5 entries, not 20"),
        (OKRidge(), "dual_", np.ones(3), r"dual_ has shape \(3,\)"),
        (
            OKRidge(),
            "dual_",
            np.eye(21, dtype=int),
            "dual_ is an array of int64, not an array of floats",
        ),
        (OKRidge(), "dual_", np.ones((21, 19)), "outputs_ has 20 entries, not 19"),
        (OKRidge(), "inputs_", X[:5], r"inputs_ has shape \(5, 3\)"),
        (OKRidge(), "landmarks_", np.arange(3), "landmarks_ has 3 entries, not 20"),
        (OKRidge(), "input_mean_", np.ones(3), r"input_mean_ has shape \(3,\)"),
        (OKRidge(n_components=2), "basis_", np.ones((4, 20)), "basis_ has 4 entries, not 3"),
        (OKRidge(n_components=2), "basis_", np.ones((3, 9)), "outputs_ has 20 entries, not 9"),
        (OKRidge(), "n_features_in_", 0, "n_features_in_ is 0"),
        (OKRidge(), "kernel_", "rbf", "kernel_ is 'rbf', not an OutputKernel"),
    ],
)
def test_models_without_trees(model, name, value, message):
    """Shapes of arrays agree."""
    model = clone(model).fit(X, X)
    model.check_state()
    setattr(model, name, value)
    with pytest.raises(ValueError, match=message):
        model.check_state()


def test_precomputed_distances():
    """With precomputed distances there are as many weights as columns."""
    model = OKNeighbors(metric="precomputed").fit(np.ones((20, 20)), X)
    model.check_state()
    model.row_weight_ = np.ones(3)
    with pytest.raises(ValueError, match="row_weight_ has 3 entries, not 20"):
        model.check_state()


@pytest.mark.parametrize(
    ("model", "y", "outputs"),
    [
        (OKTree(), np.arange(20.0), np.array(["a"] * 20)),
        (OKTree(kernel=Precomputed(np.eye(20))), np.arange(20), np.full(20, 10**6)),
    ],
    ids=["text", "positions"],
)
def test_outputs_fit_the_kernel(model, y, outputs):
    """The kernel checks outputs of a file as it checks outputs of a user."""
    model = model.fit(X, y)
    model.check_state()
    model.outputs_ = outputs
    with pytest.raises(ValueError, match="outputs_ do not fit kernel_"):
        model.check_state()
