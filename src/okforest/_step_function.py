"""Step functions: what predictions of survival functions are."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from okforest._typing import Floats, Outputs


@dataclass(frozen=True, eq=False)
class StepFunction:
    """A survival function that is constant between times.

    It follows the convention of scikit-survival: ``x`` and ``y`` are its times and values, and a
    call evaluates it.

    Parameters
    ----------
    x : ndarray of shape (m,)
        Times, ascending.
    y : ndarray of shape (m,)
        Values from each time to the next. Before the first time, the value is 1.

    Examples
    --------
    >>> from okforest.metrics import StepFunction
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
        return evaluate(np.asarray(self.x), np.atleast_2d(self.y), t)[0]


def step_functions(times: Floats, values: Floats) -> Outputs:
    """Return an array of functions from values (n, m) at m times."""
    functions = np.empty(len(values), dtype=object)
    functions[:] = [StepFunction(times, row) for row in values]
    return functions


def evaluate(times: Floats, values: Floats, t: Any) -> Floats:
    """Return step functions, of values (n, m) at m times, at other times t; 1 before the first."""
    steps = np.column_stack([np.ones(len(values)), values])
    return steps[:, np.searchsorted(times, np.asarray(t, dtype=np.float64), side="right")]
