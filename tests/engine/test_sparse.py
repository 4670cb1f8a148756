"""Sparse inputs: the trees of dense ones."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from growing import grow
from okforest.engine import GrowthRules, apply

RULES = {
    "best": GrowthRules(),
    "best of some": GrowthRules(max_features=2, min_samples_leaf=2),
    "random": GrowthRules(random_splits=True, max_features=2),
    "not constant": GrowthRules(random_splits=True, max_features=2, ignore_constant=True),
    "all random": GrowthRules(random_splits=True, min_samples_leaf=2),
    "totally random": GrowthRules(random_splits=True, max_features=1, stop_when_pure=False),
    "by gain": GrowthRules(order="gain", max_leaf_nodes=6),
}
ARRAYS = ("feature", "threshold", "missing_left", "left", "members")


def sparse_inputs(rng, n, p, density):
    """Return small integers, so that values repeat, or numbers of either sign, or positive ones."""
    kind = rng.integers(3)
    values = rng.normal(size=(n, p)) if kind else rng.integers(-2, 3, size=(n, p)).astype(float)
    return sp.csc_array((abs(values) if kind == 2 else values) * (rng.random((n, p)) < density))


def assert_same(sparse, dense):
    """Compare all arrays, bit by bit."""
    for name in ARRAYS:
        assert np.array_equal(getattr(sparse, name), getattr(dense, name)), name


@given(
    seed=st.integers(0, 2**32),
    density=st.sampled_from([0.02, 0.2, 0.8]),
    rules=st.sampled_from(list(RULES.values())),
    dtype=st.sampled_from([np.float32, np.float64]),
    n_draws=st.sampled_from([0, 60]),
)
def test_sparse_inputs_grow_the_forest_of_dense_ones(seed, density, rules, dtype, n_draws):
    """Sparse columns and rows, with stored zeros and missing values, give the same trees."""
    rng = np.random.default_rng(seed)
    X = sp.csc_array(rng.normal(size=(60, 5)) * (rng.uniform(size=(60, 5)) < density), dtype=dtype)
    X.data[rng.uniform(size=X.nnz) < 0.1] = np.nan
    X.data[rng.uniform(size=X.nnz) < 0.1] = 0.0
    phi = rng.normal(size=(60, 3))
    options = {"rules": rules, "seed": seed, "n_trees": 2, "n_draws": n_draws}
    dense = grow(X.toarray(), phi, **options)
    for X_sparse in (X, X.tocsr()):
        sparse = grow(X_sparse, phi, **options)
        assert_same(sparse, dense)
        assert np.array_equal(apply(sparse, X_sparse), apply(dense, X.toarray()))


def test_large_sparse_inputs_are_not_made_dense():
    """A matrix with a million rows and columns would take 8 TB if dense."""
    n = 1_000_000
    rng = np.random.default_rng(0)
    X = sp.csr_array(
        (np.ones(2000), (rng.integers(0, n, 2000), rng.integers(0, n, 2000))), shape=(n, n)
    )
    y = rng.normal(size=(n, 1))
    trees = grow(X, y, GrowthRules(max_depth=1, max_features=5, random_splits=True))
    assert apply(trees, X[:10]).shape == (10, 1)


def test_invalid_sparse_matrices_are_refused():
    """Indices out of range are refused, not read out of bounds."""
    X = sp.csc_array(np.eye(5))
    X.indices[2] = 77
    with pytest.raises(ValueError, match="canonical format"):
        grow(X, np.eye(5), GrowthRules())


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@pytest.mark.parametrize("outputs", ["one", "few", "many", "classes", "gram"])
@pytest.mark.parametrize("seed", range(4))
def test_inputs_of_mostly_zeros(rules, outputs, seed):
    """Zeros are not listed, in large nodes and small ones, with weights and without."""
    rng = np.random.default_rng(seed)
    n = 700
    X = sparse_inputs(rng, n, 40, rng.choice([0.01, 0.05, 0.12]))
    if seed == 2:
        X.data[rng.random(X.nnz) < 0.1] = np.nan
    if seed == 3:
        X.data[rng.random(X.nnz) < 0.2] = 0.0
    phi = {
        "one": lambda: rng.normal(size=(n, 1)),
        "few": lambda: np.round(rng.normal(size=(n, 2))),
        "many": lambda: rng.normal(size=(n, 20)),
        "classes": lambda: np.eye(4)[rng.integers(0, 4, n)],
        "gram": lambda: rng.normal(size=(n, 3)),
    }[outputs]()
    gram = outputs == "gram"
    options = {
        "rules": rules,
        "seed": seed,
        "gram": gram,
        "row_weight": rng.integers(1, 4, n) * 1.0 if seed == 1 else None,
        "n_draws": n if seed == 2 else 0,
    }
    outputs = phi @ phi.T if gram else phi
    assert_same(grow(X, outputs, **options), grow(X.toarray(), outputs, **options))


@pytest.mark.parametrize("random_splits", [False, True])
def test_heavy_values_among_zeros(random_splits):
    """If the rows that store a value outweigh all others, these are summed instead."""
    rng = np.random.default_rng(0)
    X = sparse_inputs(rng, 300, 30, 0.05)
    weight = np.where((X != 0).sum(axis=1) > 1, 1e9, 1.0)
    phi = rng.normal(size=(300, 4))
    rules = GrowthRules(random_splits=random_splits, max_features=5)
    for seed in range(5):
        options = {"rules": rules, "seed": seed, "row_weight": weight}
        assert_same(grow(X, phi, **options), grow(X.toarray(), phi, **options))


@pytest.mark.parametrize("random_splits", [False, True])
@pytest.mark.parametrize("gram", [False, True])
@pytest.mark.parametrize("light", [1e-3, 1e-6, 1e-12])
def test_zeros_of_little_weight(light, gram, random_splits):
    """Sums over all the other rows would leave few digits of the gain of splitting zeros off."""
    n, n_heavy = 100, 60
    row_weight = np.r_[np.ones(n_heavy), np.full(n - n_heavy, light)]
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = (rng.random((n, 40)) < 0.03) * rng.uniform(0.5, 1.0, size=(n, 40))
        X[:n_heavy, :2] = 1.0
        phi = rng.normal(size=(n, 20)) + 1000.0
        options = {
            "rules": GrowthRules(random_splits=random_splits),
            "seed": seed,
            "row_weight": row_weight,
            "gram": gram,
        }
        outputs = phi @ phi.T if gram else phi
        assert_same(grow(sp.csc_array(X), outputs, **options), grow(X, outputs, **options))
