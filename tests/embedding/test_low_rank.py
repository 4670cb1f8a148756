"""Approximate factors of a Gram matrix: exact at full rank, with the error that they report."""

import os
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from okforest._utils.resources import MAX_MEMORY_FRACTION
from okforest.embedding import embed
from okforest.embedding.low_rank import fourier, nystrom, pivoted_cholesky
from okforest.kernels import (
    RBF,
    Dirac,
    FromCallable,
    Laplacian,
    Linear,
    Mahalanobis,
    Normalized,
    Precomputed,
)
from reference.embedding import greedy_cholesky, nystrom_gram

rng = np.random.default_rng(0)
Y = rng.normal(size=(120, 3))
KERNELS = [RBF(1.0), Laplacian(2.0), Linear(), Normalized(RBF(2.0) + Linear())]


def residual_share(K, phi):
    return 1 - (phi**2).sum() / K.trace()


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("factor", ["cholesky", "nystrom"])
@given(seed=st.integers(0, 1000), rank=st.integers(1, 120))
def test_factors_are_projections(kernel, factor, seed, rank):
    """K − ΦΦᵀ is positive semi-definite, and its trace is reported."""
    y = np.random.default_rng(seed).normal(size=(120, 3))
    K = kernel(y)
    if factor == "cholesky":
        phi, residual = pivoted_cholesky(kernel, y, rank, seed)
    else:
        phi, residual = nystrom(kernel, y, rank, seed)
    assert phi.shape[0] == 120
    assert phi.shape[1] <= rank
    assert phi.flags.c_contiguous
    assert np.linalg.eigvalsh(K - phi @ phi.T)[0] > -1e-8 * K.trace()
    assert 0 <= residual <= 1
    assert residual == pytest.approx(residual_share(K, phi), abs=1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("seed", range(3))
def test_residual_falls_with_the_rank(kernel, seed):
    """A factor with more columns begins with the same columns, and has a smaller residual."""
    before, last = pivoted_cholesky(kernel, Y, 1, seed)
    for rank in range(2, 120, 7):
        phi, residual = pivoted_cholesky(kernel, Y, rank, seed)
        np.testing.assert_allclose(phi[:, : before.shape[1]], before, atol=1e-9)
        assert residual <= last + 1e-12
        before, last = phi, residual


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("kind", ["cholesky", "nystrom"])
def test_full_rank_is_exact(kernel, kind):
    """With as many columns or landmarks as outputs the residual is zero."""
    embedding = embed(kernel, Y, kind, rank=500)
    H = np.eye(120) - 1 / 120
    gram = H @ embedding.values @ embedding.values.T @ H
    np.testing.assert_allclose(gram, H @ kernel(Y) @ H, atol=1e-8)
    assert embedding.residual == pytest.approx(0.0, abs=1e-9)
    assert embedding.kind == kind


@pytest.mark.parametrize("seed", range(5))
def test_random_pivots_are_as_good_as_the_largest(seed):
    """The residual is close to the greedy decomposition's, also for clustered outputs."""
    rng = np.random.default_rng(seed)
    for y in (
        rng.normal(size=(300, 5)),
        np.repeat(rng.normal(size=(60, 5)), 5, axis=0) + 0.01 * rng.normal(size=(300, 5)),
    ):
        K = RBF(2.0)(y)
        ours = pivoted_cholesky(RBF(2.0), y, 50, seed)[1]
        theirs = 1 - greedy_cholesky(K, 50).trace() / K.trace()
        assert ours < 1.4 * theirs + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_pivots_find_small_clusters(seed):
    """For clusters of different sizes the residual of pivots is less than half of Nyström's."""
    rng = np.random.default_rng(seed)
    sizes = rng.dirichlet(np.full(60, 0.2))
    centres = rng.normal(size=(60, 10))[rng.choice(60, 1000, p=sizes)]
    y = centres + 0.05 * rng.normal(size=(1000, 10))
    kernel = RBF().resolve(y)
    assert pivoted_cholesky(kernel, y, 60, seed)[1] < 0.5 * nystrom(kernel, y, 60, seed)[1]


def test_cholesky_stops_at_the_rank_of_the_outputs():
    """Repeated outputs and few dimensions need few columns."""
    assert pivoted_cholesky(Linear(), Y, 50, 0)[0].shape == (120, 3)
    phi, residual = pivoted_cholesky(Dirac(), np.repeat(["a", "b", "c", "d"], 30), 50, 0)
    assert phi.shape == (120, 4)
    assert residual == 0.0
    phi, residual = pivoted_cholesky(Linear(), np.zeros((20, 2)), 5, 0)
    assert (phi.shape, residual) == ((20, 0), 0.0)


def test_nystrom_against_dense_algebra():
    """The landmarks are drawn by the seed, without replacement."""
    K = RBF(1.0)(Y)
    for seed in range(3):
        landmarks = np.random.default_rng(seed).choice(120, 15, replace=False)
        phi, _ = nystrom(RBF(1.0), Y, 15, seed)
        np.testing.assert_allclose(phi @ phi.T, nystrom_gram(K, landmarks), atol=1e-9)


@pytest.mark.parametrize(
    "kernel",
    [RBF(1.5), Laplacian(4.0), RBF(2.0, base=Mahalanobis(np.diag([1.0, 2.0, 4.0])))],
    ids=repr,
)
def test_fourier_features_converge(kernel):
    """Errors fall with the square root of the rank, and are reported."""
    K = kernel(Y)
    off = ~np.eye(120, dtype=bool)
    errors = []
    for rank in (50, 5000):
        for seed in range(5):
            phi, residual = fourier(kernel, Y, rank, seed)
            assert phi.shape == (120, rank)
            np.testing.assert_allclose((phi**2).sum(axis=1), 1.0)
            error = np.linalg.norm((K - phi @ phi.T)[off]) / np.linalg.norm(K[off])
            assert residual == pytest.approx(error)
            errors.append(error)
    few, many = np.array(errors).reshape(2, 5).mean(axis=1)
    assert many < 0.06
    assert 6 < few / many < 16  # ten, in the mean


def test_fourier_features_are_for_some_kernels():
    """Other kernels, and ranks below one pair of features, are refused with advice."""
    for kernel, y in (
        (Linear(), Y),
        (Dirac(), np.arange(120)),
        (RBF(1.0, base=Precomputed(np.eye(120))), np.arange(120)),
    ):
        with pytest.raises(ValueError, match=r"(?s)RBF or Laplacian.*use embedding='cholesky' or"):
            embed(kernel.resolve(y), y, "fourier")
    with pytest.raises(ValueError, match="must be at least 2"):
        embed(RBF(1.0), Y, "fourier", rank=1)


def test_functions_that_are_not_kernels_are_refused():
    """They are detected on a sample, or by a negative residual."""
    y = np.arange(2000.0)
    for kind in ("cholesky", "nystrom"):
        with pytest.raises(ValueError, match="asymmetric"):
            embed(FromCallable(lambda a, b: a[:, None] - b[None, :]), y, kind)
    K = np.eye(2000)
    K[3, 8] = K[8, 3] = 50.0  # not in the sample
    with pytest.raises(ValueError, match=r"negative residual, -.*Use a positive semi-definite"):
        embed(Precomputed(K), np.arange(2000), "cholesky", rank=2000)

    def undefined(a, b):
        is_pair = (np.add.outer(a, b) == 11.0) & (np.multiply.outer(a, b) == 24.0)  # 3 and 8
        return np.where(is_pair, np.nan, np.equal.outer(a, b))

    with pytest.raises(ValueError, match="has NaN or infinite values; they must be finite"):
        embed(FromCallable(undefined), y, "cholesky", rank=2000)


def test_rank_of_exact_embeddings_is_refused():
    """A rank that would have no effect raises an error."""
    for kind in ("auto", "features", "gram", "factor"):
        with pytest.raises(ValueError, match=f"embedding_rank=5 has no effect with .*'{kind}'"):
            embed(Linear(), Y, kind, rank=5)


def test_outputs_out_of_scale():
    """Outputs whose squares overflow are refused."""
    for kind in ("cholesky", "nystrom"):
        with pytest.raises(ValueError, match="rescale them"):
            embed(Linear(), Y * 1e200, kind)


@pytest.mark.parametrize("kind", ["cholesky", "nystrom", "fourier"])
def test_no_square_matrix(kind):
    """Memory is proportional to N·rank: here a fiftieth of the Gram matrix (800 MB)."""
    y = np.random.default_rng(0).normal(size=(10_000, 5))
    tracemalloc.start()
    embedding = embed(RBF(2.0), y, kind, rank=64)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert embedding.values.shape == (10_000, 64)
    assert peak < 8 * embedding.values.nbytes


def test_gram_matrices_too_large_for_the_machine(monkeypatch):
    """Before anything is computed, an error reports the memory needed and a remedy."""
    y = np.zeros((1000, 2))
    monkeypatch.setattr(os, "sysconf", lambda name: 4000)  # 16 MB; a Gram matrix takes 8 MB
    embed(RBF(1.0), y)
    y = np.zeros((1001, 2))
    for kernel, kind in ((RBF(1.0), "auto"), (RBF(1.0), "factor"), (Linear(), "gram")):
        with pytest.raises(MemoryError, match=r"1001 outputs takes.*Use embedding='cholesky'"):
            embed(kernel, y, kind)
    embed(RBF(1.0), y, "cholesky")
    embed(Linear(), y)
    assert MAX_MEMORY_FRACTION == 0.5
