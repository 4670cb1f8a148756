"""Survival functions of exact and censored times: Kaplan–Meier, and Turnbull for intervals."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from okforest._utils.arrays import Booleans, Floats, Ints, Outputs
from okforest._utils.errors import warn
from okforest.survival.outputs import is_exact

MAX_ITERATIONS = 2000  # the self-consistency equations are solved by iteration
TOLERANCE = 1e-9  # iterations stop if the survival function changes less


@dataclass(frozen=True, eq=False)
class StepFunction:
    """A survival function that is constant between times, such as a Kaplan–Meier curve.

    It follows the convention of scikit-survival: ``x`` and ``y`` are its times and values, and a
    call evaluates it.

    Parameters
    ----------
    x : ndarray of shape (m,)
        Times, ascending.
    y : ndarray of shape (m,)
        Values from each time to the next. Before the first time, the value is 1; at infinity, 0.

    Examples
    --------
    >>> from okforest.survival import StepFunction
    >>> StepFunction(x=[2.0, 5.0], y=[0.8, 0.3])([0.0, 2.0, 4.9, 7.0])
    array([1. , 0.8, 0.8, 0.3])
    """

    x: Floats
    y: Floats

    def __repr__(self) -> str:
        """Return the range of times and values."""
        if not len(self.x):
            return "StepFunction(x=[], y=[])"
        return (
            f"StepFunction({len(self.x)} times from {self.x[0]:g} to {self.x[-1]:g}, values from "
            f"{self.y[0]:g} to {self.y[-1]:g})"
        )

    def __call__(self, t: Any) -> Floats:
        """Return the values at times t."""
        values = evaluate(np.asarray(self.x), np.atleast_2d(self.y), t)[0]
        return np.where(np.isposinf(t), 0.0, values)


def kaplan_meier(event: Booleans, time: Floats) -> StepFunction:
    """Return the Kaplan–Meier estimate; at equal times, events come before censoring."""
    times, group, leaving = np.unique(time, return_inverse=True, return_counts=True)
    events = np.bincount(group, weights=event, minlength=len(times))
    at_risk = leaving[::-1].cumsum()[::-1]
    fell = events > 0
    return StepFunction(times[fell], np.cumprod(1.0 - (events / at_risk)[fell]))


def censoring_survival(event: Booleans, time: Floats) -> StepFunction:
    """Return the Kaplan–Meier estimate of the time of censoring; ties are events first."""
    times, group = np.unique(time, return_inverse=True)
    events = np.bincount(group, weights=event, minlength=len(times))
    censored = np.bincount(group, weights=~event, minlength=len(times))
    at_risk = (events + censored)[::-1].cumsum()[::-1] - events
    fell = censored > 0
    steps: Floats = 1.0 - censored[fell] / at_risk[fell]
    return StepFunction(times[fell], np.asarray(np.cumprod(steps)))


def turnbull(intervals: Floats) -> StepFunction:
    """Return the self-consistent estimate of Turnbull (1976), whose mass is at upper bounds.

    An interval (lower, upper] excludes its lower bound unless both are equal. For exact and
    right-censored times it is the Kaplan–Meier estimate.
    """
    lower, upper = intervals.T
    times = np.unique(upper[np.isfinite(upper)])
    first = np.where(
        is_exact(intervals),
        np.searchsorted(times, lower, side="left"),
        np.searchsorted(times, lower, side="right"),
    )
    end = np.searchsorted(times, upper, side="right") + np.isposinf(upper)  # cell m: after all
    mass = np.full(len(times) + 1, 1.0 / (len(times) + 1))
    if not np.isposinf(upper).any():
        mass = np.append(np.full(len(times), 1.0 / len(times)), 0.0)
    for _ in range(MAX_ITERATIONS):
        once = _share_out(mass, first, end)
        change = float(np.abs((once - mass).cumsum()).max())
        if change <= TOLERANCE:
            break
        mass = _share_out(_extrapolate(mass, once, _share_out(once, first, end)), first, end)
    else:
        warn(
            f"Turnbull's estimate of the survival function still changes by {change:.1e} after "
            f"{MAX_ITERATIONS} iterations.",
            ConvergenceWarning,
        )
    survival = np.maximum(1.0 - mass.cumsum()[:-1], 0.0)
    fell = mass[:-1] > 1e-12
    return StepFunction(times[fell], survival[fell])


def _share_out(mass: Floats, first: Ints, end: Ints) -> Floats:
    """Return the self-consistent update: every case shares its weight among its cells by mass."""
    total = np.concatenate([[0.0], mass.cumsum()])
    share = 1.0 / np.maximum(total[end] - total[first], 1e-300)
    added = np.bincount(first, share, len(mass) + 1) - np.bincount(end, share, len(mass) + 1)
    new = mass * added.cumsum()[:-1]
    return np.asarray(new / new.sum())


def _extrapolate(start: Floats, once: Floats, twice: Floats) -> Floats:
    """Continue two updates along their trend (squared extrapolation of Varadhan and Roland)."""
    step = once - start
    bend = twice - once - step
    length = max(float(np.linalg.norm(step)) / max(float(np.linalg.norm(bend)), 1e-300), 1.0)
    guess = start + 2.0 * length * step + length**2 * bend
    return np.maximum(guess, 0.1 * twice)  # mass that is zero would stay zero


def estimate_survival(intervals: Floats) -> StepFunction:
    """Return the estimate for any mixture of exact, censored and unlabelled times."""
    lower, upper = intervals.T
    exact = is_exact(intervals)
    if not np.isfinite(upper).any():
        raise ValueError(
            "y holds no event: every time is censored, or unknown. At least one case needs an "
            "exact time, or a finite upper bound."
        )
    if (exact | np.isposinf(upper)).all() and np.isfinite(lower).all():
        return kaplan_meier(exact, lower)
    return turnbull(intervals)


def step_functions(times: Floats, values: Floats) -> Outputs:
    """Return an array of functions from values (n, m) at m times."""
    functions = np.empty(len(values), dtype=object)
    functions[:] = [StepFunction(times, row) for row in values]
    return functions


def evaluate(times: Floats, values: Floats, t: Any) -> Floats:
    """Return step functions, of values (n, m) at m times, at other times t; 1 before the first."""
    steps = np.column_stack([np.ones(len(values)), values])
    return steps[:, np.searchsorted(times, np.asarray(t, dtype=np.float64), side="right")]


def quantile_times(times: Floats, curves: Floats, quantiles: Any) -> Floats:
    """Return the first time at which 1 − S reaches each quantile; infinite if it does not."""
    levels = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
    if levels.ndim != 1 or not ((levels > 0) & (levels < 1)).all():
        raise ValueError(f"quantiles={quantiles!r}; use numbers between 0 and 1, such as 0.5.")
    reached = 1.0 - curves[:, :, None] >= levels - 1e-12
    found = np.append(times, np.inf)[np.where(reached.any(axis=1), reached.argmax(axis=1), -1)]
    return found[:, 0] if np.ndim(quantiles) == 0 else found


def restricted_means(times: Floats, curves: Floats) -> Floats:
    """Return the areas under survival functions up to the last time."""
    return np.asarray(times[0] + curves[:, :-1] @ np.diff(times))
