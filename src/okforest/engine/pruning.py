"""Minimal cost-complexity pruning: the cost of a leaf is its total variance plus alpha."""

import numpy as np

from okforest.engine.cpu import prune_nodes
from okforest.engine.trees import Trees


def prune(trees: Trees, alpha: float) -> Trees:
    """Remove the branches that reduce the variance by at most alpha per leaf."""
    return (
        Trees.join([_pruned(trees[t], alpha) for t in range(len(trees))]) if len(trees) else trees
    )


def _pruned(tree: Trees, alpha: float) -> Trees:
    fate = prune_nodes(tree, alpha)
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
