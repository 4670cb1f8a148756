"""Trees as plain arrays, and values derived from them: leaves, members, the partition of rows."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._utils.arrays import Booleans, Floats, Ints, aligned

# For each array of offsets, the arrays that it divides into trees.
PARTS = {
    "node_offsets": (
        "feature",
        "left",
        "threshold",
        "missing_left",
        "subset",
        "weight",
        "variance",
        "begin",
        "end",
    ),
    "member_offsets": ("members", "times"),
    "subset_offsets": ("subset_words",),
}


@dataclass(frozen=True)
class Trees:
    """Trees, concatenated in flat arrays.

    Node numbers, member positions and word positions are relative to the start of their tree. The
    root is node 0. The right child of a node is the node after its left child.

    Parameters
    ----------
    node_offsets, member_offsets, subset_offsets : ndarray of shape (n_trees + 1,), int64
        Where the nodes, members and words of each tree begin.
    feature, left : ndarray of shape (n_nodes,), int32
        The feature that a node tests, and its left child; -1 in a leaf.
    threshold : ndarray of shape (n_nodes,), float64
        The threshold of a numeric test: x <= threshold goes left.
    missing_left : ndarray of shape (n_nodes,), bool
        Whether missing values and unknown categories go left.
    subset : ndarray of shape (n_nodes,), int32
        Where the words of a categorical test begin; -1 for a numeric test.
    subset_words : ndarray of shape (n_words,), uint64
        Sets of category codes that go left: bit c % 64 of word c // 64 is code c.
    weight, variance : ndarray of shape (n_nodes,), float64
        Total weight and total variance of a node (weight times variance of its outputs).
    begin, end : ndarray of shape (n_nodes,), int32
        The range of a node's members.
    members : ndarray of shape (n_members,), int32
        Training rows; the members of a node are contiguous.
    times : ndarray of shape (n_members,) or (0,), int32
        How often each member was drawn for its tree; empty without bootstrap.
    row_weight : ndarray of shape (n_train,), float64
        The weight of each training row as a member that is drawn once.
    n_categories : ndarray of shape (n_features,), int32
        Number of categories of each feature, 0 if it is numeric.
    """

    node_offsets: npt.NDArray[np.int64]
    member_offsets: npt.NDArray[np.int64]
    subset_offsets: npt.NDArray[np.int64]
    feature: Ints
    left: Ints
    threshold: Floats
    missing_left: Booleans
    subset: Ints
    subset_words: npt.NDArray[np.uint64]
    weight: Floats
    variance: Floats
    begin: Ints
    end: Ints
    members: Ints
    times: Ints
    row_weight: Floats
    n_categories: Ints

    def __setstate__(self, state: dict[str, npt.NDArray[Any]]) -> None:
        vars(self).update({name: aligned(array) for name, array in state.items()})

    def __len__(self) -> int:
        return len(self.node_offsets) - 1

    def __getitem__(self, t: int) -> "Trees":
        """Return tree number t, as views."""
        t = range(len(self))[t]
        arrays = dict(vars(self))
        for offsets, names in PARTS.items():
            bounds = arrays[offsets][t : t + 2]
            arrays[offsets] = bounds - bounds[0]
            arrays.update({name: arrays[name][bounds[0] : bounds[1]] for name in names})
        return Trees(**arrays)

    @staticmethod
    def join(parts: Sequence["Trees"]) -> "Trees":
        """Concatenate the trees of several forests, grown on the same rows and features."""
        arrays = dict(vars(parts[0]))
        for offsets, names in PARTS.items():
            sizes = [np.diff(getattr(part, offsets)) for part in parts]
            arrays[offsets] = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
            for name in names:
                arrays[name] = np.concatenate([getattr(part, name) for part in parts])
        return Trees(**arrays)

    def left_categories(self, node: int) -> npt.NDArray[np.int64] | None:
        """Return the category codes that go left at a node of a single tree; None if numeric."""
        if self.subset[node] < 0:
            return None
        n_categories = self.n_categories[self.feature[node]]
        words = self.subset_words[self.subset[node] :][: (n_categories + 63) // 64]
        bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
        return np.flatnonzero(bits[:n_categories])

    def are_members(self) -> Booleans:
        """Return which rows each tree was grown on, as an array of shape (n_train, n_trees)."""
        member = np.zeros((len(self.row_weight), len(self)), dtype=bool)
        member[self.members, self.member_trees] = True
        return member

    @property
    def member_trees(self) -> npt.NDArray[np.intp]:
        """The tree of each member."""
        return np.repeat(np.arange(len(self)), np.diff(self.member_offsets))

    @property
    def node_trees(self) -> npt.NDArray[np.intp]:
        """The tree of each node."""
        return np.repeat(np.arange(len(self)), np.diff(self.node_offsets))

    def leaves_by_tree(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return the leaves of all trees, in the order of their members, and the tree of each."""
        leaf = np.flatnonzero(self.left < 0)
        if len(self) == 1:  # as in every round of boosting
            return leaf[np.argsort(self.begin[leaf])], np.zeros(len(leaf), dtype=np.intp)
        tree = self.node_trees
        leaf = leaf[np.lexsort((self.begin[leaf], tree[leaf]))]
        return leaf, tree[leaf]

    @property
    def member_leaves(self) -> Ints:
        """The leaf of each member."""
        leaf, tree = self.leaves_by_tree()
        number = leaf - self.node_offsets[tree]
        return np.repeat(number, self.end[leaf] - self.begin[leaf]).astype(np.int32)

    def leaf_indicator(self, leaves: Ints) -> sp.csr_array:
        """Return a 0/1 matrix of shape (n, n_nodes): the leaves of each row in all trees."""
        n, n_trees = leaves.shape
        columns = (leaves + self.node_offsets[:-1]).ravel()
        offsets = np.arange(n + 1) * n_trees
        return sp.csr_array((np.ones(n * n_trees), columns, offsets), shape=(n, len(self.weight)))

    def variance_reduction(self, n_features: int) -> Floats:
        """Return the total variance reduction of the splits on each feature."""
        shift = np.repeat(self.node_offsets[:-1], np.diff(self.node_offsets))
        split = np.flatnonzero(self.left >= 0)
        left = self.left[split] + shift[split]
        gain = self.variance[split] - self.variance[left] - self.variance[left + 1]
        reduction = np.zeros(n_features)
        np.add.at(reduction, self.feature[split], gain)
        return reduction


