"""Weights of which only sums of features are known."""

import numpy as np
import pytest

from okforest.decode import Mean
from okforest.kernels import Linear
from okforest.weights import Span, SummedWeights, as_weights


def test_what_follows_from_sums_equals_what_follows_from_weights():
    """Losses, norms, inner products and decoded means need no more than the sums."""
    rng = np.random.default_rng(0)
    outputs, new = rng.normal(size=(9, 3)), rng.normal(size=(4, 3))
    W = as_weights(rng.dirichlet(np.ones(9), size=4))
    span = Span(Linear(), outputs)
    sums = SummedWeights(W @ outputs, 9)
    assert sums.shape == W.shape
    assert np.allclose(span.losses(sums, new), span.losses(W, new))
    assert np.allclose(span.squared_norms(sums), span.squared_norms(W))
    assert np.allclose(span.inner(sums, new), span.inner(W, new))
    assert np.allclose(Mean().decode(sums[1:3], span), Mean().decode(W[1:3], span))


def test_the_weights_are_not_known():
    """What needs them raises an error."""
    sums = SummedWeights(np.ones((2, 3)), 9)
    for use in (sums.tocsr, lambda: sums @ np.ones(9)):
        with pytest.raises(TypeError, match="only sums of explicit features are known"):
            use()
