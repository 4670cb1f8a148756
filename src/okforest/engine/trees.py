"""Grown trees as plain arrays, and what follows from them: leaves, weights, importances."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest import _core
from okforest._typing import Floats, Ints, Weights


@dataclass(frozen=True)
class Trees:
    """Trees, one after the other in flat arrays.

    Node numbers and member positions count from the start of their own tree, whose root is node 0.
    A node's right child is the node after its left child.

    Parameters
    ----------
    node_offsets, member_offsets : ndarray of shape (n_trees + 1,), int64
        Where each tree's nodes and members begin.
    feature, left : ndarray of shape (n_nodes,), int32
        The feature a node tests and its left child; -1 in a leaf.
    threshold : ndarray of shape (n_nodes,), float64
        Inputs with x <= threshold go left.
    weight, variance : ndarray of shape (n_nodes,), float64
        A node's total weight and total variance (weight times variance of its outputs).
    begin, end : ndarray of shape (n_nodes,), int32
        A node's range of members.
    members : ndarray of shape (n_members,), int32
        Training rows, the members of each node side by side; repeated if drawn repeatedly.
    row_weight : ndarray of shape (n_train,), float64
        What one membership of each training row weighs.
    """

    node_offsets: npt.NDArray[np.int64]
    member_offsets: npt.NDArray[np.int64]
    feature: Ints
    left: Ints
    threshold: Floats
    weight: Floats
    variance: Floats
    begin: Ints
    end: Ints
    members: Ints
    row_weight: Floats

    def __len__(self) -> int:
        return len(self.node_offsets) - 1

    def __getitem__(self, t: int) -> "Trees":
        """Tree number t, as views."""
        t = range(len(self))[t]
        nodes = slice(*self.node_offsets[t : t + 2])
        members = slice(*self.member_offsets[t : t + 2])
        return Trees(
            node_offsets=self.node_offsets[t : t + 2] - self.node_offsets[t],
            member_offsets=self.member_offsets[t : t + 2] - self.member_offsets[t],
            feature=self.feature[nodes],
            left=self.left[nodes],
            threshold=self.threshold[nodes],
            weight=self.weight[nodes],
            variance=self.variance[nodes],
            begin=self.begin[nodes],
            end=self.end[nodes],
            members=self.members[members],
            row_weight=self.row_weight,
        )

    def apply(self, X: npt.NDArray[Any], n_threads: int = 1) -> Ints:
        """Return the leaf that each row of X reaches in each tree, shape (n, n_trees)."""
        if X.shape[1] <= self.feature.max(initial=-1):
            raise ValueError(
                f"X has {X.shape[1]} features; these trees test feature {self.feature.max()}."
            )
        return _core.apply(
            X=X,
            node_offsets=self.node_offsets,
            feature=self.feature,
            threshold=self.threshold,
            left=self.left,
            n_threads=n_threads,
        )

    def weights(self, leaves: Ints, n_threads: int = 1) -> Weights:
        """Return the mean over trees of the leaves' weights over training rows."""
        data, indices, indptr = _core.leaf_weights(
            leaves=leaves,
            node_offsets=self.node_offsets,
            member_offsets=self.member_offsets,
            weight=self.weight,
            begin=self.begin,
            end=self.end,
            members=self.members,
            row_weight=self.row_weight,
            n_threads=n_threads,
        )
        return sp.csr_array((data, indices, indptr), shape=(len(leaves), len(self.row_weight)))

    def leaf_indicator(self, leaves: Ints) -> Weights:
        """Return a 0/1 matrix of shape (n, n_nodes): which nodes, of all trees, are in a row."""
        n, n_trees = leaves.shape
        columns = (leaves + self.node_offsets[:-1]).ravel()
        offsets = np.arange(n + 1) * n_trees
        return sp.csr_array((np.ones(n * n_trees), columns, offsets), shape=(n, len(self.weight)))

    def variance_reduction(self, n_features: int) -> Floats:
        """Return the total variance reduction brought by the splits on each feature."""
        shift = np.repeat(self.node_offsets[:-1], np.diff(self.node_offsets))
        split = np.flatnonzero(self.left >= 0)
        left = self.left[split] + shift[split]
        gain = self.variance[split] - self.variance[left] - self.variance[left + 1]
        reduction = np.zeros(n_features)
        np.add.at(reduction, self.feature[split], gain)
        return reduction
