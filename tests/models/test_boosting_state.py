"""Checks of the fitted attributes of boosted models, as after loading a damaged file."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression

from okforest import DirectionBase, OKBoost, OKExtraTrees, OKNeighbors, OKRidge, OKTree
from okforest.kernels import RBF

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 3))
MODELS = {
    "features": OKBoost(3, max_splits=2),
    "gram": OKBoost(3, max_splits=2, kernel=RBF(1.0)),
    "factor": OKBoost(3, max_splits=2, kernel=RBF(1.0), embedding="factor"),
    "subsample": OKBoost(3, max_splits=2, subsample=0.5, n_iter_no_change=5),
    "neighbours": OKBoost(3, base=OKNeighbors(3)),
    "ridge": OKBoost(3, kernel=RBF(1.0), base=OKRidge()),
    "forest": OKBoost(3, base=OKExtraTrees(2)),
    "boosting": OKBoost(3, base=OKBoost(2)),
    "direction": OKBoost(3, base=DirectionBase(OKTree(max_depth=2))),
    "regressor": OKBoost(3, base=DirectionBase(LinearRegression())),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_fitted_models_are_valid(model):
    """Also after compact, which drops attributes."""
    model.fit(X, X).check_state()
    model.compact().check_state()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("n_features_in_", 0, "n_features_in_ is 0"),
        ("n_estimators_", 2, r"scales_ has shape \(3,\)"),
        ("n_estimators_", 0, "n_estimators_ is 0"),
        ("n_estimators_", 3.0, "n_estimators_ is 3.0"),
        ("bases_", [], "there are both trees_ and bases_, or neither"),
        ("row_weight_", np.ones(9), "outputs_ has 20 entries, not 9"),
        (
            "row_weight_",
            np.ones(20, int),
            "row_weight_ is an array of int64, not an array of floats",
        ),
        ("row_weight_", np.zeros(20), "row_weight_ has no positive entry"),
        ("row_weight_", np.full(20, -1.0), "row_weight_ has entries that are not numbers ≥ 0"),
        ("row_weight_", np.full(20, np.nan), "row_weight_ has entries that are not numbers ≥ 0"),
        ("scales_", np.ones((3, 1)), r"scales_ has shape \(3, 1\)"),
        ("train_loss_", np.ones(2), r"train_loss_ has shape \(2,\)"),
        ("oob_improvement_", np.ones(2), r"oob_improvement_ has shape \(2,\)"),
        ("held_out_", np.zeros(3, bool), "held_out_ has 3 entries, not 20"),
        ("outputs_", X[:5], "outputs_ has 5 entries, not 20"),
        ("outputs_", [*X], r"outputs_ is \[array.*, not an array"),
        ("kernel_", "linear", "kernel_ is .linear., not an OutputKernel"),
        ("trees_", 3, "trees_ is 3, not a Trees"),
        (
            "training_leaves_",
            np.ones((3, 20)),
            "of float64, not an array of integers",
        ),
        ("training_leaves_", np.zeros((3, 9), np.uint8), "does not hold a leaf of each tree"),
        ("training_leaves_", np.full((3, 20), 3, np.uint8), "does not hold a leaf of each tree"),
        ("leaf_means_", np.ones((5, 3)), r"leaf_means_ has shape \(5, 3\)"),
        ("leaf_means_", np.ones((9, 2)), r"leaf_means_ has shape \(9, 2\)"),
        ("leaf_coefficients_", np.ones((9, 3)), r"leaf_coefficients_ has shape \(9, 3\)"),
    ],
)
def test_damaged_attributes(name, value, message):
    """Rounds, leaves and rows must agree."""
    model = OKBoost(3, max_splits=2).fit(X, X)
    setattr(model, name, value)
    with pytest.raises(ValueError, match=message):
        model.check_state()


def test_neither_trees_nor_bases():
    """A model has one or the other."""
    model = OKBoost(3).fit(X, X)
    del model.trees_
    with pytest.raises(ValueError, match="there are both trees_ and bases_, or neither"):
        model.check_state()


def test_trees_of_a_different_model():
    """Their number and their training rows must agree with the model."""
    model = OKBoost(3, max_splits=2).fit(X, X)
    for other in (OKBoost(4, max_splits=2).fit(X, X), OKBoost(3, max_splits=2).fit(X[:9], X[:9])):
        model.trees_ = other.trees_
        with pytest.raises(ValueError, match=r"trees_ do not match|outputs_ has 20 entries, not 9"):
            model.check_state()


@pytest.mark.parametrize("shift", ["shorter", "shorter at the end", "overlapping"])
def test_leaves_partition_their_members(shift):
    """Every member of a tree is in one leaf, in the first tree and in the last."""
    for tree in (0, 2):
        model = OKBoost(3, max_splits=2, random_state=0).fit(X, X)
        trees = model.trees_
        begin, end = trees.begin.copy(), trees.end.copy()
        nodes = np.arange(trees.node_offsets[tree], trees.node_offsets[tree + 1])
        first, second, last = nodes[trees.left[nodes] < 0][
            np.argsort(begin[nodes][trees.left[nodes] < 0])
        ]
        if shift == "shorter":
            end[first] -= 1
        elif shift == "shorter at the end":
            end[last] -= 1
        else:
            begin[second], end[second] = begin[first], begin[first] + (end - begin)[second]
        object.__setattr__(trees, "begin", begin)
        object.__setattr__(trees, "end", end)
        with pytest.raises(ValueError, match="the leaves of a tree do not partition its members"):
            model.check_state()


class Own(BaseEstimator):
    """A base learner without checks of its own."""

    def fit(self, X, R, sample_weight=None):
        self.outputs_, self.coefficients_ = "of any kind", np.ones(3)
        return self

    def predict_weights(self, X):
        return np.full((len(X), 20), 1 / 20)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda model: model.bases_.pop(), "bases_ has 2 entries, not 3"),
        (lambda model: setattr(model, "bases_", (1, 2, 3)), r"bases_ is \(1, 2, 3\), not a list"),
        (lambda model: model.bases_.__setitem__(1, 3), "of type int, which has no predict_weights"),
        (lambda model: setattr(model, "inputs_", X[:, :2]), r"inputs_ has shape \(20, 2\)"),
        (
            lambda model: setattr(model.bases_[2], "row_weight_", 3),
            "row_weight_ is 3, not an array of floats",
        ),
        (
            lambda model: model.bases_.__setitem__(0, OKNeighbors(3).fit(X[:9], X[:9])),
            "outputs_ has 9 entries, not 20",
        ),
        (
            lambda model: model.bases_.__setitem__(
                0, DirectionBase(LinearRegression()).fit(X[:9], X[:9])
            ),
            "coefficients_ has 9 entries, not 20",
        ),
    ],
)
def test_damaged_bases(damage, message):
    """Base learners check themselves, and were fitted to the rows of the model."""
    model = OKBoost(3, base=OKNeighbors(3)).fit(X, X)
    damage(model)
    with pytest.raises(ValueError, match=message):
        model.check_state()


def test_bases_of_users_need_no_check():
    """What they keep in their attributes is their business."""
    OKBoost(2, base=Own()).fit(X, X).check_state()
