"""What is behind a prediction, and importances by permutation."""

import numpy as np
import pytest
from sklearn.inspection import permutation_importance

from okforest import OKBagging, OKExtraTrees, OKTotallyRandomTrees, OKTree
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
    """Rows come by decreasing weight, equals by position, then -1 and 0."""
    model.set_params(random_state=0).fit(X, Y)
    rows, weights = prototypes(model, NEW, k)
    assert rows.shape == weights.shape == (25, k)
    for found, weight, w in zip(rows, weights, model.predict_weights(NEW).toarray(), strict=True):
        expected = np.lexsort((np.arange(60), -w))[: min(k, np.count_nonzero(w))]
        np.testing.assert_array_equal(found[: len(expected)], expected)
        np.testing.assert_array_equal(weight[: len(expected)], w[expected])
        assert (found[len(expected) :] == -1).all()
        assert (weight[len(expected) :] == 0.0).all()


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
    """scikit-learn's permutation importance finds the features that count."""
    kernel, y = ("rbf", Y) if outputs == "explicit" else (Precomputed(Y @ Y.T), np.arange(60))
    for model in (OKTree(kernel=kernel, random_state=0), OKExtraTrees(20, kernel=kernel)):
        result = permutation_importance(
            model.fit(X, y), X, y, scoring=scoring, n_repeats=3, random_state=0
        )
        assert result.importances.shape == (4, 3)
        assert result.importances_mean.argmax() == 0
