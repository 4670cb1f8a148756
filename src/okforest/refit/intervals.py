"""The refit of a CensoredForest: its programme, and Newton's method for it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from okforest._utils.arrays import Floats, Progress
from okforest._utils.progress import progress_of
from okforest.refit.censored_growth import GrownForest
from okforest.refit.constraints import gather_constraints
from okforest.refit.convex import Programme, Solution, solve
from okforest.refit.laplacian import check_laplacian
from okforest.refit.leaves import Adjustments, leaves_of

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
    C_leaves: float | None = None,
    start: Floats | None = None,
) -> Solution:
    """Solve the programme of a model, for another penalty or from a first guess if given."""
    C = model.C_leaves if C_leaves is None else C_leaves
    A, L, f0 = grown.expansion.means, grown.L, grown.L @ grown.values
    centre = float(f0.mean())
    laplacian = check_laplacian(model.laplacian, X, L.shape[0], model.n_neighbors)
    smoothness = None if laplacian is None else sp.csr_array(model.C_laplacian * laplacian)
    weight = grown.row_weight * np.where(grown.exact, model.C_exact, model.C_censored)
    if model.norm == "l2" and not len(model.priors):
        B = Adjustments.create(L, A, model.adjust, C, model.C_outputs)
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
        B=Adjustments.create(rows, A, model.adjust, C, model.C_outputs),
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
