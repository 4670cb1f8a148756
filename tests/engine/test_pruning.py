"""Minimal cost-complexity pruning, at and around the alphas of the pruning path."""

import numpy as np
import pytest

from growing import grow
from okforest.engine import GrowthRules, prune, pruning_path


def cost_of(tree):
    """Return the total variance of the leaves per unit of the root's weight."""
    return tree.variance[tree.left < 0].sum() / tree.weight[0]


def test_a_branch_is_cut_at_its_own_alpha():
    """Two branches of exactly alpha 1/2, below a root of alpha 4; all numbers are exact."""
    X = np.arange(4.0)[:, None]
    tree = grow(X, np.array([[-3.0], [-1.0], [1.0], [3.0]]), GrowthRules())
    assert tree.variance.tolist() == [20.0, 2.0, 2.0, 0.0, 0.0, 0.0, 0.0]
    alphas, costs = pruning_path(tree)
    assert alphas.tolist() == [0.0, 0.5, 4.0]
    assert costs.tolist() == [0.0, 1.0, 5.0]
    for alpha, n_nodes in ((0.5, 3), (4.0, 1)):
        assert len(prune(tree, alpha).feature) == n_nodes
        assert len(prune(tree, np.nextafter(alpha, 0)).feature) > n_nodes
    assert len(prune(tree, 0.0).feature) == 7


def test_splits_that_gain_nothing_have_alpha_zero():
    """They are cut by every alpha, and the path starts without them."""
    X = np.arange(4.0)[:, None]
    tree = grow(X, np.ones((4, 1)), GrowthRules(stop_when_pure=False))
    assert len(tree.feature) == 7
    alphas, costs = pruning_path(tree)
    assert alphas.tolist() == costs.tolist() == [0.0]
    assert len(prune(tree, 0.0).feature) == 1


@pytest.mark.parametrize("seed", range(3))
def test_the_path_lists_every_pruned_tree(seed):
    """From each alpha on, up to the next, the pruned tree has the cost on the path."""
    rng = np.random.default_rng(seed)
    X, phi = rng.normal(size=(60, 3)), rng.normal(size=(60, 2)).round(1)
    tree = grow(X, phi, GrowthRules(min_samples_leaf=2), seed=seed)
    alphas, costs = pruning_path(tree)
    assert (np.diff(alphas) > 0).all()
    for k in range(1, len(alphas)):
        assert cost_of(prune(tree, alphas[k])) == pytest.approx(costs[k], rel=1e-12)
        below = prune(tree, np.nextafter(alphas[k], 0))
        assert cost_of(below) == pytest.approx(costs[k - 1], rel=1e-12)
