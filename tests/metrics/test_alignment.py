"""The centred alignment of kernels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from okforest.metrics import kernel_alignment


@given(seed=st.integers(0, 2**31), n=st.integers(2, 8), scale=st.floats(0.1, 100))
def test_alignment_by_definition(seed, n, scale):
    """It is the cosine of centred features' Gram matrices; scale and origin do not matter."""
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
    H = np.eye(n) - 1.0 / n
    K, L = H @ A @ A.T @ H, H @ B @ B.T @ H
    expected = np.trace(K @ L) / np.sqrt(np.trace(K @ K) * np.trace(L @ L))
    shifted = A + 3.0
    found = kernel_alignment(scale * shifted @ shifted.T, B @ B.T)
    assert found == pytest.approx(expected, abs=1e-7)
    assert kernel_alignment(A @ A.T, A @ A.T) == pytest.approx(1.0)


def test_constant_kernels_align_with_nothing():
    """The kernel of a constant output is zero when centred."""
    assert kernel_alignment(np.full((5, 5), 0.1), np.eye(5)) == 0.0


def test_wrong_shapes():
    """Gram matrices are square, and of the same rows."""
    with pytest.raises(ValueError, match=r"K has shape \(2, 3\); a Gram matrix is square"):
        kernel_alignment(np.ones((2, 3)), np.eye(2))
    with pytest.raises(ValueError, match="two kernels on the same rows"):
        kernel_alignment(np.eye(2), np.eye(3))
