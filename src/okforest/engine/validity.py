"""Checks of the arrays of trees that come from a file.

Compiled code trusts these arrays. The checks make sure that every index is in range, and that every
path from a root ends in a leaf.
"""

from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from okforest.engine.trees import Trees

INT32, INT64, UINT64 = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint64)
FLOAT64, BOOL = np.dtype(np.float64), np.dtype(np.bool_)

PER_NODE = {
    "feature": INT32,
    "left": INT32,
    "threshold": FLOAT64,
    "weight": FLOAT64,
    "variance": FLOAT64,
    "begin": INT32,
    "end": INT32,
    "missing_left": BOOL,
    "subset": INT32,
}
OTHERS = {
    "node_offsets": INT64,
    "member_offsets": INT64,
    "members": INT32,
    "times": INT32,
    "row_weight": FLOAT64,
    "subset_offsets": INT64,
    "subset_words": UINT64,
    "n_categories": INT32,
}


def check_trees(trees: Trees, n_features: int) -> None:
    """Raise a ValueError that names the problem unless these arrays are valid trees.

    The check takes a few passes over the arrays, and the memory of a few of them.
    """
    _check_arrays(trees)
    n_trees = len(trees.node_offsets) - 1
    _check_offsets("node_offsets", trees.node_offsets, n_trees, len(trees.feature))
    _check_offsets("member_offsets", trees.member_offsets, n_trees, len(trees.members))
    n_nodes = np.diff(trees.node_offsets)
    _check_splits(trees, n_nodes, n_features)
    _check_members(trees, n_nodes)
    _check_subsets(trees, n_nodes, n_trees, n_features)


def _require(condition: Any, problem: str) -> None:
    if not condition:
        raise ValueError(problem)


def _check_arrays(trees: Trees) -> None:
    n_nodes = len(trees.feature)
    for name in (field.name for field in fields(trees)):
        array = getattr(trees, name)
        _require(isinstance(array, np.ndarray), f"{name} is not an array")
        _require(array.ndim == 1, f"{name} has {array.ndim} dimensions, not 1")
        _require(array.flags.c_contiguous, f"{name} is not contiguous")
        expected = (PER_NODE | OTHERS)[name]
        _require(array.dtype == expected, f"{name} is of type {array.dtype}, not {expected}")
        if name in PER_NODE:
            _require(len(array) == n_nodes, f"{name} has {len(array)} entries for {n_nodes} nodes")
        if array.dtype == BOOL:  # other bytes are undefined behaviour in C++
            _require((array.view(np.uint8) <= 1).all(), f"{name} has bytes other than 0 and 1")


def _check_offsets(
    name: str, offsets: npt.NDArray[np.int64], n_trees: int, total: int, *, empty: bool = False
) -> None:
    """Check that offsets ascend from 0 to the total, strictly unless parts may be empty."""
    _require(len(offsets) == n_trees + 1 >= 2, f"{name} has {len(offsets)} entries")
    _require(offsets[0] == 0 and offsets[-1] == total, f"{name} does not go from 0 to {total}")
    ascending = offsets[1:] >= offsets[:-1] if empty else offsets[1:] > offsets[:-1]
    _require(ascending.all(), f"{name} does not ascend")


def _check_splits(trees: Trees, n_nodes: npt.NDArray[np.int64], n_features: int) -> None:
    start = np.repeat(trees.node_offsets[:-1], n_nodes)
    node = np.arange(len(start)) - start
    split = trees.left != -1
    left = trees.left[split].astype(np.int64)
    # Children come after their parent: there are no cycles.
    _require((left > node[split]).all(), "a node's left child is not after the node")
    _require((left + 1 < np.repeat(n_nodes, n_nodes)[split]).all(), "a child is outside its tree")
    lefts = left + start[split]
    n_parents = np.bincount(np.concatenate([lefts, lefts + 1]), minlength=len(start))
    _require((n_parents <= 1).all(), "a node has two parents")
    tested = trees.feature[split]
    _require(
        ((tested >= 0) & (tested < n_features)).all(),
        f"a node tests a feature outside 0…{n_features - 1}",
    )
    _require((trees.feature[~split] == -1).all(), "a leaf tests a feature")


def _check_members(trees: Trees, n_nodes: npt.NDArray[np.int64]) -> None:
    n_members = np.repeat(np.diff(trees.member_offsets), n_nodes)
    in_range = (trees.begin >= 0) & (trees.begin < trees.end) & (trees.end <= n_members)
    _require(in_range.all(), "a node's range of members is empty or outside its tree")
    n_train = len(trees.row_weight)
    _require(
        ((trees.members >= 0) & (trees.members < n_train)).all(),
        f"a member is outside the training rows 0…{n_train - 1}",
    )
    _require(
        len(trees.times) in (0, len(trees.members)) and (trees.times > 0).all(),
        "times does not have one number > 0 for each member",
    )
    positive = np.isfinite(trees.weight) & (trees.weight > 0)
    _require(positive.all(), "a node's weight is not a positive number")
    not_negative = np.isfinite(trees.row_weight) & (trees.row_weight >= 0)
    _require(not_negative.all(), "a row's weight is not a number ≥ 0")


def _check_subsets(
    trees: Trees, n_nodes: npt.NDArray[np.int64], n_trees: int, n_features: int
) -> None:
    """Check that the words of every categorical test are within those of its tree."""
    n_categories = trees.n_categories.astype(np.int64)
    _require(
        len(n_categories) == n_features and (n_categories >= 0).all(),
        f"n_categories does not have one number ≥ 0 for each of {n_features} features",
    )
    _check_offsets(
        "subset_offsets", trees.subset_offsets, n_trees, len(trees.subset_words), empty=True
    )
    categorical = (trees.subset != -1) & (trees.left != -1)
    begin = trees.subset[categorical].astype(np.int64)
    n_words = (n_categories[trees.feature[categorical]] + 63) // 64
    _require((n_words > 0).all(), "a categorical test is on a numeric feature")
    available = np.repeat(np.diff(trees.subset_offsets), n_nodes)[categorical]
    _require(
        ((begin >= 0) & (begin + n_words <= available)).all(),
        "a node's subset is outside its tree's words",
    )
