"""Completion of a kernel."""

import numpy as np
import pytest

from okforest import OKExtraTrees, OKRidge
from okforest.network import complete_kernel


@pytest.mark.parametrize("scheme", ["convolve", "average"])
def test_blocks(scheme):
    """Known values do not change; others are inner products; the result is a kernel."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 2)
    forest = OKExtraTrees(10, random_state=0)
    completed = complete_kernel(K[:30, :30], X[:30], X[30:], forest, scheme)
    np.testing.assert_array_equal(completed[:30, :30], K[:30, :30])
    np.testing.assert_allclose(completed, completed.T, rtol=1e-12)
    assert np.linalg.eigvalsh(completed).min() > -1e-10
    forest.set_params(kernel=lambda a, b: K[np.ix_(a, b)]).fit(X[:30], np.arange(30))
    W = forest.predict_weights(X[30:]).toarray()
    np.testing.assert_allclose(completed[30:, :30], W @ K[:30, :30], rtol=1e-12)
    predicted = forest.predict_kernel(X[30:], scheme=scheme)
    np.testing.assert_allclose(completed[30:, 30:], predicted, rtol=1e-12)


def test_ridge_recovers_a_linear_kernel():
    """With the kernel of its own inputs, ridge regression recovers all values."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    K = X @ X.T
    ridge = OKRidge(1e-6, input_kernel="linear")
    np.testing.assert_allclose(complete_kernel(K[:20, :20], X[:20], X[20:], ridge), K, atol=1e-4)


def test_errors():
    with pytest.raises(ValueError, match="scheme='average' requires trees"):
        complete_kernel(np.eye(3), np.eye(3), np.eye(3), OKRidge(), "average")
    for K, shape in ((None, r"\(\)"), (np.ones((3, 4)), r"\(3, 4\)")):
        with pytest.raises(ValueError, match=f"K_known has shape {shape}; pass the square Gram"):
            complete_kernel(K, np.eye(3), np.eye(3))
