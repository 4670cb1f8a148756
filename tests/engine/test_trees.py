"""Leaves, weights, importances and views of grown trees."""

import numpy as np
import pytest

from growing import grow
from okforest import OKExtraTrees, OKRandomForest
from okforest.engine import GrowthRules, apply, count_members, leaf_weights
from okforest.weights import LeafWeights
from reference.trees import forest_weights, leaf_of


@pytest.fixture(params=[0, 50], ids=["all rows", "bootstrap"])
def grown(request):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    phi = np.c_[X[:, 0], X[:, 1] ** 2, rng.normal(size=50)]
    weight = rng.uniform(0.5, 3, size=50)
    rules = GrowthRules(min_samples_leaf=3)
    trees = grow(X, phi, rules, n_trees=6, seed=2, row_weight=weight, n_draws=request.param)
    return trees, X, rng.normal(size=(700, 4))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_apply_and_weights_equal_the_oracle(grown, dtype, n_threads):
    """Leaves and weights are the same as by following each input by hand."""
    trees, _, X = grown
    X = X.astype(dtype)
    leaves = apply(trees, X, n_threads)
    assert leaves.shape == (700, 6)
    assert all(leaves[i, t] == leaf_of(trees[t], X[i]) for i in range(50) for t in range(6))
    W = leaf_weights(trees, leaves, n_threads)
    assert W.has_canonical_format
    np.testing.assert_allclose(W[:50].toarray(), forest_weights(trees, X[:50], 50))
    np.testing.assert_allclose(W.sum(axis=1), 1.0)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_large_trees_are_walked_alike(dtype):
    """Many rows walk a copy of a large tree, few rows the tree itself; the leaves are the same."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (9000, 6)).astype(dtype)
    if dtype == np.float32:
        X[rng.random(X.shape) < 0.1] = np.nan
    rules = GrowthRules(random_splits=True, max_features=1)
    trees = grow(X, rng.normal(size=(9000, 1)), rules, n_trees=2)
    assert np.diff(trees.node_offsets).min() > 2**13
    leaves = apply(trees, X)
    few = [apply(trees, X[i : i + 20]) for i in range(0, 9000, 20)]
    assert np.array_equal(leaves, np.concatenate(few))
    assert np.array_equal(leaves, apply(trees, X, n_threads=3))
    assert [leaves[i, 1] for i in range(0, 9000, 500)] == [
        leaf_of(trees[1], X[i]) for i in range(0, 9000, 500)
    ]


def test_weights_of_members_sum_to_those_of_nodes(grown):
    """Members are distinct rows, and their weights times their draws sum to the node's weight."""
    trees, X, _ = grown
    for t in range(len(trees)):
        tree = trees[t]
        assert len(set(tree.members)) == len(tree.members)
        drawn = len(tree.times) > 0
        assert (tree.times.sum() if drawn else len(tree.members)) == len(X)
        weight = tree.row_weight[tree.members] * (tree.times if drawn else 1.0)
        for node in range(len(tree.weight)):
            members = slice(tree.begin[node], tree.end[node])
            assert weight[members].sum() == pytest.approx(tree.weight[node])


def test_products_with_implicit_weights(grown):
    """Products with the implicit matrix equal those with the sparse one, for all n_threads."""
    trees, _, X = grown
    leaves = apply(trees, X)
    leaves[5:9, 2:] = -1
    W = leaf_weights(trees, leaves)
    values = np.random.default_rng(0).normal(size=(50, 7))
    for n_threads in (1, 3, 20):
        lazy = LeafWeights(trees, leaves, n_threads)
        assert lazy.shape == W.shape
        np.testing.assert_allclose(lazy @ values, W @ values, atol=1e-12)
        np.testing.assert_allclose(lazy @ values[:, 0], W @ values[:, 0], atol=1e-12)
        np.testing.assert_allclose(lazy[3:9] @ values, W[3:9] @ values, atol=1e-12)
        assert abs(lazy.tocsr() - W).max() == 0
    np.testing.assert_array_equal(
        LeafWeights(trees, leaves, 1) @ values, LeafWeights(trees, leaves, 3) @ values
    )


