"""A grown ensemble as an expansion over its leaves: f(x) = L(x) z, with one value z per leaf.

L has one row per input and one column per leaf of every tree, with entries 1/M for M trees. The
forest itself has the leaf means z = A y of its training outputs; K = L A are its weights.
"""

from abc import abstractmethod
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import Tags, get_tags

from okforest._utils.arrays import Booleans, Floats, Ints
from okforest._utils.compat import rows_of
from okforest._utils.errors import warn
from okforest._utils.frames import as_columns, is_frame
from okforest._utils.inputs import learn_inputs
from okforest._utils.state import blank
from okforest.engine import Trees
from okforest.models.base import OKModel
from okforest.models.tree_model import TreeModel


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
    learn_inputs(blank(model), X)
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


Adjust = Literal["leaves", "outputs", "both"]


@dataclass(frozen=True)
class Adjustments:
    """The operator B, as products with sparse matrices; K itself is never made.

    Parameters
    ----------
    L : csr_array of shape (n, n_leaves)
        Leaves of the rows.
    A : csr_array of shape (n_leaves, n_outputs)
        Means of leaves.
    C_leaves, C_outputs : float or None
        The penalties C2 and C1; None if this part is not adjusted.
    """

    L: sp.csr_array
    A: sp.csr_array
    C_leaves: float | None
    C_outputs: float | None

    @staticmethod
    def create(
        L: sp.csr_array, A: sp.csr_array, adjust: Adjust, C_leaves: float, C_outputs: float
    ) -> "Adjustments":
        """Return the operator for the parameters of an estimator; C_leaves is M·C2."""
        n_trees = L.indptr[1] - L.indptr[0]
        return Adjustments(
            L,
            A,
            C_leaves / n_trees if adjust != "outputs" else None,
            C_outputs if adjust != "leaves" else None,
        )

    @property
    def size(self) -> int:
        """The number of adjustments."""
        return self._n_outputs + (self.A.shape[0] if self.C_leaves is not None else 0)

    @property
    def _n_outputs(self) -> int:
        return self.A.shape[1] if self.C_outputs is not None else 0

    def leaf_values(self, v: Floats) -> Floats:
        """Return the change of the leaf values, A ΔY + ΔZ."""
        values = np.zeros((self.A.shape[0], *v.shape[1:]))
        if self.C_outputs is not None:
            values += self.A @ (v[: self._n_outputs] / sqrt(self.C_outputs))
        if self.C_leaves is not None:
            values += v[self._n_outputs :] / sqrt(self.C_leaves)
        return values

    def outputs(self, v: Floats) -> Floats:
        """Return the change of the outputs, ΔY."""
        if self.C_outputs is None:
            return np.zeros((self.A.shape[1], *v.shape[1:]))
        return v[: self._n_outputs] / sqrt(self.C_outputs)

    def forward(self, v: Floats) -> Floats:
        """Return B v."""
        return np.asarray(self.L @ self.leaf_values(v))

    def adjoint(self, u: Floats) -> Floats:
        """Return Bᵀ u."""
        on_leaves = self.L.T @ u
        parts = []
        if self.C_outputs is not None:
            parts.append((self.A.T @ on_leaves) / sqrt(self.C_outputs))
        if self.C_leaves is not None:
            parts.append(on_leaves / sqrt(self.C_leaves))
        return np.concatenate(parts)

    def matrix(self) -> sp.csr_array:
        """Return B as a sparse matrix, for general solvers."""
        parts = []
        if self.C_outputs is not None:
            parts.append((self.L @ self.A) / sqrt(self.C_outputs))
        if self.C_leaves is not None:
            parts.append(self.L / sqrt(self.C_leaves))
        return sp.csr_array(sp.hstack(parts))

    def root_penalties(self) -> Floats:
        """Return √C of every adjustment: the norm C‖Δ‖₁ is √C times the norm of v."""
        parts = []
        if self.C_outputs is not None:
            parts.append(np.full(self._n_outputs, sqrt(self.C_outputs)))
        if self.C_leaves is not None:
            parts.append(np.full(self.A.shape[0], sqrt(self.C_leaves)))
        return np.concatenate(parts)


class RefittedModel(OKModel):
    """A model with a parameter ``estimator``, a forest that it clones and changes."""

    estimator: Any
    estimator_: Any

    @abstractmethod
    def _default_forest(self) -> Any:
        """Return the forest that stands for ``estimator=None``."""

    def _forest(self) -> Any:
        return self._default_forest() if self.estimator is None else self.estimator

    @property
    def kernel(self) -> Any:
        """The kernel of the estimator."""
        return getattr(self._forest(), "kernel", None)

    @property
    def decoder(self) -> Any:
        """The decoder of the estimator."""
        return getattr(self._forest(), "decoder", "auto")

    def compact(self) -> Self:
        """Return a smaller copy of the model; this one does not change.

        The kernel is restricted to the training outputs, and out-of-bag estimates are dropped, as
        by other models.

        Returns
        -------
        model : estimator
            The smaller model.
        """
        model = copy(self)
        kernel = self.kernel_.restrict(self.outputs_)
        model.estimator = clone(self._forest()).set_params(kernel=kernel)
        model.estimator_ = self.estimator_.compact()
        model.store_outputs(kernel, self.outputs_)
        return model

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._forest()).input_tags
        return tags


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
