"""Every instruction set gives the same results, to the last bit."""

import numpy as np
import pytest

from growing import grow
from okforest.engine import GrowthRules, LeafPartition
from okforest.engine.cpu import (
    SIMD_LEVELS,
    choose_simd_level,
    leaf_coefficients,
    simd_level,
    subtract_means_from_gram,
)

BEST = simd_level()
LEVELS = [level for level in reversed(SIMD_LEVELS) if choose_simd_level(level)]
choose_simd_level("")


@pytest.fixture(autouse=True)
def best_level_afterwards():
    yield
    assert choose_simd_level("")
    assert simd_level() == BEST


def problem(q, dtype):
    rng = np.random.default_rng(q)
    X = rng.normal(size=(700, 20)).astype(dtype)
    phi = rng.normal(size=(700, q)) + X[:, :1] * rng.normal(size=q) + (X[:, 1:2] > 0)
    return X, np.ascontiguousarray(phi - phi.mean(axis=0))


@pytest.mark.skipif(len(LEVELS) < 2, reason="this machine has a single level")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("q", [1, 3, 20, 70, 130])
@pytest.mark.parametrize("gram", [False, True], ids=["factor", "gram"])
@pytest.mark.parametrize("rules", ["random", "best"])
@pytest.mark.parametrize("weighted", [False, True])
def test_levels_grow_the_same_trees(dtype, q, gram, rules, weighted):
    """All arrays are equal, thresholds and variances to the last bit."""
    X, phi = problem(q, dtype)
    rules = GrowthRules(random_splits=rules == "random", max_features=6, max_depth=9)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X)) if weighted else None
    grown = []
    for level in LEVELS:
        assert choose_simd_level(level)
        assert simd_level() == level
        outputs = phi @ phi.T if gram else phi
        grown.append(grow(X, outputs, rules, gram=gram, row_weight=weight, n_trees=2))
    for trees in grown[1:]:
        for name, array in vars(grown[0]).items():
            assert np.array_equal(getattr(trees, name), array), name


@pytest.mark.skipif(len(LEVELS) < 2, reason="this machine has a single level")
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_levels_count_classes_alike(dtype, weighted):
    """Classes have kernels of their own, and bytes others than numbers."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (3000, 40)).astype(dtype)
    phi = np.eye(5)[(X[:, 0] // 64 + rng.integers(0, 2, 3000)).astype(int)]
    weight = rng.uniform(0.5, 2.0, len(X)) if weighted else None
    rules = GrowthRules(random_splits=True, max_features=20)
    grown = []
    for level in LEVELS:
        assert choose_simd_level(level)
        grown.append(grow(X, phi, rules, row_weight=weight, n_trees=2))
    for trees in grown[1:]:
        for name, array in vars(grown[0]).items():
            assert np.array_equal(getattr(trees, name), array), name


@pytest.mark.skipif(len(LEVELS) < 2, reason="this machine has a single level")
@pytest.mark.parametrize("n", [5, 64, 203])
def test_levels_update_residuals_alike(n):
    rng = np.random.default_rng(n)
    places = np.sort(rng.integers(0, 4, n)).astype(np.int32)
    offsets = np.searchsorted(places, np.arange(5)).astype(np.int64)
    leaves = LeafPartition(offsets, np.arange(n, dtype=np.int32), rng.uniform(size=n), places)
    K = rng.normal(size=(n, n))
    updated, sums, coefficients = [], [], []
    for level in LEVELS:
        assert choose_simd_level(level)
        updated.append((K + K.T).copy())
        sums.append(subtract_means_from_gram(leaves, updated[-1], 0.3))
        coefficients.append(leaf_coefficients([(leaves, 0.3)] * 3, np.full(n, 1 / n)))
    for results in (updated, sums, coefficients):
        for result in results:
            assert np.array_equal(result, results[0])


def test_unknown_levels():
    """A level that does not exist is an error; one that the machine lacks changes nothing."""
    with pytest.raises(ValueError, match=r"level='sse' is not known; use one of 'avx512', 'avx2'"):
        choose_simd_level("sse")
    before = simd_level()
    for level in set(SIMD_LEVELS) - set(LEVELS):
        assert not choose_simd_level(level)
    assert simd_level() == before


def test_the_names_of_levels():
    """The level in use is among the known ones."""
    assert BEST in SIMD_LEVELS