def move_members(trees: Trees, leaves: Ints) -> Trees:
    """Return trees whose members are in other leaves, without leaves that become empty.

    A split with an empty side is replaced by its other side. A node gets the weight of its new
    members; its variance, that of the rows that it was grown on, stays.

    Parameters
    ----------
    trees : Trees
        The trees.
    leaves : ndarray of shape (n_train, n_trees)
        The leaf to which each training row moves in each tree.
    """
    member_tree, node_tree = trees.member_trees, trees.node_trees
    shift = trees.node_offsets[node_tree]
    leaf, leaf_tree = trees.leaves_by_tree()
    rank = np.zeros(len(trees.left), dtype=np.intp)
    rank[leaf] = np.arange(len(leaf))
    reached = leaves[trees.members, member_tree] + trees.node_offsets[member_tree]
    drawn = trees.times if len(trees.times) else np.ones(len(trees.members), dtype=np.int32)
    shape = len(leaf), len(trees.row_weight)
    by_leaf = sp.csr_array((drawn, (rank[reached], trees.members)), shape=shape)
    members = by_leaf.indices.astype(np.int32, copy=False)

    # Every node's range begins where a leaf's range begins, and ends where one ends.
    moved = np.zeros(len(members) + 1, dtype=np.int64)
    moved[trees.end[leaf] + trees.member_offsets[leaf_tree]] = by_leaf.indptr[1:]
    first = trees.member_offsets[node_tree]
    begin, end = moved[trees.begin + first], moved[trees.end + first]

    # The node that a split comes down to, if it has an empty side: its other side, and so on.
    empty, split = begin == end, trees.left >= 0
    left = np.where(split, trees.left + shift, 0)
    passed = split & ~empty & (empty[left] | empty[np.where(split, left + 1, 0)])
    content = np.arange(len(split))
    content[passed] = np.where(empty[left[passed]], left[passed] + 1, left[passed])
    while (passed[content]).any():
        content = content[content]
    kept = ~empty  # the places of nodes that are left: each takes the content of one
    kept[left[passed]] = kept[left[passed] + 1] = False
    content, number = content[kept], np.cumsum(kept) - 1
    offsets = np.append(0, np.cumsum(np.bincount(node_tree[kept], minlength=len(trees))))

    arrays = dict(vars(trees))
    for name in PARTS["node_offsets"]:
        arrays[name] = arrays[name][content]
    split, first = split[content], first[content]
    below = number[left[content]] - offsets[node_tree[content]]
    arrays["left"] = np.where(split, below, -1).astype(np.int32)
    begin, end = begin[content], end[content]
    arrays["begin"], arrays["end"] = (
        (begin - first).astype(np.int32),
        (end - first).astype(np.int32),
    )
    weight = trees.row_weight[members] * by_leaf.data
    bounds = np.column_stack([begin, end]).ravel()
    arrays["weight"] = np.add.reduceat(np.append(weight, 0.0), bounds)[::2].copy()
    arrays.update(node_offsets=offsets.astype(np.int64), members=members)
    if len(trees.times):
        arrays["times"] = by_leaf.data
    return Trees(**arrays)


@dataclass(frozen=True)
class LeafPartition:
    """The leaves of one tree: their members, and the leaf that each row reaches.

    Parameters
    ----------
    offsets : ndarray of shape (n_leaves + 1,), int64
        Where each leaf's members begin.
    members : ndarray, int32
        Rows, leaf by leaf.
    weights : ndarray, float64
        The weight of each member in the mean of its leaf.
    places : ndarray of shape (n,), int32
        The leaf of each row, including rows that are not members.
    """

    offsets: npt.NDArray[np.int64]
    members: Ints
    weights: Floats
    places: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def arrays(self) -> tuple[npt.NDArray[np.int64], Ints, Floats, Ints]:
        """Return the four arrays in the order that the core expects."""
        return self.offsets, self.members, self.weights, self.places

    @cached_property
    def means(self) -> sp.csr_array:
        """The weights of rows in the means of leaves, shape (n_leaves, n)."""
        parts = (self.weights, self.members, self.offsets)
        return sp.csr_array(parts, shape=(len(self), len(self.places)))


