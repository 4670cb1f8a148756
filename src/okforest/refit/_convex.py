"""The general programme, by the interior-point solver Clarabel: L1 norms, and constraints.

Variables are the scaled adjustments v, the predictions f of training rows and virtual points, and a
slack for every interval. It is exact and slow: for thousands of rows, not more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Thread
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from okforest._typing import Floats
from okforest.refit._adjustments import Adjustments
from okforest.refit._solution import Solution

Norm = Literal["l2", "l1"]


class Constraint(NamedTuple):
    """Linear constraints lower ≤ E f ≤ upper of one prior, on predictions of points.

    The column of output k at point i is i·q + k.
    """

    name: str
    matrix: sp.csr_array
    lower: Floats
    upper: Floats


@dataclass(frozen=True)
class Programme:
    """A convex programme over adjustments of q outputs.

    Parameters
    ----------
    B : Adjustments
        For the n training rows, followed by virtual points.
    f0 : ndarray of shape (n_all, q)
        Predictions without adjustments.
    lower, upper, weight : ndarray of shape (n, q)
        Intervals of the training outputs, and their weights.
    smoothness : csr_array of shape (n, n) or None
        C·𝓛; its quadratic form is added for every output.
    constraints : sequence of Constraint
        On the predictions of all rows and points.
    norm : {"l2", "l1"}
        Sums of squares, divided by 2, or sums of absolute values.
    """

    B: Adjustments
    f0: Floats
    lower: Floats
    upper: Floats
    weight: Floats
    smoothness: sp.csr_array | None
    constraints: Sequence[Constraint]
    norm: Norm


def require_clarabel() -> Any:
    """Return Clarabel, or raise an ImportError that names the extra to install."""
    try:
        import clarabel
    except ImportError as error:
        raise ImportError(
            "norm='l1' and priors need Clarabel, which is not installed: "
            "pip install okforest[convex]"
        ) from error
    return clarabel


def solve(programme: Programme, *, tol: float, max_iter: int) -> Solution:
    """Return the optimum; raise a ValueError that names priors which contradict each other."""
    require_clarabel()
    found, feasible = _run(programme, programme.constraints, tol, max_iter)
    if not feasible:
        raise ValueError(_contradiction(programme, tol, max_iter))
    gap = abs(found.obj_val - found.obj_val_dual) / max(abs(found.obj_val), 1e-12)
    size, q = programme.B.size, programme.f0.shape[1]
    v = np.array(found.x[: size * q]).reshape(size, q)
    solved = str(found.status) in ("Solved", "AlmostSolved")
    return Solution(v, found.obj_val, gap, found.iterations, solved and gap <= max(tol, 1e-6))


def _contradiction(programme: Programme, tol: float, max_iter: int) -> str:
    """Name the priors that cannot be satisfied together."""
    priors = list(programme.constraints)
    guilty = [
        prior.name
        for prior in priors
        if _run(programme, [other for other in priors if other is not prior], tol, max_iter)[1]
    ]
    names = " and ".join(guilty or [prior.name for prior in priors])
    return (
        f"the priors {names} contradict each other: no values of the leaves satisfy all of them. "
        "Remove one of them, or relax its bounds."
    )


def _run(
    programme: Programme, constraints: Sequence[Constraint], tol: float, max_iter: int
) -> tuple[Any, bool]:
    clarabel = require_clarabel()
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = max(int(max_iter), 50)
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = min(tol, 1e-8)
    blocks = _Blocks(programme)
    P, q = blocks.objective()
    equal, right = blocks.predictions()
    rows, bounds = blocks.inequalities(constraints)
    A = sp.csc_matrix(sp.vstack([equal, rows]))
    cones = [clarabel.ZeroConeT(equal.shape[0]), clarabel.NonnegativeConeT(rows.shape[0])]
    b = np.concatenate([right, bounds])
    solver = clarabel.DefaultSolver(sp.csc_matrix(P), q, A, b, cones, settings)
    found = _interruptible(solver.solve)
    return found, "Infeasible" not in str(found.status)


def _interruptible(call: Callable[[], Any]) -> Any:
    """Call a compiled function in a thread of its own, so that Ctrl-C is heard at once.

    After Ctrl-C the thread ends when the function returns; its result is dropped.
    """
    results: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.05)
    if errors:
        raise errors[0]
    return results[0]


class _Blocks:
    """The parts of the programme as matrices; columns are v, f, slacks, and |v| with L1 norms."""

    def __init__(self, programme: Programme):
        self.programme = programme
        self.q = programme.f0.shape[1]
        self.n_v = programme.B.size * self.q
        self.n_f = programme.f0.size
        weight = programme.weight.ravel()
        lower, upper = programme.lower.ravel(), programme.upper.ravel()
        self.slack = np.flatnonzero((weight > 0) & (np.isfinite(lower) | np.isfinite(upper)))
        self.bounds = lower[self.slack], upper[self.slack], weight[self.slack]
        self.n_l1 = self.n_v if programme.norm == "l1" else 0
        self.n = self.n_v + self.n_f + len(self.slack) + self.n_l1

    def objective(self) -> tuple[sp.csc_matrix, Floats]:
        """Return P and q of ½ xᵀPx + qᵀx."""
        programme = self.programme
        smooth: Any = sp.csr_array((self.n_f, self.n_f))
        if programme.smoothness is not None:
            n = programme.smoothness.shape[0]
            wide = sp.block_diag([programme.smoothness, sp.csr_array((len(programme.f0) - n,) * 2)])
            smooth = sp.kron(wide, sp.eye_array(self.q))
        linear = np.zeros(self.n)
        if programme.norm == "l2":
            parts = [sp.eye_array(self.n_v), smooth, sp.diags_array(self.bounds[2])]
        else:
            slacks = (len(self.slack), len(self.slack))
            zeros = (self.n_v, self.n_v)
            parts = [sp.csr_array(zeros), smooth, sp.csr_array(slacks), sp.csr_array(zeros)]
            linear[self.n_v + self.n_f : self.n - self.n_l1] = self.bounds[2]
            linear[self.n - self.n_l1 :] = np.repeat(programme.B.root_penalties(), self.q)
        return sp.csc_matrix(sp.triu(sp.block_diag(parts))), linear

    def predictions(self) -> tuple[sp.csr_array, Floats]:
        """Return the equations f − B v = f0."""
        B = sp.kron(self.programme.B.matrix(), sp.eye_array(self.q))
        return self._columns(v=-B, f=sp.eye_array(self.n_f)), self.programme.f0.ravel()

    def inequalities(self, constraints: Sequence[Constraint]) -> tuple[sp.csr_array, Floats]:
        """Return the rows A x ≤ b of intervals, slacks, absolute values and priors."""
        lower, upper, _ = self.bounds
        some = sp.eye_array(self.n_f, format="csr")[self.slack]
        own = sp.eye_array(len(self.slack), format="csr")
        rows, bounds = [], []
        for sign, limit in ((-1.0, -lower), (1.0, upper)):
            finite = np.isfinite(limit)
            rows.append(self._columns(f=sign * some[finite], slack=-own[finite]))
            bounds.append(limit[finite])
        if self.n_l1:
            identity = sp.eye_array(self.n_v)
            rows += [self._columns(slack=-own)]
            rows += [self._columns(v=sign * identity, size=-identity) for sign in (-1.0, 1.0)]
            bounds += [np.zeros(len(self.slack)), np.zeros(2 * self.n_v)]
        for constraint in constraints:
            for sign, limit in ((-1.0, -constraint.lower), (1.0, constraint.upper)):
                finite = np.isfinite(limit)
                rows.append(self._columns(f=sign * constraint.matrix[finite]))
                bounds.append(limit[finite])
        return sp.csr_array(sp.vstack(rows)), np.concatenate(bounds)

    def _columns(self, v: Any = None, f: Any = None, slack: Any = None, size: Any = None) -> Any:
        parts = [v, f, slack] + ([size] if self.n_l1 else [])
        widths = [self.n_v, self.n_f, len(self.slack), self.n_l1]
        n_rows = next(part.shape[0] for part in parts if part is not None)
        return sp.hstack(
            [
                sp.csr_array((n_rows, width)) if part is None else part
                for part, width in zip(parts, widths, strict=False)
            ]
        )
