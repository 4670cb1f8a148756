"""The general programme, by the interior-point solver Clarabel: L1 norms, and constraints.

Variables are the scaled adjustments v, the changes B v of predictions of training rows and virtual
points, and a slack for every interval, all in a unit in which they are about 1. It is exact and
slow: for thousands of rows, not more.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from okforest._utils.arrays import Floats
from okforest._utils.errors import install_extra, warn
from okforest._utils.parameters import check_parameters
from okforest._utils.resources import interruptible
from okforest.refit.leaves import Adjustments
from okforest.refit.priors import Prior, check_points


@dataclass(frozen=True)
class Solution:
    """The adjustments that minimise a programme.

    Parameters
    ----------
    v : ndarray of shape (size,) or (size, q)
        Scaled adjustments; see :class:`okforest.refit.leaves.Adjustments`.
    objective : float
        The value of the programme.
    gap : float
        The objective minus a lower bound, relative to the objective; or the norm of the gradient,
        relative to that without adjustments, where no bound is known.
    n_iterations : int
        Number of steps.
    converged : bool
        Whether the gap is within the tolerance.
    """

    v: Floats
    objective: float
    gap: float
    n_iterations: int
    converged: bool


def warn_unless_converged(solution: Solution, tol: float) -> None:
    """Warn with a remedy if the solver stopped early."""
    if not solution.converged:
        warn(
            f"the refit stopped after {solution.n_iterations} steps with a relative gap of "
            f"{solution.gap:.1e}, above tol={tol:g}; increase max_iter or tol.",
            ConvergenceWarning,
        )


Norm = Literal["l2", "l1"]

ROOM = 1e-7  # priors are relaxed by this part of the unit if they leave no interior


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
        C·𝓛; its quadratic form of f − centre is added for every output.
    constraints : sequence of Constraint
        On the predictions of all rows and points.
    norm : {"l2", "l1"}
        Sums of squares, divided by 2, or sums of absolute values.
    centre : float or ndarray of shape (q,)
        The mean output.
    """

    B: Adjustments
    f0: Floats
    lower: Floats
    upper: Floats
    weight: Floats
    smoothness: sp.csr_array | None
    constraints: Sequence[Constraint]
    norm: Norm
    centre: Any = 0.0


def require_clarabel() -> Any:
    """Return Clarabel, or raise an ImportError that names the extra to install."""
    try:
        import clarabel
    except ImportError as error:
        raise ImportError(
            f"norm='l1' and priors need Clarabel, which is not installed: {install_extra('convex')}"
        ) from error
    return clarabel


def solve(programme: Programme, *, tol: float, max_iter: int, verbose: int = 0) -> Solution:
    """Return the optimum; raise a ValueError that names priors which contradict each other.

    With ``verbose``, the solver prints a table of its iterations.
    """
    require_clarabel()
    unit = _unit(programme)
    programme = _without_constants(programme, unit)
    found = _run(programme, unit, tol, max_iter, verbose)
    if str(found.status) != "Solved" and programme.constraints:
        _refuse_contradictions(programme, unit)
        found = _run(programme, unit, tol, max_iter, verbose, ROOM)
    size, q = programme.B.size, programme.f0.shape[1]
    v = unit * np.array(found.x[: size * q]).reshape(size, q)
    objective, start = _objective(programme, v), _objective(programme, np.zeros((size, q)))
    power = 2 if programme.norm == "l2" else 1
    dual = unit**power * found.obj_val_dual + _offset(programme)
    gap = abs(objective - dual) / max(objective, 1e-9 * start, 1e-300)
    solved = str(found.status) in ("Solved", "AlmostSolved")
    return Solution(v, objective, gap, found.iterations, solved and gap <= max(tol, 1e-6))


