"""Kernels on vectors, classes, times and what is composed of kernels: PSD on random outputs.

Kernels on other outputs are in test_structured.py, those on vertices of graphs in test_graphs.py.
"""

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import okforest.kernels
from okforest.kernels import (
    RBF,
    CommuteTime,
    Curves,
    Dice,
    Diffusion,
    Dirac,
    EditDistance,
    FromCallable,
    GapWeighted,
    GlobalAlignment,
    Hamming,
    Hierarchy,
    Jaccard,
    Kendall,
    Laplacian,
    Linear,
    Mahalanobis,
    Mallows,
    Mismatch,
    Normalized,
    OutputKernel,
    Polynomial,
    Precomputed,
    Product,
    RandomWalk,
    RegularizedLaplacian,
    Scaled,
    Spearman,
    Spectrum,
    Sum,
    Tuples,
    Wasserstein,
)
from okforest.survival import Survival

NUMBERS = st.floats(-100.0, 100.0, width=32)
VECTORS = st.integers(2, 8).flatmap(lambda n: arrays(np.float64, (n, 3), elements=NUMBERS))
FULL_RANK = VECTORS.map(lambda y: np.vstack([y, np.eye(3), -y]))
LABELS = st.lists(st.sampled_from("abcd"), min_size=2, max_size=8)
ROWS = st.lists(st.integers(0, 5), min_size=2, max_size=8)
SETS = st.lists(st.frozensets(st.sampled_from("abcd")), min_size=2, max_size=8).filter(any)
FACTOR = np.random.default_rng(0).normal(size=(6, 2))
INTERVALS = st.tuples(st.floats(0.0, 9.0, width=16), st.sampled_from([0.0, 1.0, np.inf]))
TIMES = st.lists(INTERVALS, min_size=2, max_size=8).map(
    lambda rows: [(1.0, 1.0), *((lower, lower + width) for lower, width in rows)]
)

CASES = {
    "Linear": (Linear(), VECTORS),
    "RBF": (RBF(3.0), VECTORS),
    "RBF, median": (RBF(), VECTORS),
    "RBF of sets": (RBF(0.5, base=Jaccard()), SETS),
    "Laplacian": (Laplacian(3.0), VECTORS),
    "Laplacian, median": (Laplacian(), VECTORS),
    "Polynomial": (Polynomial(3, gamma=0.1, coef0=2.0), VECTORS),
    "Polynomial without a constant": (Polynomial(2, coef0=0.0), VECTORS),
    "Mahalanobis": (Mahalanobis(np.eye(3) + 0.5), VECTORS),
    "Mahalanobis, covariance": (Mahalanobis(), FULL_RANK),
    "Dirac": (Dirac(), LABELS),
    "Precomputed": (Precomputed(FACTOR @ FACTOR.T), ROWS),
    "Survival": (Survival(), TIMES),
    "FromCallable": (FromCallable(lambda a, b: len(a & b), elementwise=True), SETS),
    "Sum": (Linear() + RBF(1.0), VECTORS),
    "Product": (RBF(1.0) * Polynomial(2), VECTORS),
    "Scaled": (2.5 * Laplacian(1.0), VECTORS),
    "Normalized": (Normalized(Polynomial(2)), VECTORS),
    "Normalized, of sets": (Normalized(Hamming()), SETS),
    "Dice, weighted": (Dice([1.0, 9.0, 0.1, 0.5], list("abcd")), SETS),
}
STRUCTURED = {
    Curves,
    Dice,
    EditDistance,
    GapWeighted,
    GlobalAlignment,
    Hamming,
    Hierarchy,
    Jaccard,
    Kendall,
    Mallows,
    Mismatch,
    Spearman,
    Spectrum,
    Tuples,
    Wasserstein,
}
ON_VERTICES = {CommuteTime, Diffusion, RandomWalk, RegularizedLaplacian}


@pytest.mark.parametrize(("kernel", "outputs"), CASES.values(), ids=CASES)
def test_gram_matrices_are_psd(kernel, outputs):
    """No Gram matrix of random outputs has a negative eigenvalue, but for rounding."""

    @given(outputs)
    def check(y):
        checked = kernel.check(y)
        K = kernel.resolve(checked)(checked)
        assert np.isfinite(K).all()
        scale = max(1e-300, np.abs(K).max())
        np.testing.assert_allclose(K, K.T, atol=1e-12 * scale)
        assert np.linalg.eigvalsh(K / scale).min() > -1e-8

    check()


def test_every_kernel_is_tested():
    """A public kernel that can be used is here, or in one of the two other files."""
    public = {
        found
        for name in okforest.kernels.__all__
        if inspect.isclass(found := getattr(okforest.kernels, name))
        and issubclass(found, OutputKernel)
        and not inspect.isabstract(found)
    }
    composed = {Sum, Product, Scaled}
    assert (
        public - STRUCTURED - ON_VERTICES
        == {type(kernel) for kernel, _ in CASES.values()} - {Dice, Survival} | composed
    )
