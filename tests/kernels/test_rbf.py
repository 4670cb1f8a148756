"""Distances in kernels: their median, their limits in float64, and their digits."""

import numpy as np
import pytest

from okforest.kernels import RBF, Laplacian, Linear, Precomputed, rbf
from okforest.kernels.rbf import median_distance

rng = np.random.default_rng(0)
VECTORS = rng.normal(size=(12, 3))
GRAM = VECTORS @ VECTORS.T
POSITIONS = rng.permutation(12)


def test_median_width():
    """sigma="median" is the median distance between outputs."""
    y = np.array([0.0, 1.0, 5.0])  # distances 1, 4, 5
    assert RBF().resolve(y).sigma == pytest.approx(4.0)
    assert Laplacian().resolve(y).sigma == pytest.approx(4.0)
    assert RBF().resolve(np.zeros(4)).sigma == 1.0  # any width gives the same kernel
    for kernel in (RBF(), RBF(base=Linear()), Laplacian()):
        assert kernel.resolve(VECTORS[:1]).sigma == 1.0


@pytest.mark.parametrize("sample", [1, 3, 4096])
@pytest.mark.parametrize("n", [1, 2, 3, 10, 11, 5000, 5001])
def test_the_median_is_that_of_numpy(monkeypatch, n, sample):
    """To the last bit: in any order, of equal values, from squares, if rare ones are sampled."""
    monkeypatch.setattr(rbf, "MIDDLE_SAMPLE", sample)
    values = np.random.default_rng(n).exponential(size=n) ** 4
    rare = np.where(np.arange(n) % max(1, n // sample) == 0, 9.0, values)
    for distances in (values, np.sort(values), np.round(values), rare):
        positive = distances[distances > 0]
        expected = np.median(positive) if len(positive) else 1.0
        assert median_distance(distances) == expected
        expected = np.median(np.sqrt(positive)) if len(positive) else 1.0
        assert median_distance(distances, 2) == expected


@pytest.mark.parametrize("kernel", [RBF(), RBF(1e-200), RBF(base=Precomputed(GRAM * 1e-300))])
def test_distances_that_underflow(kernel):
    """Outputs that differ are not taken for equal because their squared distances are zero."""
    y = POSITIONS if kernel.base else VECTORS * 1e-200
    with pytest.raises(ValueError, match=r"RBF got outputs with squared distances of up to .*resc"):
        kernel.resolve(y)


@pytest.mark.parametrize(
    ("kernel", "scale", "what"),
    [
        (RBF(), 1e160, "squared distances of up to inf"),
        (RBF(1e160), 1e160, "squared distances of up to inf"),
        (RBF(base=Precomputed(GRAM * 1e300)), 1, "squared distances of up to"),
        (Laplacian(), 1e300, "distances of up to"),
        (Laplacian(), 1e-300, "distances of up to"),
    ],
)
def test_distances_at_the_limit_of_float64(kernel, scale, what):
    """The error names the distances, not the width that follows from them."""
    y = POSITIONS if getattr(kernel, "base", None) else VECTORS * scale
    with pytest.raises(ValueError, match=f"{type(kernel).__name__} got outputs with {what}"):
        kernel.resolve(y)


def test_distances_within_the_limits():
    """Small and large outputs have a width in proportion; equal and distant ones are no error."""
    for kernel in (RBF(), Laplacian()):
        width = kernel.resolve(VECTORS).sigma
        for scale in (1e-140, 1e140):
            assert kernel.resolve(VECTORS * scale).sigma == pytest.approx(width * scale)
        assert kernel.resolve(np.full(7, 3.0)).sigma == 1.0
    assert (
        RBF(1.0).resolve(VECTORS * 1e-200).sigma == 1.0
    )  # the kernel cannot tell these outputs apart


def test_narrow_widths_keep_the_digits_of_distances():
    """Equal outputs have kernel 1, whatever the width; ordinary widths use inner products."""
    y = rng.integers(0, 17, size=(60, 16)) / 3
    for sigma in (1e-8, 1e-12, 1e-300, 5e-324):
        np.testing.assert_array_equal(RBF(sigma)(y[::2], y), np.eye(60)[::2])
    shifted = y + 1e-6 * rng.normal(size=y.shape)
    np.testing.assert_allclose(
        RBF(1e-6)(y, shifted).diagonal(), RBF(1e-6).pairs(y, shifted), rtol=1e-6
    )
    centred = y - y.mean(axis=0)
    norms = Linear().diag(centred)
    squares = norms[:, None] + norms[None, :] - 2.0 * (centred @ centred.T)
    np.fill_diagonal(squares, 0.0)
    np.testing.assert_array_equal(
        RBF(0.5)(y), np.exp(np.maximum(squares, 0.0) / 0.5 / (-2.0 * 0.5))
    )


@pytest.mark.parametrize("kernel", [RBF(2.0), RBF(2.0, base=Linear()), Laplacian(2.0)], ids=repr)
@pytest.mark.parametrize(("n_a", "n_b"), [(9, 4), (5, 5), (3, 7)])
def test_matrices_between_different_outputs(kernel, n_a, n_b):
    """Every entry has the distance of its own two outputs, whichever are more."""
    a, b = rng.normal(size=(n_a, 3)), rng.normal(size=(n_b, 3)) + 1.0
    pairs = kernel.pairs(np.repeat(a, n_b, axis=0), np.tile(b, (n_a, 1)))
    np.testing.assert_allclose(kernel(a, b), pairs.reshape(n_a, n_b), rtol=1e-12)


def test_gram_matrices_are_symmetric():
    """To the last bit, with a diagonal of ones."""
    y = rng.normal(size=(301, 7)) + 10.0
    for kernel in (RBF(2.0), RBF(2.0, base=Linear()), RBF(1e-9), Laplacian(2.0)):
        K = kernel(y)
        np.testing.assert_array_equal(K, K.T)
        np.testing.assert_array_equal(K.diagonal(), np.ones(301))


def test_median_width_of_many_outputs_needs_no_large_matrix():
    """The median is computed from a thousand evenly spaced outputs."""
    y = np.random.default_rng(0).normal(size=50_000)
    assert RBF().resolve(y).sigma == pytest.approx(0.954, abs=0.05)  # √2 · 0.6745