def _unit(programme: Programme) -> float:
    """Return the size of the changes that the programme asks for, in which it is solved.

    The solver's tolerances are absolute, so variables should be about 1.
    """
    f0, n = programme.f0, len(programme.lower)
    away = f0[:n] - np.clip(f0[:n], programme.lower, programme.upper)
    sizes = [1e-6 * float(np.ptp(f0)), float(np.abs(away[programme.weight > 0]).max(initial=0.0))]
    if programme.smoothness is not None:
        sizes.append(float(np.abs(programme.smoothness @ (f0[:n] - programme.centre)).max()))
    for constraint in programme.constraints:
        at = constraint.matrix @ f0.ravel()
        violated = at - np.clip(at, constraint.lower, constraint.upper)
        sizes.append(float(np.abs(violated).max(initial=0.0)))
    return max(sizes) or 1.0


def _without_constants(programme: Programme, unit: float) -> Programme:
    """Return the programme without constraints that hold and that no adjustment changes.

    These are increments between two points in the same leaves. They are never strictly satisfied,
    and the solver needs a strictly feasible point.
    """
    if not programme.constraints:
        return programme
    B = sp.kron(programme.B.matrix(), sp.eye_array(programme.f0.shape[1]), format="csr")
    kept = []
    for constraint in programme.constraints:
        effect = abs(constraint.matrix @ B).max(axis=1).toarray().ravel()
        at = constraint.matrix @ programme.f0.ravel()
        away = np.abs(at - np.clip(at, constraint.lower, constraint.upper))
        rows = (effect > 1e-12 * effect.max(initial=0.0)) | (away > 1e-9 * unit)
        parts = (constraint.matrix[rows], constraint.lower[rows], constraint.upper[rows])
        kept.append(Constraint(constraint.name, *parts))
    return replace(programme, constraints=kept)


def _offset(programme: Programme) -> float:
    """Return the part of the objective that does not depend on the adjustments."""
    if programme.smoothness is None:
        return 0.0
    f0 = programme.f0[: len(programme.lower)] - programme.centre
    return 0.5 * float((f0 * (programme.smoothness @ f0)).sum())


def _objective(programme: Programme, v: Floats) -> float:
    """Return the objective by definition; the solver's own holds up to its tolerance of slacks."""
    n, squares = len(programme.lower), programme.norm == "l2"
    f = (programme.f0 + programme.B.forward(v))[:n]
    away = np.abs(f - np.clip(f, programme.lower, programme.upper))
    penalty = 0.5 * v**2 if squares else programme.B.root_penalties()[:, None] * np.abs(v)
    value = float((programme.weight * (0.5 * away**2 if squares else away)).sum() + penalty.sum())
    if programme.smoothness is not None:
        smooth = f - programme.centre
        value += 0.5 * float((smooth * (programme.smoothness @ smooth)).sum())
    return value


def _refuse_contradictions(programme: Programme, unit: float) -> None:
    """Raise a ValueError if the priors cannot hold together; it names those that are to blame."""
    priors = list(programme.constraints)
    if _feasible(programme, priors, unit):
        return
    guilty = [
        prior.name
        for prior in priors
        if _feasible(programme, [other for other in priors if other is not prior], unit)
    ]
    names = " and ".join(guilty or [prior.name for prior in priors])
    what = "contradict each other" if len(priors) > 1 else "cannot hold"
    raise ValueError(
        f"the priors {names} {what}: no values of the leaves satisfy them. Remove one of them, or "
        "relax its bounds."
    )


def _feasible(programme: Programme, constraints: Sequence[Constraint], unit: float) -> bool:
    """Return whether some adjustments satisfy all constraints, by the least possible violation."""
    if not constraints:
        return True
    B = sp.kron(programme.B.matrix(), sp.eye_array(programme.f0.shape[1]), format="csr")
    rows, bounds = [], []
    for constraint in constraints:
        E, at = constraint.matrix @ B, constraint.matrix @ programme.f0.ravel()
        for sign, limit in ((-1.0, at - constraint.lower), (1.0, constraint.upper - at)):
            finite = np.isfinite(limit)
            rows.append(sign * E[finite])
            bounds.append(limit[finite] / unit)
    b = np.concatenate(bounds)
    violation = sp.csr_array(-np.ones((len(b), 1)))
    A: Any = sp.csr_array(sp.hstack([sp.vstack(rows), violation]))
    cost = np.append(np.zeros(A.shape[1] - 1), 1.0)
    limits: Any = [(None, None)] * (A.shape[1] - 1) + [(0.0, None)]
    found = interruptible(lambda: linprog(cost, A, b, bounds=limits, method="highs"))
    return bool(found.status == 0 and found.fun <= 1e-6)


