"""A grown ensemble as an expansion over its leaves: f(x) = L(x) z, with one value z per leaf.

L has one row per input and one column per leaf of every tree, with entries 1/M for M trees. The
forest itself has the leaf means z = A y of its training outputs; K = L A are its weights.
"""

from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from okforest._utils.arrays import Booleans, Floats, Ints, Outputs
from okforest._utils.compat import rows_of
from okforest._utils.errors import warn
from okforest._utils.frames import as_columns, is_frame
from okforest._utils.inputs import learn_inputs
from okforest._utils.state import blank
from okforest.engine import Trees
from okforest.models.tree_model import TreeModel
from okforest.models.wrapping import check_inner
from okforest.survival.estimates import quantile_times, step_functions
from okforest.survival.kernel import Survival


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
        """Return the operator from other rows, whose leaves are in L, to means of leaves.

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
    leaf_penalty, output_penalty : float or None
        The penalties C2 and C1; None if this part is not adjusted.
    """

    L: sp.csr_array
    A: sp.csr_array
    leaf_penalty: float | None
    output_penalty: float | None

    @staticmethod
    def create(
        L: sp.csr_array, A: sp.csr_array, adjust: Adjust, leaf_penalty: float, output_penalty: float
    ) -> "Adjustments":
        """Return the operator for the parameters of an estimator; leaf_penalty is M·C2."""
        n_trees = L.indptr[1] - L.indptr[0]
        return Adjustments(
            L,
            A,
            leaf_penalty / n_trees if adjust != "outputs" else None,
            output_penalty if adjust != "leaves" else None,
        )

    @property
    def size(self) -> int:
        """The number of adjustments."""
        return self._n_outputs + (self.A.shape[0] if self.leaf_penalty is not None else 0)

    @property
    def _n_outputs(self) -> int:
        return self.A.shape[1] if self.output_penalty is not None else 0

    def leaf_values(self, v: Floats) -> Floats:
        """Return the change of the leaf values, A ΔY + ΔZ."""
        values = np.zeros((self.A.shape[0], *v.shape[1:]))
        if self.output_penalty is not None:
            values += self.A @ (v[: self._n_outputs] / sqrt(self.output_penalty))
        if self.leaf_penalty is not None:
            values += v[self._n_outputs :] / sqrt(self.leaf_penalty)
        return values

    def outputs(self, v: Floats) -> Floats:
        """Return the change of the outputs, ΔY."""
        if self.output_penalty is None:
            return np.zeros((self.A.shape[1], *v.shape[1:]))
        return v[: self._n_outputs] / sqrt(self.output_penalty)

    def forward(self, v: Floats) -> Floats:
        """Return B v."""
        return np.asarray(self.L @ self.leaf_values(v))

    def adjoint(self, u: Floats) -> Floats:
        """Return Bᵀ u."""
        on_leaves = self.L.T @ u
        parts = []
        if self.output_penalty is not None:
            parts.append((self.A.T @ on_leaves) / sqrt(self.output_penalty))
        if self.leaf_penalty is not None:
            parts.append(on_leaves / sqrt(self.leaf_penalty))
        return np.concatenate(parts)

    def matrix(self) -> sp.csr_array:
        """Return B as a sparse matrix, for general solvers."""
        parts = []
        if self.output_penalty is not None:
            parts.append((self.L @ self.A) / sqrt(self.output_penalty))
        if self.leaf_penalty is not None:
            parts.append(self.L / sqrt(self.leaf_penalty))
        return sp.csr_array(sp.hstack(parts))

    def root_penalties(self) -> Floats:
        """Return √C of every adjustment: the norm C‖Δ‖₁ is √C times the norm of v."""
        parts = []
        if self.output_penalty is not None:
            parts.append(np.full(self._n_outputs, sqrt(self.output_penalty)))
        if self.leaf_penalty is not None:
            parts.append(np.full(self.A.shape[0], sqrt(self.leaf_penalty)))
        return np.concatenate(parts)


def check_refit(model: Any, n: int) -> None:
    """Check the forest, the leaves of the training rows and the values of leaves."""
    check_inner(model.estimator_, "estimator_", TreeModel)
    trees, leaves = model.estimator_.trees_, model.training_leaves_
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


@dataclass(frozen=True, eq=False)
class CurvesOfLeaves:
    """The mean survival curve of the training rows of every leaf, computed when it is needed."""

    trees: Trees
    training_leaves: Ints
    kernel: Survival
    outputs: Floats

    @cached_property
    def values(self) -> Floats:
        """Curves, of shape (n_leaves, n_times)."""
        expansion = LeafExpansion(self.trees)
        members = expansion.means_over(expansion.rows(self.training_leaves))
        return np.asarray(members @ self.kernel.curves(self.outputs))


class LeafCurves:
    """Survival functions and quantiles: means of the curves of training rows in the same leaves."""

    _derived: ClassVar[tuple[str, ...]] = ("_curves_of_leaves",)

    estimator_: Any
    outputs_: Floats
    training_leaves_: Ints
    curves_: Survival

    def _rows(self, X: Any) -> sp.csr_array:
        """Return the leaves of inputs."""
        check_is_fitted(self, "training_leaves_")
        return LeafExpansion(self.estimator_.trees_).rows(leaves_of(self.estimator_, X))

    def predict_survival_function(self, X: Any, return_array: bool = False) -> Outputs:
        """Predict survival functions: means of the curves of training rows in the same leaves.

        Censored rows have the Kaplan–Meier curve, given survival so far. The refit changes
        predicted values, not these curves.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.
        return_array : bool, default=False
            Whether to return an array of values at the times ``event_times_``, or functions.

        Returns
        -------
        survival : ndarray of n functions, or of shape (n, n_times)
            The probability to survive beyond a time.
        """
        curves = self._rows(X) @ self._curves_of_leaves.values
        return curves if return_array else step_functions(self.event_times_, curves)

    def _prepare_curves(self) -> None:
        """Prepare what predictions need besides the fitted attributes."""
        self._curves_of_leaves = CurvesOfLeaves(
            self.estimator_.trees_, self.training_leaves_, self.curves_, self.outputs_
        )

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        if hasattr(self, "curves_"):
            self._prepare_curves()

    @property
    def event_times_(self) -> Floats:
        """The times of the predicted survival functions."""
        return self.curves_.estimate.x

    def predict_quantiles(self, X: Any, quantiles: Any = 0.5) -> Floats:
        """Predict quantiles of the output, from the predicted survival functions.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.
        quantiles : float or array-like of shape (q,), default=0.5
            Levels between 0 and 1; 0.5 is the median.

        Returns
        -------
        times : ndarray of shape (n,) or (n, q)
            Infinite where the predicted function does not fall that low.
        """
        curves = self.predict_survival_function(X, return_array=True)
        return quantile_times(self.event_times_, curves, quantiles)
