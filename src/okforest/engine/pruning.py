"""Minimal cost-complexity pruning: a leaf costs its total variance, and alpha besides."""

import numpy as np

from okforest import _core
from okforest._typing import Floats
from okforest.engine.trees import Trees


def pruning_path(tree: Trees) -> tuple[Floats, Floats]:
    """Return the nested prunings of a single tree, from the whole tree to its root alone.

    Returns
    -------
    alphas : ndarray
        From which alpha each is the best, ascending from 0.
    variances : ndarray
        The total variance of its leaves, as a part of the root's weight.
    """
    if len(tree) != 1:
        raise ValueError(f"pruning_path takes one tree, and these are {len(tree)}; pick trees[t].")
    return _core.pruning_path(vars(tree))


def prune(trees: Trees, alpha: float) -> Trees:
    """Cut off the branches that reduce the variance by no more than alpha a leaf."""
    return (
        Trees.join([_pruned(trees[t], alpha) for t in range(len(trees))]) if len(trees) else trees
    )


def _pruned(tree: Trees, alpha: float) -> Trees:
    fate = _core.prune(vars(tree), alpha)
    kept, is_leaf = fate != 2, (fate == 1) | (tree.left < 0)
    number = np.cumsum(kept, dtype=np.int32) - 1
    changed = {
        "left": np.where(is_leaf, -1, number[np.where(is_leaf, 0, tree.left)]),
        "feature": np.where(is_leaf, -1, tree.feature),
        "threshold": np.where(is_leaf, 0.0, tree.threshold),
        "missing_left": ~is_leaf & tree.missing_left,
        "subset": np.where(is_leaf, -1, tree.subset),
        "weight": tree.weight,
        "variance": tree.variance,
        "begin": tree.begin,
        "end": tree.end,
    }
    arrays = {name: array[kept].astype(vars(tree)[name].dtype) for name, array in changed.items()}
    arrays["node_offsets"] = np.array([0, kept.sum()], dtype=np.int64)
    return Trees(**{**vars(tree), **arrays})
