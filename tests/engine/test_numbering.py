"""Nodes are numbered by level, whatever the order of growth and the number of threads."""

from dataclasses import replace

import numpy as np
import pytest

from growing import grow
from okforest.engine import GrowthRules


def problem(n, kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    phi = rng.normal(size=(n, 5)) + np.c_[X[:, :4], X[:, 0] * X[:, 1]]
    n_categories = np.zeros(6, np.int32)
    if kind == "mixed":
        X[:, 3:5] = np.floor(np.abs(X[:, 3:5] * 8)) % 70
        n_categories[3:5] = 70
        X[rng.random(X.shape) < 0.05] = np.nan
    return X, phi - phi.mean(axis=0), n_categories


def assert_numbered_by_level(tree):
    """Check that children follow each other, in the order of their parents."""
    splits = np.flatnonzero(tree.left >= 0)
    assert np.array_equal(tree.left[splits], 1 + 2 * np.arange(len(splits)))
    words = tree.subset[tree.subset >= 0]
    assert np.array_equal(words, np.sort(words))


@pytest.mark.parametrize("order", ["depth", "variance", "gain"])
@pytest.mark.parametrize("kind", ["numbers", "mixed"])
def test_by_level(order, kind):
    """All orders of growth give the same arrays, if they grow the same tree."""
    X, phi, n_categories = problem(300, kind)
    limit = {} if order == "depth" else {"max_leaf_nodes": 299}
    rules = GrowthRules(order=order, max_features=3, min_samples_leaf=3, **limit)
    trees = grow(X, phi, rules, n_categories=n_categories)
    assert_numbered_by_level(trees[0])
    expected = grow(
        X, phi, GrowthRules(max_features=3, min_samples_leaf=3), n_categories=n_categories
    )
    for name in ("feature", "threshold", "left", "subset", "subset_words", "begin", "members"):
        assert np.array_equal(getattr(trees, name), getattr(expected, name))


@pytest.mark.parametrize("order", ["variance", "gain"])
@pytest.mark.parametrize("random_splits", [False, True])
def test_a_limit_of_leaves_that_depth_implies(order, random_splits):
    """With room for all leaves of its depth, a tree is the same to the last bit in any order."""
    X, phi, _ = problem(300, "numbers")
    shared = {"random_splits": random_splits, "max_features": 3, "max_depth": 4}
    expected = grow(X, phi @ phi.T, GrowthRules(**shared), gram=True)
    rules = GrowthRules(order=order, max_leaf_nodes=16, **shared)
    trees = grow(X, phi @ phi.T, rules, gram=True)
    for name, array in vars(expected).items():
        assert np.array_equal(getattr(trees, name), array), name
    fewer = grow(X, phi @ phi.T, replace(rules, max_leaf_nodes=15), gram=True)
    assert (fewer.left < 0).sum() == 15 < (trees.left < 0).sum()


@pytest.mark.parametrize("kind", ["numbers", "mixed"])
@pytest.mark.parametrize("random_splits", [False, True])
@pytest.mark.parametrize("n_draws", [0, 6000])
def test_threads_share_a_tree(kind, random_splits, n_draws):
    """With fewer trees than threads, branches are grown in parallel: the same arrays."""
    X, phi, n_categories = problem(6000, kind)
    rules = GrowthRules(random_splits=random_splits, max_features=3, min_samples_leaf=2)
    options = {"n_trees": 2, "n_draws": n_draws, "n_categories": n_categories}
    one = grow(X, phi, rules, **options)
    many = grow(X, phi, rules, n_threads=5, **options)
    for name, array in vars(one).items():
        assert np.array_equal(getattr(many, name), array), name
    assert_numbered_by_level(many[1])


def test_progress_of_shared_trees():
    """Progress ends with the number of trees."""
    X, phi, _ = problem(5000, "numbers")
    seen = []
    grow(X, phi, GrowthRules(), n_trees=1, n_threads=4, progress=seen.append)
    assert seen[-1] == 1
    assert set(seen) <= {0, 1}
