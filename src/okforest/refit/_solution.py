"""What every solver returns, and the warning if it did not converge."""

from dataclasses import dataclass

from sklearn.exceptions import ConvergenceWarning

from okforest._typing import Floats
from okforest._warnings import warn


@dataclass(frozen=True)
class Solution:
    """The adjustments that minimise a programme.

    Parameters
    ----------
    v : ndarray of shape (size,) or (size, q)
        Scaled adjustments; see :class:`okforest.refit._adjustments.Adjustments`.
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
