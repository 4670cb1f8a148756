"""Prototypes of predictions, and permutation importances."""

import numpy as np
import pytest
from sklearn.inspection import permutation_importance

from okforest import OKBagging, OKBoost, OKExtraTrees, OKRidge, OKTotallyRandomTrees, OKTree
from okforest.inspection import prototypes
from okforest.kernels import Precomputed
from okforest.metrics import kernel_loss_scorer, kernel_r2_scorer, output_loss_scorer

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 0]]
NEW = rng.normal(size=(25, 4))


@pytest.mark.parametrize("k", [1, 4, 100])
@pytest.mark.parametrize(
    "model",
    [OKTree(min_samples_leaf=3), OKBagging(7), OKExtraTrees(7, min_samples_leaf=2)],
    ids=lambda model: type(model).__name__,
)
def test_prototypes_are_the_largest_weights(model, k):
    """Rows are in descending order of weight, ties by position, followed by -1 and 0."""
    model.set_params(random_state=0).fit(X, Y)
    rows, weights = prototypes(model, NEW, k)
    assert rows.shape == weights.shape == (25, k)
    for found, weight, w in zip(rows, weights, model.predict_weights(NEW).toarray(), strict=True):
        expected = np.lexsort((np.arange(60), -w))[: min(k, np.count_nonzero(w))]
        np.testing.assert_array_equal(found[: len(expected)], expected)
        np.testing.assert_array_equal(weight[: len(expected)], w[expected])
        assert (found[len(expected) :] == -1).all()
        assert (weight[len(expected) :] == 0.0).all()


@pytest.mark.parametrize(
    "model",
    [
        OKBoost(20, kernel="rbf", random_state=0),
        OKBoost(20, max_splits=2, learning_rate=0.5, subsample=0.5, random_state=0),
        OKBoost(5, base=OKRidge(), learning_rate=1.0),
        OKRidge(),
    ],
    ids=["trees", "features", "base", "ridge"],
)
def test_negative_weights_come_last(model):
    """Weights of boosting and ridge regression may be negative; they are ranked by their sign."""
    W = model.fit(X, Y).predict_weights(NEW).toarray()
    assert (W < 0).any()
    rows, weights = prototypes(model, NEW, k=60)
    np.testing.assert_array_equal(weights, -np.sort(-W, axis=1))
    np.testing.assert_array_equal(np.take_along_axis(W, rows, axis=1), weights)


def test_prototypes_without_outputs():
    """Weights are known without y."""
    model = OKTotallyRandomTrees(5, random_state=0).fit(X)
    rows, weights = prototypes(model, X, k=60)
    np.testing.assert_array_equal(rows[:, 0], np.arange(60))
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)


@pytest.mark.parametrize(
    "scoring", [None, kernel_r2_scorer, kernel_loss_scorer, output_loss_scorer]
)
@pytest.mark.parametrize("outputs", ["explicit", "positions"])
def test_permutation_importance(scoring, outputs):
    """scikit-learn's permutation importance finds the most important feature."""
    kernel, y = ("rbf", Y) if outputs == "explicit" else (Precomputed(Y @ Y.T), np.arange(60))
    models = (
        OKTree(kernel=kernel, random_state=0),
        OKExtraTrees(20, kernel=kernel),
        OKBoost(20, kernel=kernel, learning_rate=0.2),
    )
    for model in models:
        result = permutation_importance(
            model.fit(X, y), X, y, scoring=scoring, n_repeats=3, random_state=0
        )
        assert result.importances.shape == (4, 3)
        assert result.importances_mean.argmax() == 0