def _run(
    programme: Programme, unit: float, tol: float, max_iter: int, verbose: int, room: float = 0.0
) -> Any:
    clarabel = require_clarabel()
    settings = clarabel.DefaultSettings()
    settings.verbose = bool(verbose)
    settings.max_iter = max(int(max_iter), 50)
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = min(tol, 1e-9)
    blocks = _Blocks(programme, unit, room)
    P, q = blocks.objective()
    equal, right = blocks.equations()
    rows, bounds = blocks.inequalities()
    A = sp.csc_matrix(sp.vstack([equal, rows]))
    cones = [clarabel.ZeroConeT(equal.shape[0]), clarabel.NonnegativeConeT(rows.shape[0])]
    b = np.concatenate([right, bounds])
    solver = clarabel.DefaultSolver(sp.csc_matrix(P), q, A, b, cones, settings)
    return interruptible(solver.solve)


class _Blocks:
    """The parts of the programme as matrices; columns are v, B v, slacks, and |v| with L1 norms.

    All of them are divided by the unit, and so is the objective (squared in L2).
    """

    def __init__(self, programme: Programme, unit: float, room: float):
        self.programme = programme
        self.unit = unit
        self.room = room
        self.q = programme.f0.shape[1]
        self.n_v = programme.B.size * self.q
        self.n_f = programme.f0.size
        self.f0 = programme.f0.ravel()
        weight = programme.weight.ravel()
        lower, upper = programme.lower.ravel(), programme.upper.ravel()
        self.slack = np.flatnonzero((weight > 0) & (np.isfinite(lower) | np.isfinite(upper)))
        self.bounds = (
            (lower[self.slack] - self.f0[self.slack]) / unit,
            (upper[self.slack] - self.f0[self.slack]) / unit,
            weight[self.slack],
        )
        self.n_l1 = self.n_v if programme.norm == "l1" else 0
        self.n = self.n_v + self.n_f + len(self.slack) + self.n_l1

    def objective(self) -> tuple[sp.csc_matrix, Floats]:
        """Return P and q of ½ xᵀPx + qᵀx."""
        programme = self.programme
        smooth: Any = sp.csr_array((self.n_f, self.n_f))
        linear = np.zeros(self.n)
        if programme.smoothness is not None:
            n = programme.smoothness.shape[0]
            wide = sp.block_diag([programme.smoothness, sp.csr_array((len(programme.f0) - n,) * 2)])
            factor = 1.0 if programme.norm == "l2" else self.unit
            smooth = factor * sp.kron(wide, sp.eye_array(self.q), format="csr")
            away = (programme.f0 - programme.centre).ravel() / self.unit
            linear[self.n_v : self.n_v + self.n_f] = smooth @ away
        if programme.norm == "l2":
            parts = [sp.eye_array(self.n_v), smooth, sp.diags_array(self.bounds[2])]
        else:
            slacks = (len(self.slack), len(self.slack))
            zeros = (self.n_v, self.n_v)
            parts = [sp.csr_array(zeros), smooth, sp.csr_array(slacks), sp.csr_array(zeros)]
            linear[self.n_v + self.n_f : self.n - self.n_l1] = self.bounds[2]
            linear[self.n - self.n_l1 :] = np.repeat(programme.B.root_penalties(), self.q)
        return sp.csc_matrix(sp.triu(sp.block_diag(parts))), linear

    def equations(self) -> tuple[sp.csr_array, Floats]:
        """Return the equations f − B v = 0 and the equations of priors."""
        B = sp.kron(self.programme.B.matrix(), sp.eye_array(self.q))
        rows, right = [self._columns(v=-B, f=sp.eye_array(self.n_f))], [np.zeros(self.n_f)]
        for matrix, lower, upper in self._priors():
            equal = lower == upper
            rows.append(self._columns(f=matrix[equal]))
            right.append(lower[equal])
        return sp.csr_array(sp.vstack(rows)), np.concatenate(right)

    def inequalities(self) -> tuple[sp.csr_array, Floats]:
        """Return the rows A x ≤ b of intervals, slacks, absolute values and priors."""
        lower, upper, _ = self.bounds
        with_slack = sp.eye_array(self.n_f, format="csr")[self.slack]
        slacks = sp.eye_array(len(self.slack), format="csr")
        rows, bounds = [], []
        for sign, limit in ((-1.0, -lower), (1.0, upper)):
            finite = np.isfinite(limit)
            rows.append(self._columns(f=sign * with_slack[finite], slack=-slacks[finite]))
            bounds.append(limit[finite])
        if self.n_l1:
            identity = sp.eye_array(self.n_v)
            rows += [self._columns(slack=-slacks)]
            rows += [self._columns(v=sign * identity, size=-identity) for sign in (-1.0, 1.0)]
            bounds += [np.zeros(len(self.slack)), np.zeros(2 * self.n_v)]
        for matrix, lower, upper in self._priors():
            for sign, limit in ((-1.0, -lower), (1.0, upper)):
                finite = np.isfinite(limit) & (lower != upper)
                rows.append(self._columns(f=sign * matrix[finite]))
                bounds.append(limit[finite] + self.room)
        return sp.csr_array(sp.vstack(rows)), np.concatenate(bounds)

    def _priors(self) -> Iterator[tuple[sp.csr_array, Floats, Floats]]:
        for prior in self.programme.constraints:
            at = prior.matrix @ self.f0
            yield prior.matrix, (prior.lower - at) / self.unit, (prior.upper - at) / self.unit

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


