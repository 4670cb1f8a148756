"""Parts of a model that must fit each other."""

import numpy as np
import pytest
from sklearn.base import clone

from okforest import OKBoost, OKNeighbors, OKRidge, OKTree
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


@pytest.mark.parametrize(
    ("model", "name", "value", "message"),
    [
        (OKNeighbors(), "inputs_", X[:, :2], r"inputs_ has shape \(20, 2\)"),
        (OKNeighbors(), "inputs_", ["a"], "inputs_ holds no numbers"),
        (OKNeighbors(), "row_weight_", np.ones((20, 1)), r"row_weight_ has shape \(20, 1\)"),
        (OKNeighbors(), "outputs_", X[:5], "outputs_ has 5 entries, not 20"),
        (OKRidge(), "dual_", np.ones(3), r"dual_ has shape \(3,\)"),
        (OKRidge(), "dual_", np.eye(20, dtype=int), "dual_ holds no numbers"),
        (OKRidge(), "dual_", np.ones((20, 19)), "outputs_ has 20 entries, not 19"),
        (OKRidge(), "inputs_", X[:5], r"inputs_ has shape \(5, 3\)"),
        (OKRidge(), "landmarks_", np.arange(3), "landmarks_ has 3 entries, not 20"),
        (OKRidge(n_components=2), "basis_", np.ones((3, 20)), "basis_ has 3 rows, not 2"),
        (OKRidge(n_components=2), "basis_", np.ones((2, 9)), "outputs_ has 20 entries, not 9"),
        (OKRidge(), "n_features_in_", 0, "n_features_in_ is 0"),
        (OKRidge(), "kernel_", "rbf", "kernel_ is no kernel"),
    ],
)
def test_models_without_trees(model, name, value, message):
    """Shapes of arrays agree."""
    model = clone(model).fit(X, X)
    check_model(model)
    setattr(model, name, value)
    with pytest.raises(ValueError, match=message):
        check_model(model)


def test_distances_of_as_many_rows():
    """With precomputed distances there are as many weights as columns."""
    model = OKNeighbors(metric="precomputed").fit(np.ones((20, 20)), X)
    check_model(model)
    model.row_weight_ = np.ones(3)
    with pytest.raises(ValueError, match="row_weight_ has 3 entries, not 20"):
        check_model(model)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("row_weight_", np.ones(19), "trees_ are of other rows or rounds"),
        ("scales_", np.ones(2), r"scales_ has shape \(2,\)"),
        ("n_estimators_", 2, r"scales_ has shape \(3,\)"),
        ("training_leaves_", np.ones((3, 20)), "training_leaves_ holds no whole numbers"),
        ("training_leaves_", np.zeros((3, 9), np.uint8), "training_leaves_ are not one of"),
        ("training_leaves_", np.full((3, 20), 99, np.uint8), "training_leaves_ are not one of"),
        ("leaf_means_", np.ones((5, 3)), "leaf_means_ has 5 entries, not 9"),
        ("leaf_weights_", np.ones((9, 3)), r"leaf_weights_ has shape \(9, 3\)"),
        ("outputs_", X[:5], "outputs_ has 5 entries, not 20"),
    ],
)
def test_boosting(name, value, message):
    """Rounds, leaves and rows agree."""
    model = OKBoost(3, max_splits=2).fit(X, X)
    check_model(model)
    setattr(model, name, value)
    with pytest.raises(ValueError, match=message):
        check_model(model)


def test_boosted_leaves_share_out_their_members():
    """Every member of a tree is in one leaf."""
    model = OKBoost(3, max_splits=2).fit(X, X)
    leaf = np.flatnonzero(model.trees_.left < 0)[0]
    end = model.trees_.end.copy()
    end[leaf] -= 1
    object.__setattr__(model.trees_, "end", end)
    with pytest.raises(ValueError, match="do not share out its members"):
        check_model(model)
