"""A grown ensemble as an expansion over its leaves: f(x) = L(x) z, with one value z per leaf.

L has one row per input and one column per leaf of every tree, with entries 1/M for M trees. The
forest itself has the leaf means z = A y of its training outputs; K = L A are its weights.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from okforest._columns import as_columns, is_frame
from okforest._compat import rows_of
from okforest._typing import Booleans, Floats, Ints
from okforest._validation import learn_inputs
from okforest._warnings import warn
from okforest.engine import Trees
from okforest.models._tree_model import TreeModel


@dataclass(frozen=True)
class LeafExpansion:
    """The leaves of an ensemble, numbered over all trees in the order of their nodes."""

    trees: Trees

    @property
    def n_leaves(self) -> int:
        """The number of leaves of all trees."""
        return len(self.nodes)

    @cached_property
    def nodes(self) -> Any:
        """The position of every leaf among the nodes of all trees."""
        return np.flatnonzero(self.trees.left < 0)

    @cached_property
    def _number(self) -> Any:
        """The number of the leaf at each node; without a meaning at other nodes."""
        return np.cumsum(self.trees.left < 0, dtype=np.int32) - 1

    def rows(self, leaves: Ints) -> sp.csr_array:
        """Return L for inputs that reach these leaves (n, n_trees), of shape (n, n_leaves)."""
        n, n_trees = leaves.shape
        columns = self._number[(leaves + self.trees.node_offsets[:-1]).ravel()]
        starts = np.arange(n + 1, dtype=np.int32 if n * n_trees < 2**31 else np.int64) * n_trees
        parts = (np.full(len(columns), 1.0 / n_trees), columns, starts)
        return sp.csr_array(parts, shape=(n, self.n_leaves))

    @cached_property
    def means(self) -> sp.csr_array:
        """The operator A from outputs of the training rows to means of leaves, (n_leaves, n)."""
        trees, leaf = self.trees, self.nodes
        tree = np.searchsorted(trees.node_offsets, leaf, side="right") - 1
        sizes = trees.end[leaf] - trees.begin[leaf]
        ends = np.cumsum(sizes)
        first = trees.member_offsets[tree] + trees.begin[leaf]
        position = np.arange(ends[-1]) + np.repeat(first - ends + sizes, sizes)
        members = trees.members[position]
        weight = trees.row_weight[members] / np.repeat(trees.weight[leaf], sizes)
        if len(trees.times):
            weight *= trees.times[position]
        parts = (weight, members, np.concatenate([[0], ends]))
        return sp.csr_array(parts, shape=(len(leaf), len(trees.row_weight)))

    def means_over(self, L: sp.csr_array, weight: Floats | None = None) -> sp.csr_array:
        """Return the operator from other rows, which reach leaves as L says, to means of leaves.

        Leaves that none of the rows (of positive weight) reach have a row of zeros.
        """
        members = sp.csr_array(L.T)
        members.data = np.ones(L.nnz) if weight is None else weight[members.indices]
        members.eliminate_zeros()
        totals = np.asarray(members.sum(axis=1)).ravel()
        members.data /= np.repeat(totals, np.diff(members.indptr))
        return members


def check_rows(model: TreeModel, X: Any) -> Any:
    """Return inputs in a form whose rows can be selected, after the checks of the model."""
    X = as_columns(X)
    if sp.issparse(X):
        matrix: Any = X
        X = sp.csr_array(matrix)
    elif not is_frame(X):
        X = np.asarray(X)
    learn_inputs(model, X)
    return X


def leaves_of(model: TreeModel, X: Any) -> Ints:
    """Return the leaves of inputs, of shape (n, n_trees) also for a single tree."""
    return np.asarray(model.apply(X)).reshape(-1, len(model.trees_))


def training_leaves(model: TreeModel, X: Any, grown: Booleans) -> Ints:
    """Return the leaves of inputs, some of which the trees were grown on: these are known."""
    trees = model.trees_
    if len(trees.times):  # a bootstrapped tree was not grown on all of them
        return leaves_of(model, X)
    leaves = np.empty((len(grown), len(trees)), dtype=np.int32)
    rows = np.flatnonzero(grown)
    leaves[rows[trees.members], trees.member_trees] = trees.member_leaves
    others = np.flatnonzero(~grown)
    if len(others):
        leaves[others] = leaves_of(model, rows_of(X, others))
    return leaves


def check_trees(estimator: Any, user: str = "a refit") -> None:
    """Raise a TypeError unless the estimator is a tree or a forest of okforest."""
    if not isinstance(estimator, TreeModel):
        raise TypeError(
            f"estimator is of type {type(estimator).__name__}; {user} needs the leaves of a tree "
            "or a forest of okforest, such as OKExtraTrees(min_samples_leaf=15)."
        )


def warn_if_full_grown(trees: Trees, n_rows: int, effect: str) -> None:
    """Warn if leaves hold about one training row each, and name the effect of it."""
    n_leaves = int((trees.left < 0).sum())
    if n_rows * len(trees) < 1.5 * n_leaves:
        warn(
            f"the trees are grown fully: most leaves hold one training row, so {effect}. Set "
            "min_samples_leaf of the estimator, for example to 15.",
        )
