"""Newton's method with conjugate gradients for least squares to intervals.

It minimises ½‖v‖² + ½ Σ_i c_i d_i² + ½ C (f − m)ᵀ𝓛(f − m) over v, where f = f0 + B v, d = f −
clip(f, lower, upper), 𝓛 is an optional graph Laplacian, and m the mean output. The loss is
piecewise quadratic: a Newton step solves the linear system of the cases outside their intervals,
and few steps find the right set of them.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from okforest._typing import Floats, Progress
from okforest.refit._adjustments import Adjustments
from okforest.refit._solution import Solution

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
