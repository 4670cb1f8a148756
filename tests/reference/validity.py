"""Which arrays are valid trees: the conditions, one after the other."""

import numpy as np


def check_trees(trees, n_features):
    """Raise a ValueError that names the problem unless these arrays are valid trees.

    The check takes a few passes over the arrays, and the memory of a few of them.
    """
    flags = trees.missing_left.view(np.uint8)
    _require((flags <= 1).all(), "missing_left has bytes other than 0 and 1")
    n_trees = len(trees.node_offsets) - 1
    _check_offsets("node_offsets", trees.node_offsets, n_trees, len(trees.feature))
    _check_offsets("member_offsets", trees.member_offsets, n_trees, len(trees.members))
    n_nodes = np.diff(trees.node_offsets)
    _check_splits(trees, n_nodes, n_features)
    _check_members(trees, n_nodes)
    _check_subsets(trees, n_nodes, n_trees, n_features)


def _require(condition, problem):
    if not condition:
        raise ValueError(problem)


def _check_offsets(name, offsets, n_trees, total, *, empty=False):
    """Check that offsets ascend from 0 to the total, strictly unless parts may be empty."""
    _require(len(offsets) == n_trees + 1 >= 2, f"{name} has {len(offsets)} entries")
    _require(offsets[0] == 0 and offsets[-1] == total, f"{name} does not go from 0 to {total}")
    ascending = offsets[1:] >= offsets[:-1] if empty else offsets[1:] > offsets[:-1]
    _require(ascending.all(), f"{name} does not ascend")


def _check_splits(trees, n_nodes, n_features):
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


def _check_members(trees, n_nodes):
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


def _check_subsets(trees, n_nodes, n_trees, n_features):
    """Check that the words of every categorical test belong to its tree."""
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