@dataclass(frozen=True)
class GrownRound:
    """A tree of a round of boosting.

    Parameters
    ----------
    tree : Trees
        The tree.
    places : ndarray of shape (n,)
        The leaf that each row reaches. Leaves are numbered in the order of their members.
    means : ndarray of shape (n_leaves, rank)
        What was subtracted from the rows of each leaf.
    """

    tree: Trees
    places: Ints
    means: Floats


# Members are packed from this number on, in trees of at most this number of leaves.
LEAST_PACKED = 2**14
MOST_PACKED_LEAVES = 255


def pack_members(trees: Trees) -> npt.NDArray[np.uint8] | None:
    """Return the leaf of every row in every tree, in 4 or 8 bits, or None if members take less.

    Leaves are numbered in the order of their members; rows that are not members have the number
    after the last. Small trees that were grown on most rows, as in boosting, take less memory this
    way: members have 32 bits.
    """
    n = len(trees.row_weight)
    leaf, tree = trees.leaves_by_tree()
    n_leaves = np.bincount(tree, minlength=len(trees))
    n_bits = 4 if n_leaves.max() < 16 else 8
    is_gain = 2 * n_bits * n * len(trees) <= 32 * len(trees.members)
    is_large = len(trees.members) >= LEAST_PACKED
    if not (is_large and is_gain) or len(trees.times) or n_leaves.max() > MOST_PACKED_LEAVES:
        return None
    counts = np.split(trees.end[leaf] - trees.begin[leaf], np.cumsum(n_leaves)[:-1])
    numbers = np.empty((len(trees), n), dtype=np.uint8)
    for t, own in enumerate(counts):
        members = trees.members[trees.member_offsets[t] : trees.member_offsets[t + 1]]
        if own.sum() != len(members):
            return None
        numbers[t] = n_leaves[t]
        numbers[t, members] = np.repeat(np.arange(n_leaves[t], dtype=np.uint8), own)
        if not np.array_equal(_members_of(numbers[t], len(members)), members):
            return None  # the rows of a leaf do not ascend
    if n_bits == 8:
        return numbers.ravel()
    flat = np.append(numbers, np.zeros(numbers.size % 2, dtype=np.uint8)).reshape(-1, 2)
    return flat[:, 0] + np.uint8(16) * flat[:, 1]


def unpack_members(
    packed: npt.NDArray[np.uint8], member_offsets: npt.NDArray[np.int64], n_rows: int
) -> Ints:
    """Return the members of trees from the numbers of leaves, as :func:`pack_members` has them.

    A ValueError is raised if their shapes do not fit.
    """
    _require(packed.dtype == np.uint8 and packed.ndim == 1, "packed members are not bytes")
    _require(member_offsets.dtype == INT64 and len(member_offsets) > 1, "there are no trees")
    counts = np.diff(member_offsets)
    size = len(counts) * n_rows
    _require(len(packed) in (size, (size + 1) // 2), "packed members have the wrong length")
    _require(((counts >= 0) & (counts <= n_rows)).all(), "a tree has more members than rows")
    if len(packed) < size:
        packed = np.stack([packed & 15, packed >> 4], axis=1).ravel()[:size]
    numbers = packed.reshape(len(counts), n_rows)
    return np.concatenate([_members_of(*pair) for pair in zip(numbers, counts, strict=True)])


def _members_of(numbers: npt.NDArray[np.uint8], n_members: int) -> Ints:
    return np.argsort(numbers, kind="stable")[:n_members].astype(np.int32)


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


def check_arrays(trees: Trees) -> None:
    """Raise a ValueError unless the arrays have the types and lengths that trees have."""
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
    n_trees = len(trees.node_offsets) - 1
    _check_offsets("node_offsets", trees.node_offsets, n_trees, n_nodes)
    _check_offsets("member_offsets", trees.member_offsets, n_trees, len(trees.members))
    n_words = len(trees.subset_words)
    _check_offsets("subset_offsets", trees.subset_offsets, n_trees, n_words, empty=True)
    _require(
        len(trees.times) in (0, len(trees.members)),
        "times does not have one number > 0 for each member",
    )


def _require(condition: Any, problem: str) -> None:
    if not condition:
        raise ValueError(problem)


def _check_offsets(
    name: str, offsets: npt.NDArray[np.int64], n_trees: int, total: int, *, empty: bool = False
) -> None:
    """Check that offsets ascend from 0 to the total, strictly unless parts may be empty."""
    _require(len(offsets) == n_trees + 1 >= 2, f"{name} has {len(offsets)} entries")
    _require(offsets[0] == 0 and offsets[-1] == total, f"{name} does not go from 0 to {total}")
    ascending = offsets[1:] >= offsets[:-1] if empty else offsets[1:] > offsets[:-1]
    _require(ascending.all(), f"{name} does not ascend")
