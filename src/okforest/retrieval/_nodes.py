"""Trees in the compact form of a vocabulary: eight bytes for each inner node, none for a leaf."""

import numpy as np
import numpy.typing as npt

from okforest.engine import Trees

Nodes = npt.NDArray[np.uint32]
Offsets = npt.NDArray[np.int64]

MAX_FEATURES = 2**24


def pack_trees(trees: Trees) -> tuple[Nodes, Offsets]:
    """Return the nodes of trees grown on bytes, as :func:`okforest.engine.are_byte_trees` has them.

    Returns
    -------
    nodes : ndarray of shape (n_nodes, 2), uint32
        The inner nodes of all trees.
    offsets : ndarray of shape (n_trees + 1,), int64
        Where those of each tree begin.
    """
    packed = [_pack(trees[t]) for t in range(len(trees))]
    offsets = np.cumsum([0, *(len(nodes) for nodes in packed)], dtype=np.int64)
    return np.concatenate(packed), offsets


def _pack(tree: Trees) -> Nodes:
    """Pack one tree: its inner nodes, in preorder."""
    levels = _levels(tree)
    n_inner = np.zeros(len(tree.left), dtype=np.int64)  # in the subtree of each node
    for inner in reversed(levels):
        left = tree.left[inner]
        n_inner[inner] = 1 + n_inner[left] + n_inner[left + 1]
    position = np.zeros(len(tree.left), dtype=np.int64)
    for inner in levels:
        left = tree.left[inner]
        position[left] = position[inner] + 1
        position[left + 1] = position[left] + n_inner[left]
    inner = np.flatnonzero(tree.left >= 0)
    # A byte is at most a threshold if it is at most the integer below it.
    threshold = np.floor(tree.threshold[inner]).astype(np.uint32)
    nodes = np.empty((len(inner), 2), dtype=np.uint32)
    nodes[position[inner], 0] = tree.feature[inner].astype(np.uint32) << 8 | threshold
    nodes[position[inner], 1] = position[tree.left[inner] + 1]
    return nodes


def _levels(tree: Trees) -> list[npt.NDArray[np.intp]]:
    """Return the inner nodes of each depth, from the root on."""
    levels = []
    nodes = np.array([0])
    while len(inner := nodes[tree.left[nodes] >= 0]):
        levels.append(inner)
        left = tree.left[inner].astype(np.intp)
        nodes = np.concatenate([left, left + 1])
    return levels