LeafRows = Callable[[Any], sp.csr_array]


def gather_constraints(
    priors: Sequence[Prior],
    X: Any,
    L: sp.csr_array,
    leaf_rows: LeafRows,
    n_outputs: int = 1,
    scale: Callable[[Floats], Floats] = np.asarray,
) -> tuple[sp.csr_array, list[Constraint]]:
    """Return the leaves of training rows and of the points of priors, and the constraints on them.

    ``leaf_rows(X)`` returns the leaves of inputs.
    """
    rows, found = [L], []
    for prior in priors:
        if prior.points is not None:
            check_points(prior.points, X, f"the points of {type(prior).__name__} have")
        found.append(prior.constraints(X, n_outputs, scale))
        if found[-1].points is not None:
            rows.append(leaf_rows(found[-1].points))
    n_all = sum(part.shape[0] for part in rows)
    constraints, end = [], L.shape[0]
    for prior, block in zip(priors, found, strict=True):
        size = block.matrix.shape[1] // n_outputs
        first = 0 if block.points is None else end
        end += 0 if block.points is None else size
        before = sp.csr_array((block.matrix.shape[0], first * n_outputs))
        after = sp.csr_array((block.matrix.shape[0], (n_all - first - size) * n_outputs))
        matrix = sp.csr_array(sp.hstack([before, block.matrix, after]))
        constraints.append(Constraint(str(prior), matrix, block.lower, block.upper))
    return sp.csr_array(sp.vstack(rows)), constraints


def check_priors(priors: Any) -> Sequence[Prior]:
    """Return priors, or raise a TypeError if something else was passed."""
    if isinstance(priors, Prior) or not isinstance(priors, Sequence):
        raise TypeError(f"priors is of type {type(priors).__name__}; pass a list of priors.")
    for prior in priors:
        if not isinstance(prior, Prior):
            raise TypeError(
                f"priors holds {prior!r}; pass objects of okforest.refit, such as Monotone(0)."
            )
        check_parameters(prior)
    return priors
