"""Censored outputs as intervals: growing a forest for them, and refitting its leaves to them.

The refit minimises a convex programme by Newton's method, or by the general solver with L1 norms or
priors.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from okforest._utils.arrays import Booleans, Floats, Ints, Progress
from okforest._utils.compat import rows_of
from okforest._utils.errors import warn
from okforest._utils.inputs import check_weights
from okforest._utils.progress import progress_of
from okforest.models.tree_model import TreeModel
from okforest.refit.convex import Programme, Solution, gather_constraints, solve
from okforest.refit.laplacian import check_laplacian
from okforest.refit.leaves import (
    Adjustments,
    LeafExpansion,
    leaves_of,
    training_leaves,
    warn_if_full_grown,
)
from okforest.survival.estimates import StepFunction, estimate_survival
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
    tree_weights = None if sample_weight is None else weight[rows]
    forest.fit(rows_of(X, np.flatnonzero(rows)), targets[rows], tree_weights)
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


MAX_CG = 500  # iterations of conjugate gradients in one Newton step


@dataclass(frozen=True)
class IntervalLoss:
    """The loss of predictions f of all rows.

    Parameters
    ----------
    lower, upper : ndarray of shape (n,)
        The interval of each row.
    weight : ndarray of shape (n,)
        The weights c.
    smoothness : csr_array of shape (n, n) or None
        The matrix C·𝓛.
    centre : float
        The mean output, from which smooth predictions are measured.
    """

    lower: Floats
    upper: Floats
    weight: Floats
    smoothness: sp.csr_array | None = None
    centre: float = 0.0

    def distances(self, f: Floats) -> Floats:
        """Return f − clip(f, lower, upper)."""
        return f - np.clip(f, self.lower, self.upper)

    def value(self, f: Floats) -> float:
        """Return the loss."""
        value = float(self.weight @ self.distances(f) ** 2)
        if self.smoothness is not None:
            value += float((f - self.centre) @ (self.smoothness @ (f - self.centre)))
        return 0.5 * value

    def gradient(self, f: Floats) -> Floats:
        """Return the derivatives of the loss by f."""
        gradient = self.weight * self.distances(f)
        if self.smoothness is None:
            return gradient
        return gradient + self.smoothness @ (f - self.centre)

    def curvature(self, f: Floats, u: Floats) -> Floats:
        """Return the second derivatives at f times u."""
        product = np.where(self.distances(f) != 0, self.weight, 0.0) * u
        return product if self.smoothness is None else product + self.smoothness @ u

    def lower_bound(self, B: Adjustments, f0: Floats, f: Floats) -> float:
        """Return a lower bound of the programme, by duality; without smoothness only."""
        slope = self.gradient(f)
        towards = np.where(slope > 0, self.upper, np.where(slope < 0, self.lower, 0.0))
        conjugate = np.divide(slope**2, 2.0 * self.weight, where=slope != 0, out=np.zeros(len(f)))
        dual = slope @ (f0 - towards) - conjugate.sum()
        return float(dual - 0.5 * np.sum(B.adjoint(slope) ** 2))


def minimise(
    B: Adjustments,
    f0: Floats,
    loss: IntervalLoss,
    *,
    tol: float,
    max_iter: int,
    start: Floats | None = None,
    progress: Progress | None = None,
) -> Solution:
    """Return the adjustments that minimise the programme.

    ``start`` is a first guess. ``progress`` is called with the number of steps.
    """
    v = np.zeros(B.size) if start is None else start.copy()
    f = f0 + B.forward(v)
    scale = max(float(np.linalg.norm(B.adjoint(loss.gradient(f0)))), 1e-300)
    for step in range(max_iter + 1):
        gradient = v + B.adjoint(loss.gradient(f))
        objective = 0.5 * float(v @ v) + loss.value(f)
        gap = slope = float(np.linalg.norm(gradient)) / scale
        if loss.smoothness is None:
            bound = loss.lower_bound(B, f0, f)
            gap = (objective - bound) / max(abs(objective), 1e-300)
            if objective - bound <= 1e-16 * float(loss.weight @ (f**2 + f0**2)):  # rounding
                gap = 0.0
        if objective <= 1e-24 * float(loss.weight @ f**2):  # zero, up to rounding
            gap = 0.0
        converged = bool(gap <= tol)
        if converged or step == max_iter:
            return Solution(v, objective, max(gap, 0.0), step, converged)
        direction, change = _newton_direction(B, loss, f, gradient, min(0.01, slope))
        length = _line_search(v, direction, f, change, loss)
        v = v + length * direction
        f = f + length * change
        if progress is not None:
            progress(step + 1)
    raise AssertionError("the last step returns")


def _newton_direction(
    B: Adjustments, loss: IntervalLoss, f: Floats, gradient: Floats, accuracy: float
) -> tuple[Floats, Floats]:
    """Solve (I + Bᵀ H B) p = −gradient by conjugate gradients; return p and B p.

    Early steps need little accuracy, as they change the set of cases outside their intervals.
    """
    p, change = np.zeros_like(gradient), np.zeros_like(f)
    residual = -gradient
    d = residual.copy()
    square = float(residual @ residual)
    target = square * accuracy**2
    for _ in range(MAX_CG):
        Bd = B.forward(d)
        Hd = d + B.adjoint(loss.curvature(f, Bd))
        length = square / float(d @ Hd)
        p += length * d
        change += length * Bd
        residual -= length * Hd
        previous, square = square, float(residual @ residual)
        if square <= target:
            break
        d = residual + (square / previous) * d
    return p, change


def _line_search(v: Floats, p: Floats, f: Floats, change: Floats, loss: IntervalLoss) -> float:
    """Return the length that minimises the objective along p, whose derivative increases."""

    def derivative(s: float) -> float:
        return float((v + s * p) @ p + loss.gradient(f + s * change) @ change)

    low, high = 0.0, 1.0
    while derivative(high) < 0 and high < 1e6:
        low, high = high, 2.0 * high
    if abs(derivative(1.0)) <= 1e-3 * abs(derivative(0.0)):
        return 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if derivative(middle) < 0 else (low, middle)
    return 0.5 * (low + high)


def refit_intervals(
    model: Any,
    X: Any,
    grown: GrownForest,
    leaf_penalty: float | None = None,
    start: Floats | None = None,
) -> Solution:
    """Solve the programme of a model, for another penalty or from a first guess if given."""
    if leaf_penalty is None:
        leaf_penalty = model.leaf_penalty
    A, L, f0 = grown.expansion.means, grown.L, grown.L @ grown.values
    centre = float(f0.mean())
    laplacian = check_laplacian(model.laplacian, X, L.shape[0], model.n_neighbors)
    smoothness = None if laplacian is None else sp.csr_array(model.laplacian_penalty * laplacian)
    weight = grown.row_weight * np.where(grown.exact, model.exact_penalty, model.censored_penalty)
    if model.norm == "l2" and not len(model.priors):
        B = Adjustments.create(L, A, model.adjust, leaf_penalty, model.output_penalty)
        loss = IntervalLoss(grown.lower, grown.upper, weight, smoothness, centre)
        progress = progress_of(0, model.max_iter, model.verbose, None, label="refit steps")
        try:
            return minimise(
                B,
                f0,
                loss,
                tol=model.tol,
                max_iter=model.max_iter,
                start=start,
                progress=progress,
            )
        finally:
            progress.close()

    def leaf_rows(points: Any) -> sp.csr_array:
        return grown.expansion.rows(leaves_of(grown.model, points))

    rows, constraints = gather_constraints(model.priors, X, L, leaf_rows, scale=grown.scale.place)
    programme = Programme(
        B=Adjustments.create(rows, A, model.adjust, leaf_penalty, model.output_penalty),
        f0=(rows @ grown.values)[:, None],
        lower=grown.lower[:, None],
        upper=grown.upper[:, None],
        weight=weight[:, None],
        smoothness=smoothness,
        centre=centre,
        constraints=constraints,
        norm=model.norm,
    )
    return solve(programme, tol=model.tol, max_iter=model.max_iter, verbose=model.verbose)
