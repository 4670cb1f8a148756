"""The smallest leaf: given by the user, or the kernel's own choice."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import okforest
from okforest import (
    OKBagging,
    OKBoost,
    OKEnsemble,
    OKExtraTrees,
    OKRandomForest,
    OKTotallyRandomTrees,
    OKTree,
)
from okforest.kernels import Linear, Normalized, OutputKernel, Tuples
from okforest.survival import Survival

MODELS = [OKTree, OKExtraTrees, OKRandomForest, OKBagging, OKTotallyRandomTrees]
rng = np.random.default_rng(0)
X = rng.normal(size=(120, 3))
TIMES = np.rec.fromarrays([rng.random(120) < 0.7, np.exp(X[:, 0])], names="event,time")


class Overlap(OutputKernel):
    """A user's kernel, which has no opinion on leaves."""

    def check(self, y):
        """Return numbers."""
        return np.asarray(y, dtype=float)

    def __call__(self, y, z=None):
        """Return the Gram matrix."""
        return np.minimum.outer(y, y if z is None else z)


class LargeLeaves(Overlap):
    """A user's kernel with a default for trees."""

    default_min_samples_leaf = 7


def small(model, **parameters):
    size = {} if model is OKTree else {"n_estimators": 5}
    return model(**size | {"random_state": 0} | parameters)


def smallest_leaf(trees):
    return float(trees.weight[trees.left < 0].min())


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_survival_leaves_hold_ten_cases(model):
    """Survival trees have leaves of 10, and equal trees of min_samples_leaf=10 node for node."""
    forest = small(model, kernel="survival").fit(X, TIMES)
    assert forest.min_samples_leaf_ == 10
    assert smallest_leaf(forest.trees_) >= 10
    explicit = small(model, kernel="survival", min_samples_leaf=10).fit(X, TIMES)
    for name in ("feature", "threshold", "left"):
        np.testing.assert_array_equal(getattr(forest.trees_, name), getattr(explicit.trees_, name))
    full = small(model, kernel="survival", min_samples_leaf=1).fit(X, TIMES)
    assert full.min_samples_leaf_ == 1
    assert len(full.trees_.feature) > len(forest.trees_.feature)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_other_trees_are_grown_fully(model):
    """Other kernels, and a user's without the attribute, have leaves of one row."""
    for kernel in ("linear", Overlap()):
        forest = small(model, kernel=kernel).fit(X, np.exp(X[:, 0]))
        assert forest.min_samples_leaf_ == 1
        assert smallest_leaf(forest.trees_) == 1


KERNELS = {
    "user's": (LargeLeaves(), 7),
    "scaled": (2.0 * Survival(), 10),
    "normalized": (Normalized("survival"), 10),
    "sum": (Survival(16) + 0.5 * Survival(), 10),
    "product": (LargeLeaves() * Linear(), 7),
    "tuples": (Tuples(["survival", "linear"]), 1),
}


@pytest.mark.parametrize(("kernel", "expected"), KERNELS.values(), ids=KERNELS)
def test_kernels_pass_it_on(kernel, expected):
    """A kernel made of kernels on the same outputs takes the largest of their values."""
    assert kernel.default_min_samples_leaf == expected
    assert clone(kernel).default_min_samples_leaf == expected


def test_without_outputs():
    """The kernel decides also for trees that are grown without outputs."""
    trees = OKTotallyRandomTrees(3, kernel="survival", random_state=0).fit(X)
    assert trees.min_samples_leaf_ == 10


def test_ensembles_and_boosting():
    """Models of an ensemble take the value for its kernel; boosting has its own default."""
    model = OKEnsemble([OKExtraTrees(3), OKTree(min_samples_leaf=4)], kernel="survival")
    first, second = model.fit(X, TIMES).estimators_
    assert (first.min_samples_leaf_, second.min_samples_leaf_) == (10, 4)
    assert OKBoost(kernel="survival").min_samples_leaf == 1


def test_life(tmp_path):
    """Parameters, clones, searches and files keep "auto" and the value it stood for."""
    forest = OKExtraTrees(3, kernel="survival", random_state=0)
    assert clone(forest).get_params()["min_samples_leaf"] == "auto"
    search = GridSearchCV(forest, {"min_samples_leaf": ["auto", 2, 0.5]}, cv=3).fit(X, TIMES)
    assert search.cv_results_["rank_test_score"].shape == (3,)
    okforest.save(forest.fit(X, TIMES), tmp_path / "model")
    loaded = okforest.load(tmp_path / "model")
    assert (loaded.min_samples_leaf, loaded.min_samples_leaf_) == ("auto", 10)
    half = OKExtraTrees(3, kernel="survival", min_samples_leaf=0.5).fit(X, TIMES)
    assert half.min_samples_leaf_ == 60


def test_no_other_words():
    """Other words raise an error, and boosting has no "auto"."""
    with pytest.raises(ValueError, match=r"a str among \{'auto'\}"):
        OKTree(min_samples_leaf="all").fit(X, X[:, 0])
    with pytest.raises(ValueError, match="'min_samples_leaf' parameter of OKBoost"):
        OKBoost(min_samples_leaf="auto").fit(X, X[:, 0])
