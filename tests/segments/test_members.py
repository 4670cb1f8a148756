"""Trees whose members are groups of the rows they were grown on."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from okforest import OKRandomForest
from okforest.engine import apply, check_trees, leaf_weights
from okforest.segments.learners import fill_leaves, merge_members
from reference.trees import forest_weights


@given(st.integers(0, 1000))
def test_merged_members(seed):
    """Trees over objects have the leaf weights of trees over rows, summed, and pass the checks."""
    draw = np.random.default_rng(seed)
    n, n_groups = 30, 7
    group = np.concatenate([np.arange(n_groups), draw.integers(0, n_groups, n - n_groups)])
    X, weight = draw.normal(size=(n, 3)), draw.integers(0, 3, n_groups) + (np.arange(n_groups) < 3)
    forest = OKRandomForest(3, bootstrap=bool(seed % 2), min_samples_leaf=2, random_state=seed)
    forest.fit(X, X, sample_weight=weight[group])
    rows = forest.predict_weights(X).toarray()
    trees = merge_members(forest.trees_, group, n_groups)
    check_trees(trees, 3)
    forest.trees_ = trees
    forest._forget("outputs_", "kernel_", "_span")
    merged = forest.predict_weights(X).toarray()
    expected = np.stack([rows[:, group == g].sum(axis=1) for g in range(n_groups)], axis=1)
    np.testing.assert_allclose(merged, expected)


@given(st.integers(0, 1000))
def test_filled_leaves(seed):
    """Leaves filled with the rows that trees were grown on, each a group, are as they were."""
    draw = np.random.default_rng(seed)
    X, weight = draw.normal(size=(25, 3)), draw.integers(0, 3, 25) + 1.0 * (np.arange(25) < 3)
    forest = OKRandomForest(3, bootstrap=False, min_samples_leaf=2, random_state=seed)
    forest.fit(X, X, sample_weight=weight)
    leaves, rows = apply(forest.trees_, X), np.arange(25)
    batches = ((leaves[part], rows[part]) for part in np.split(draw.permutation(25), [4, 4, 15]))
    trees = fill_leaves(forest.trees_, batches, weight)
    check_trees(trees, 3)
    np.testing.assert_allclose(trees.weight, forest.trees_.weight)
    leaves = apply(trees, X)
    np.testing.assert_allclose(
        leaf_weights(trees, leaves).toarray(), forest_weights(forest.trees_, X, 25)
    )
