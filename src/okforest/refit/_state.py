"""Checks of refitted models that were read from a file."""

from typing import Any

import numpy as np

from okforest.models._tree_model import TreeModel
from okforest.refit._leaves import LeafExpansion


def check_refit(model: Any, n: int) -> None:
    """Check the forest, the leaves of the training rows and the values of leaves."""
    forest = model.estimator_
    if not isinstance(forest, TreeModel):
        raise ValueError("estimator_ is not a forest")
    forest.check_state()
    trees, leaves = forest.trees_, model.training_leaves_
    if not isinstance(leaves, np.ndarray) or leaves.shape != (n, len(trees)):
        raise ValueError("training_leaves_ does not have a row per training row")
    if leaves.dtype.kind != "i" or (leaves < 0).any():
        raise ValueError("training_leaves_ does not hold leaves")
    if (leaves >= np.diff(trees.node_offsets)).any():
        raise ValueError("training_leaves_ holds nodes that do not exist")
    if (trees.left[leaves + trees.node_offsets[:-1]] >= 0).any():
        raise ValueError("training_leaves_ holds nodes that are not leaves")
    if hasattr(model, "leaf_values_"):
        values = model.leaf_values_
        expected = LeafExpansion(trees).n_leaves
        if not isinstance(values, np.ndarray) or values.shape[:1] != (expected,):
            raise ValueError(f"leaf_values_ does not have {expected} entries")
