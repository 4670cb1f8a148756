"""Outputs in their principal directions, compared with eigenvectors; how many are chosen."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from okforest.embedding import embed, embed_for_search, principal, principal_directions
from okforest.embedding.choice import ENTRY_ERROR
from okforest.kernels import RBF, Linear, Precomputed
from reference.embedding import principal_gram

rng = np.random.default_rng(0)


def with_spectrum(variances, n=80, seed=0):
    """Return outputs with about these principal variances."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, len(variances))) * np.sqrt(variances)


@pytest.mark.parametrize("kind", ["features", "gram", "factor", "cholesky"])
@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
@given(seed=st.integers(0, 1000), rank=st.integers(1, 6))
def test_directions_are_the_first_eigenvectors(kind, weighted, seed, rank):
    """If the spectrum has a gap, the subspace and its variance equal eigh's."""
    Y = with_spectrum([10.0] * rank + [0.01] * 30, seed=seed) + 5.0
    weight = np.random.default_rng(seed).integers(0, 3, 80) if weighted else np.ones(80)
    found, share = principal_directions(embed(Linear(), Y, kind), rank, weight.astype(float), seed)
    expected, expected_share = principal_gram(Y @ Y.T, weight, rank)
    assert found.values.shape == (80, rank)
    assert found.values.flags.c_contiguous
    assert found.kind != "gram"
    np.testing.assert_allclose(found.values @ found.values.T, expected, atol=1e-4)
    assert share == pytest.approx(expected_share, abs=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_variance_without_a_gap_is_nearly_the_most(seed):
    """On a slow spectrum the directions found keep nearly as much as the best, and never more."""
    Y = np.random.default_rng(seed).normal(size=(300, 6))
    K = RBF(3.0)(Y)
    found, share = principal_directions(embed(RBF(3.0), Y, "gram"), 20, np.ones(300), seed)
    best = principal_gram(K, np.ones(300), 20)[1]
    assert best - 0.01 < share <= best + 1e-12
    centred = found.values - found.values.mean(axis=0)
    assert np.mean((centred**2).sum(axis=1)) == pytest.approx(
        share * (K.diagonal().mean() - K.mean())
    )  # the share belongs to the values returned, it is no estimate


def test_the_search_stays_exact_where_directions_are_few():
    """With as many directions as columns, or constant outputs, the embedding is returned."""
    embedding = embed(Linear(), rng.normal(size=(50, 5)))
    for rank in (None, 5, 9, 0.95, "auto"):
        assert principal_directions(embedding, rank, np.ones(50), 0) == (embedding, 1.0)
    for n in range(50, 60):
        constant = embed(Linear(), np.full((n, 5), 0.3) / n)
        assert principal_directions(constant, 2, np.ones(n), 0) == (constant, 1.0)


def test_fewer_directions_than_asked_for():
    """Outputs of rank 3 have three directions, which keep all of the variance."""
    Y = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 20))
    found, share = principal_directions(embed(Linear(), Y, "gram"), 10, np.ones(60), 0)
    assert found.rank == 3
    assert share == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("variances", "n", "rank"),
    [
        ([10.0] * 10 + [0.01] * 90, 400, 16),
        ([10.0] * 24 + [0.01] * 76, 400, 32),
        ([10.0] * 24 + [0.01] * 76, 200, None),  # 32 is more than an eighth of the rows
        ([1.0] * 100, 400, None),
        ([1.0] * 20, 100, None),
    ],
    ids=["steep", "less steep", "few rows", "flat", "very few rows"],
)
def test_a_share_takes_the_fewest_directions_that_keep_enough(variances, n, rank, seed):
    """The smallest rank that keeps enough of the variance; all directions of a flat spectrum."""
    embedding = embed(Linear(), with_spectrum(variances, n, seed))
    found, share = principal_directions(embedding, 0.95, np.ones(n), seed)
    if rank is None:
        assert found is embedding
        assert share == 1.0
    else:
        assert found.rank == rank
        assert 0.95 <= share < 1.0


def test_no_few_directions_of_a_diffusion_kernel():
    """On a sparse network the variance is spread over many directions."""
    links = np.triu(rng.uniform(size=(400, 400)) < 0.01, 1)
    values, vectors = np.linalg.eigh(np.diag((links + links.T).sum(axis=0)) - links - links.T)
    diffusion = vectors * np.exp(-values) @ vectors.T
    embedding = embed(Precomputed((diffusion + diffusion.T) / 2), np.arange(400))
    assert principal_directions(embedding, 0.95, np.ones(400), 0)[0] is embedding
    assert principal_directions(embedding, 32, np.ones(400), 0)[1] < 0.7


@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
def test_auto_searches_many_outputs_in_few_directions(monkeypatch, weighted):
    """No Gram matrix is computed, and the share is that of the variance of the outputs."""
    monkeypatch.setattr(principal, "MANY", 500)
    y = np.random.default_rng(0).normal(size=(600, 4))
    weight = (
        np.random.default_rng(1).integers(0, 3, 600).astype(float) if weighted else np.ones(600)
    )
    sizes = []

    class Counted(RBF):
        def __call__(self, a, b=None):
            sizes.append(len(a) * len(a if b is None else b))
            return super().__call__(a, b)

    options = ("auto", None, "auto", weight, 0)
    embedding, search, share = embed_for_search(Counted(3.0), y, *options)
    assert max(sizes) <= 600 * 256
    assert (embedding.kind, search.rank) == ("nystrom", 64)
    expected, best = principal_gram(RBF(3.0)(y), weight, 64)
    assert best - 0.01 < share < best + 0.001
    np.testing.assert_allclose(search.values @ search.values.T, expected, atol=0.05)
    for kernel, outputs in (
        (RBF(0.2), y),  # a flat spectrum
        (RBF(3.0), y[:500]),  # few outputs
        (Linear(), y),  # few features
    ):
        embedding, search, share = embed_for_search(
            kernel, outputs, "auto", None, "auto", weight[: len(outputs)], 0
        )
        assert (search is embedding, share) == (True, 1.0)
        assert embedding.kind != "nystrom"
    for kind, rank in (("gram", "auto"), ("auto", None)):
        embedding, search, share = embed_for_search(RBF(3.0), y, kind, None, rank, weight, 0)
        assert (embedding.kind, search is embedding, share) == ("gram", True, 1.0)


def test_the_seed_decides():
    """The same seed gives exactly the same numbers."""
    embedding = embed(RBF(1.0), rng.normal(size=(100, 4)))
    found = [principal_directions(embedding, 8, np.ones(100), seed)[0] for seed in (1, 1, 2)]
    a, b, c = (embedding.values for embedding in found)
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)


def test_errors_of_the_directions_of_a_matrix():
    """Long directions have smaller errors than the entries of the matrix."""
    y = np.random.default_rng(0).normal(size=(200, 3))
    directions = principal_directions(embed(Linear(), y, "gram"), 3, np.ones(200), 0)[0]
    largest = (directions.values**2).sum(axis=1).max()
    assert directions.errors is not None
    assert (directions.errors < 1e-9 * ENTRY_ERROR * largest).all()
