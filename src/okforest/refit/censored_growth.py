"""What a CensoredForest grows: the rows, outputs and scales, and survival functions of leaves."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from okforest._utils.arrays import Booleans, Floats, Ints, Outputs
from okforest._utils.compat import rows_of
from okforest._utils.errors import warn
from okforest._utils.inputs import check_weights
from okforest.engine import Trees
from okforest.models.tree_model import TreeModel
from okforest.refit.leaves import LeafExpansion, leaves_of, training_leaves, warn_if_full_grown
from okforest.survival.estimates import (
    StepFunction,
    estimate_survival,
    quantile_times,
    step_functions,
)
from okforest.survival.kernel import Survival
from okforest.survival.outputs import is_exact, is_unlabelled

ScaleName = Literal["km", "log"] | None


@dataclass(frozen=True)
class Scale:
    """An increasing function of outputs, and its inverse.

    Parameters
    ----------
    name : {"km", "log"} or None
        1 − S(t) with the Kaplan–Meier curve S, the logarithm, or the outputs themselves.
    times, survival : ndarray of shape (m,)
        The Kaplan–Meier curve; empty for other scales.
    """

    name: ScaleName
    times: Floats
    survival: Floats

    @staticmethod
    def learn(name: ScaleName, intervals: Floats) -> "Scale":
        """Return the scale for training outputs."""
        if name == "km":
            estimate = estimate_survival(intervals)
            return Scale(name, estimate.x, estimate.y)
        if name == "log" and (intervals[:, 1] <= 0).any():
            raise ValueError(
                "scale='log' needs positive times, and y holds times that are at most 0; use "
                "scale='km' or None."
            )
        return Scale(name, np.empty(0), np.empty(0))

    @property
    def estimate(self) -> StepFunction:
        """The Kaplan–Meier curve of the scale."""
        return StepFunction(self.times, self.survival)

    def forward(self, t: Floats) -> Floats:
        """Return outputs on the scale; infinite ones stay infinite."""
        if self.name is None:
            return np.asarray(t, dtype=np.float64)
        if self.name == "log":
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(t > 0, np.log(t), -np.inf)
        values = 1.0 - self.estimate(t)
        return np.where(np.isfinite(t), values, t)

    def place(self, t: Floats) -> Floats:
        """Return the values whose inverse is t; infinite where there is none.

        On the scale "km" it differs from ``forward`` between two times of the curve.
        """
        if self.name != "km":
            return self.forward(t)
        times, levels = self._knots()
        with np.errstate(invalid="ignore"):
            values = np.interp(t, times, levels)
        return np.where(t < 0, -np.inf, np.where(t > times[-1], np.inf, values))

    def inverse(self, u: Floats) -> Floats:
        """Return outputs from values on the scale; between times of the curve by interpolation."""
        if self.name is None:
            return u
        if self.name == "log":
            return np.exp(u)
        times, levels = self._knots()
        return np.interp(u, levels, times)

    def _knots(self) -> tuple[Floats, Floats]:
        levels = np.concatenate([[0.0], 1.0 - self.survival])
        return np.concatenate([[0.0], self.times]), levels


Structure = Literal["exact", "all", "km"]

# Chosen on data sets: benchmarks/results/survival_defaults.md.
FEW_EXACT = 0.4  # below this fraction of exact outputs, trees are grown on all rows


@dataclass(frozen=True)
class GrownForest:
    """A forest before its refit, with the training rows as leaves and intervals.

    Parameters
    ----------
    model : TreeModel
        The forest, grown on outputs on the scale.
    structure : {"exact", "all", "km"}
        The rows that it was grown on.
    scale : Scale
        The scale.
    expansion : LeafExpansion
        Its leaves.
    leaves : ndarray of shape (n, n_trees)
        Leaves of all rows, as node numbers.
    L : csr_array of shape (n, n_leaves)
        The same, as a matrix.
    values : ndarray of shape (n_leaves,)
        The means of leaves.
    lower, upper : ndarray of shape (n,)
        Intervals on the scale.
    exact : ndarray of shape (n,), bool
        Which outputs are known exactly.
    row_weight : ndarray of shape (n,)
        Weights of the rows.
    """

    model: TreeModel
    structure: Structure
    scale: Scale
    expansion: LeafExpansion
    leaves: Ints
    L: sp.csr_array
    values: Floats
    lower: Floats
    upper: Floats
    exact: Booleans
    row_weight: Floats


def grow_censored(
    forest: TreeModel,
    X: Any,
    intervals: Floats,
    scale_name: ScaleName,
    structure: Structure | Literal["auto"],
    sample_weight: Any,
) -> GrownForest:
    """Grow the forest, and express all rows by its leaves."""
    weight = check_weights(sample_weight, intervals)
    used = weight > 0
    scale = Scale.learn(scale_name, intervals[used])
    scaled = scale.forward(intervals)
    if structure == "auto":
        structure = _structure_for(intervals[used])
    rows, targets = _targets(intervals, scale, structure, used)
    own = None if sample_weight is None else weight[rows]
    forest.fit(rows_of(X, np.flatnonzero(rows)), targets[rows], own)
    effect = (
        "the forest reproduces the outputs that it was grown on, and the refit has little to learn"
    )
    warn_if_full_grown(forest.trees_, int(rows.sum()), effect)
    _warn_if_constant(forest, structure, intervals[used], int(rows.sum()))
    expansion, leaves = LeafExpansion(forest.trees_), training_leaves(forest, X, rows)
    return GrownForest(
        model=forest,
        structure=structure,
        scale=scale,
        expansion=expansion,
        leaves=leaves,
        L=expansion.rows(leaves),
        values=expansion.means @ targets[rows],
        lower=scaled[:, 0],
        upper=scaled[:, 1],
        exact=is_exact(intervals),
        row_weight=weight,
    )


def _structure_for(intervals: Floats) -> Structure:
    """Return what "auto" stands for: few exact outputs leave too few rows to grow trees on."""
    known = ~is_unlabelled(intervals)
    return "km" if is_exact(intervals).sum() < FEW_EXACT * known.sum() else "exact"


def _warn_if_constant(
    forest: TreeModel, structure: Structure, intervals: Floats, n_grown: int
) -> None:
    """Warn if no tree has a split, and name a remedy."""
    if (forest.trees_.left >= 0).any() or (intervals == intervals[0]).all():
        return
    other = " structure='km', which grows them on all rows, or" if structure == "exact" else ""
    warn(
        f"predictions are the same for all inputs: the trees, grown on {n_grown} of "
        f"{len(intervals)} rows with at least {forest.min_samples_leaf_} in a leaf, have no "
        f"split. Use{other} a smaller min_samples_leaf of the estimator.",
    )


def _targets(
    intervals: Floats, scale: Scale, structure: Structure, used: Booleans
) -> tuple[Booleans, Floats]:
    """Return the rows that trees are grown on, and their outputs on the scale."""
    exact = is_exact(intervals) & used
    rows = exact.copy() if structure == "exact" else ~is_unlabelled(intervals) & used
    if rows.sum() < 2:
        raise ValueError(
            f"y has {int(exact.sum())} exact outputs among {int(used.sum())} of positive weight; "
            f"structure={structure!r} grows trees on {int(rows.sum())} rows, and needs at least 2. "
            "Use structure='km' or 'all' to grow them on censored rows, too."
        )
    targets = _representatives(scale.forward(intervals))
    if structure == "km":
        censored = rows & ~exact
        targets[censored] = _conditional_means(intervals[censored], intervals[rows], scale)
    return rows, targets


def _representatives(scaled: Floats) -> Floats:
    """Return the middle of finite intervals, and the finite bound of others."""
    lower, upper = scaled.T
    with np.errstate(invalid="ignore"):
        middle = 0.5 * (lower + upper)
    middle = np.where(np.isfinite(lower), np.where(np.isfinite(upper), middle, lower), upper)
    return np.where(np.isfinite(middle), middle, 0.0)


def _conditional_means(censored: Floats, intervals: Floats, scale: Scale) -> Floats:
    """Return the mean, on the scale, of the survival function of all within each interval."""
    estimate = estimate_survival(intervals)
    last = max(estimate.x[-1], intervals[np.isfinite(intervals)].max())
    times = np.append(estimate.x, last)
    mass = -np.diff(np.concatenate([[1.0], estimate.y, [0.0]]))
    within = (times > censored[:, :1]) & (times <= np.maximum(censored[:, 1:], censored[:, :1]))
    total = (within * mass).sum(axis=1)
    values = scale.forward(times)
    means = np.divide((within * mass) @ values, total, where=total > 0, out=np.zeros(len(total)))
    return np.where(total > 0, means, _representatives(scale.forward(censored)))


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
