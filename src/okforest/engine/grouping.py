"""Trees grown on segments, with objects as their members.

A leaf then holds which objects have segments in it, and how many: one entry per object and leaf,
instead of one per segment and tree.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from okforest._utils.arrays import Floats, Ints
from okforest.engine.trees import Trees

Positions = npt.NDArray[np.intp]
Members = tuple[Positions, Ints, Ints]  # size of each leaf; groups and numbers, leaf by leaf


def merge_members(trees: Trees, group: Positions, n_groups: int) -> Trees:
    """Replace the members of every leaf by the groups they belong to, each with its number.

    The weights of a leaf over groups are the sums of its weights over members. The rows of a group
    must have the same weight.
    """
    row_weight = np.zeros(n_groups)
    row_weight[group] = trees.row_weight
    found = []
    for t in range(len(trees)):
        tree = trees[t]
        leaf, _ = tree.leaves_by_tree()
        rank = np.repeat(np.arange(len(leaf)), tree.end[leaf] - tree.begin[leaf])
        pairs = rank * n_groups + group[tree.members]
        times = tree.times if len(tree.times) else None
        found.append(_counted(pairs, len(leaf), n_groups, times))
    return _with_members(trees, found, row_weight)


def fill_leaves(
    trees: Trees, batches: Iterable[tuple[Ints, Positions]], row_weight: Floats
) -> Trees:
    """Replace the members of every leaf by the groups of other rows that reach it.

    A batch has the leaves of some rows, shape (n, n_trees), and the group of each; ``row_weight``
    has the weight of a row of each group. The rows that the trees were grown on must be among them,
    so that no leaf is empty. A node gets the weight of its new members; its variance stays.

    A batch is counted before the next one is made: memory is proportional to the number of members.
    """
    n_groups = len(row_weight)
    ranks = [_leaf_ranks(trees[t]) for t in range(len(trees))]
    parts: list[list[tuple[Positions, Ints]]] = [[] for _ in ranks]
    for leaves, group in batches:
        used = np.flatnonzero(row_weight[group])
        for t, rank in enumerate(ranks):
            pairs = rank[leaves[used, t]].astype(np.intp) * n_groups + group[used]
            distinct, counts = np.unique(pairs, return_counts=True)
            parts[t].append((distinct, counts.astype(np.int32)))
    found = []
    for own, rank in zip(parts, ranks, strict=True):
        pairs = np.concatenate([distinct for distinct, _ in own])
        times = np.concatenate([counts for _, counts in own])
        own.clear()
        found.append(_counted(pairs, int(rank.max()) + 1, n_groups, times))
    filled = _with_members(trees, found, row_weight)
    weight = np.empty_like(filled.weight)
    for t, (_, members, times) in enumerate(found):
        total = np.append(0.0, np.cumsum(times * row_weight[members]))
        nodes = slice(trees.node_offsets[t], trees.node_offsets[t + 1])
        weight[nodes] = total[filled.end[nodes]] - total[filled.begin[nodes]]
    return replace(filled, weight=weight)


def _leaf_ranks(tree: Trees) -> Ints:
    """Return the number of every leaf in the order of members; -1 for other nodes."""
    leaf, _ = tree.leaves_by_tree()
    rank = np.full(len(tree.left), -1, dtype=np.int32)
    rank[leaf] = np.arange(len(leaf))
    return rank


def _counted(pairs: Positions, n_leaves: int, n_groups: int, times: Ints | None) -> Members:
    """Return the members of the leaves of one tree, from pairs leaf · n_groups + group.

    Leaves are numbered in the order of their members.
    """
    if times is None:
        pairs, counts = np.unique(pairs, return_counts=True)
    else:
        pairs, inverse = np.unique(pairs, return_inverse=True)
        counts = np.round(np.bincount(inverse, times)).astype(np.intp)
    sizes = np.bincount(pairs // n_groups, minlength=n_leaves)
    return sizes, (pairs % n_groups).astype(np.int32), counts.astype(np.int32)


def _with_members(trees: Trees, found: Sequence[Members], row_weight: Floats) -> Trees:
    """Return trees whose leaves have other members."""
    begin, end = np.empty_like(trees.begin), np.empty_like(trees.end)
    for t, (sizes, _, _) in enumerate(found):
        tree, own = trees[t], slice(trees.node_offsets[t], trees.node_offsets[t + 1])
        leaf, _ = tree.leaves_by_tree()
        # Every node's range begins where a leaf's range begins, and ends where one ends.
        moved = np.empty(tree.end[0] + 1, dtype=begin.dtype)
        moved[np.append(0, tree.end[leaf])] = np.append(0, np.cumsum(sizes))
        begin[own], end[own] = moved[tree.begin], moved[tree.end]
    n_members = [len(group) for _, group, _ in found]
    return replace(
        trees,
        begin=begin,
        end=end,
        members=np.concatenate([group for _, group, _ in found]),
        times=np.concatenate([times for _, _, times in found]),
        member_offsets=np.append(0, np.cumsum(n_members)).astype(np.int64),
        row_weight=row_weight,
    )
