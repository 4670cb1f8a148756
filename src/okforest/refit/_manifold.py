"""Least squares to labelled outputs with a smooth solution: linear, one column at a time.

It minimises ½‖v‖² + ½ Σ_i s_i ‖f_i − y_i‖² + ½ C tr fᵀ𝓛f with f = f0 + B v, where s is zero for
unlabelled rows. With Q = diag(s) + C𝓛, the solution is v = Bᵀα, (I + Q B Bᵀ) α = s y − Q f0.
"""

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp

from okforest._typing import Floats, Progress
from okforest.refit._adjustments import Adjustments
from okforest.refit._solution import Solution

DENSE = 1000  # rows up to which the system is solved directly


def solve_smooth(
    B: Adjustments,
    f0: Floats,
    targets: Floats,
    weight: Floats,
    smoothness: sp.csr_array | None,
    *,
    tol: float,
    max_iter: int,
    progress: Progress | None = None,
) -> Solution:
    """Return the adjustments, of shape (size, q) for targets (n, q)."""
    Q = sp.csr_array(sp.diags_array(weight))
    if smoothness is not None:
        Q = sp.csr_array(Q + smoothness)
    force = weight[:, None] * targets - Q @ f0
    if len(f0) <= DENSE:
        matrix = B.matrix()
        G = (matrix @ matrix.T).toarray()
        alpha = sla.solve(np.eye(len(f0)) + Q @ G, force)
        v, steps = B.adjoint(alpha), 1
    else:
        v, steps = _conjugate_gradients(B, Q, B.adjoint(force), tol, max_iter, progress)
    change = B.forward(v)
    residual = v - B.adjoint(force - Q @ change)
    scale = max(float(np.linalg.norm(B.adjoint(force))), 1e-300)
    f = f0 + change
    objective = 0.5 * float((v**2).sum() + (weight[:, None] * (f - targets) ** 2).sum())
    if smoothness is not None:
        objective += 0.5 * float((f * (smoothness @ f)).sum())
    gap = float(np.linalg.norm(residual)) / scale
    return Solution(v, objective, gap, steps, gap <= max(tol, 1e-10))


def _conjugate_gradients(
    B: Adjustments,
    Q: sp.csr_array,
    right: Floats,
    tol: float,
    max_iter: int,
    progress: Progress | None,
) -> tuple[Floats, int]:
    """Solve (I + BᵀQB) v = right, all columns side by side."""
    v = np.zeros_like(right)
    residual = right.copy()
    d = residual.copy()
    squares = (residual**2).sum(axis=0)
    target = 0.1 * tol**2 * squares.sum()
    for step in range(max_iter):
        if squares.sum() <= target:
            return v, step
        Hd = d + B.adjoint(Q @ B.forward(d))
        length = squares / np.maximum((d * Hd).sum(axis=0), 1e-300)
        v += length * d
        residual -= length * Hd
        previous, squares = squares, (residual**2).sum(axis=0)
        d = residual + squares / np.maximum(previous, 1e-300) * d
        if progress is not None:
            progress(step + 1)
    return v, max_iter
