"""Candidates given several times are ranked once, and predictions are those that were given."""

import numpy as np
import pytest

from okforest import OKExtraTrees, OKNeighbors
from okforest.kernels import RBF

rng = np.random.default_rng(0)
X = rng.normal(size=(50, 3))
Y = X[:, :2] + 0.1 * rng.normal(size=(50, 2))
NEW = rng.normal(size=(12, 3))
CANDIDATES = rng.normal(size=(6, 2))
REPEATED = CANDIDATES[[3, 3, 0, 5, 3, 1, 0, 2, 4, 5, 5]]

models = pytest.mark.parametrize(
    "model", [OKExtraTrees(10, kernel=RBF(1.0), random_state=0), OKNeighbors(3, kernel=RBF(1.0))]
)


def distances(W, candidates):
    """Return ‖φ(c) − F‖² of every prediction and candidate."""
    K = RBF(1.0)(Y)
    norms = np.einsum("ij,jk,ik->i", W, K, W)
    return norms[:, None] - 2 * W @ RBF(1.0)(Y, candidates) + 1.0


@models
def test_top_ranks_each_candidate_once(model):
    """The different candidates are ranked as by brute force."""
    model.fit(X, Y)
    expected = distances(model.predict_weights(NEW).toarray(), CANDIDATES)
    order = expected.argsort(axis=1)
    outputs, losses = model.predict_top(NEW, k=6, candidates=REPEATED)
    np.testing.assert_array_equal(outputs, CANDIDATES[order])
    np.testing.assert_allclose(losses, np.take_along_axis(expected, order, axis=1), atol=1e-12)
    np.testing.assert_array_equal(model.predict(NEW, candidates=REPEATED), outputs[:, 0])
    with pytest.raises(ValueError, match=r"k=7; there are 6 different candidates"):
        model.predict_top(NEW, k=7, candidates=REPEATED)


@models
@pytest.mark.parametrize("decoder", ["training_set", "support"])
def test_equal_training_outputs_are_ranked_once(model, decoder):
    """Outputs of several training rows are ranked by all of their weight."""
    groups = np.arange(50) // 5
    y = Y[groups]
    model.set_params(decoder=decoder).fit(X, y)
    outputs, losses = model.predict_top(NEW, k=2)
    W = model.predict_weights(NEW).toarray()
    merged = np.stack([W[:, groups == g].sum(axis=1) for g in range(10)], axis=1)
    K = RBF(1.0)(Y[:10])
    expected = np.einsum("ij,jk,ik->i", merged, K, merged)[:, None] - 2 * merged @ K + 1.0
    if decoder == "support":
        expected[merged == 0] = np.inf
    order = expected.argsort(axis=1)[:, :2]
    known = np.isfinite(losses)
    np.testing.assert_allclose(losses, np.take_along_axis(expected, order, axis=1), atol=1e-12)
    np.testing.assert_array_equal(outputs[known], Y[order][known])