def test_memory_is_proportional_to_rows_and_nodes(grown):
    """No array has more entries than there are nodes, or rows times trees."""
    trees, X, _ = grown
    largest = max(len(trees.feature), len(X) * len(trees))
    assert all(array.size <= largest for array in vars(trees).values())


def test_variance_reduction(grown):
    """The importances of a tree sum to the variance of the root minus the leaves' variance."""
    trees, _, _ = grown
    tree = trees[1]
    leaves = tree.left < 0
    expected = tree.variance[0] - tree.variance[leaves].sum()
    assert tree.variance_reduction(4).sum() == pytest.approx(expected)
    total = sum(trees[t].variance_reduction(4) for t in range(len(trees)))
    np.testing.assert_allclose(trees.variance_reduction(4), total)


def test_too_few_features(grown):
    """Inputs with too few features are refused, not read out of bounds."""
    trees, _, X = grown
    with pytest.raises(ValueError, match="X has 1 features; these trees were grown on 4"):
        apply(trees, np.ascontiguousarray(X[:, :1]))


def test_no_rows():
    """Predicting no rows gives empty results."""
    trees = grow(np.eye(4), np.eye(4), GrowthRules(), n_trees=3)
    leaves = apply(trees, np.empty((0, 4)))
    assert leaves.shape == (0, 3)
    assert leaf_weights(trees, leaves).shape == (0, 4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
@pytest.mark.parametrize("n_estimators", [1, 7])
def test_apply_in_any_layout(dtype, n_estimators):
    """Contiguous rows, other layouts and single rows reach the same leaves, as tests say."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, size=(120, 5)).astype(dtype)
    X -= dtype(0 if dtype == np.uint8 else 3)
    forest = OKExtraTrees(n_estimators, random_state=0).fit(X, rng.normal(size=(120, 2)))
    trees = forest.trees_
    inner = trees.left >= 0
    if dtype != np.uint8:
        near = trees.threshold[inner].astype(dtype)  # and its neighbours
        near = np.concatenate([near, np.nextafter(near, dtype(9)), np.nextafter(near, dtype(-9))])
        X = rng.choice(np.concatenate([near, dtype([np.inf, -np.inf, 0, -0.0])]), size=(333, 5))
    rows = apply(trees, X)
    for t in range(len(trees)):
        tree = trees[t]
        for i in range(0, len(X), 7):
            node = 0
            while tree.left[node] >= 0:
                goes_left = float(X[i, tree.feature[node]]) <= tree.threshold[node]
                node = tree.left[node] + (not goes_left)
            assert rows[i, t] == node
    np.testing.assert_array_equal(apply(trees, np.asfortranarray(X)), rows)
    wide = np.repeat(X, 2, axis=1)[:, ::2]
    np.testing.assert_array_equal(apply(trees, wide), rows)
    np.testing.assert_array_equal(apply(trees, X[::3]), rows[::3])
    np.testing.assert_array_equal(np.vstack([apply(trees, x[None]) for x in X[:9]]), rows[:9])
    if dtype != np.uint8:  # a missing value in one row changes no other row
        X[5, 0] = np.nan
        others = np.arange(len(X)) != 5
        np.testing.assert_array_equal(apply(trees, X)[others], rows[others])


def test_members_are_counted():
    """Leaves that do not contribute are left out."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    trees = OKRandomForest(4, min_samples_leaf=3, random_state=0).fit(X, X).trees_
    leaves = apply(trees, X)
    leaves[::3, 1] = -1
    nodes = (leaves + trees.node_offsets[:-1])[leaves >= 0]
    sizes = trees.end[nodes] - trees.begin[nodes]
    assert count_members(trees, leaves) == (len(sizes), sizes.sum())
    assert count_members(trees, leaves[:0]) == (0, 0)
    with pytest.raises(ValueError, match="a node that its tree does not have"):
        count_members(trees, leaves + 1000)
