"""Independent pieces of an experiment, and what they have found."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from okforest._typing import Floats


@dataclass(frozen=True, eq=False)
class Job:
    """One row of a table on one fold, say: a function and what it is called with.

    Parameters
    ----------
    row : str
        What people call it.
    work : callable
        A function of a module, so that other processes find it. It returns numbers, text, and
        lists and dicts of them.
    arguments : dict
        What it is called with: likewise numbers, text, lists and dicts.
    cost : float, default=1.0
        About how many seconds it takes, for the estimate of the time left; dear jobs come first.
    """

    row: str
    work: Callable[..., dict[str, Any]]
    arguments: dict[str, Any]
    cost: float = 1.0


class Finished(NamedTuple):
    """A job, its result, the CPU time that it took, and whether that was in an earlier run."""

    job: Job
    result: dict[str, Any]
    seconds: float
    earlier: bool


class Results:
    """What the jobs of an experiment have found.

    Parameters
    ----------
    finished : list of Finished
        In the order of the jobs.
    """

    def __init__(self, finished: list[Finished]):
        self.finished = finished

    def __iter__(self) -> Iterator[Finished]:
        return iter(self.finished)

    def of(self, row: str, **arguments: Any) -> list[dict[str, Any]]:
        """Return the results of a row, those with such arguments."""
        return [
            done.result
            for done in self.finished
            if done.job.row == row
            and all(done.job.arguments.get(name) == value for name, value in arguments.items())
        ]

    def values(self, name: str, row: str, **arguments: Any) -> Floats:
        """Return one number of every such result."""
        return np.array([result[name] for result in self.of(row, **arguments)], dtype=np.float64)

    def by_seed(self, name: str, row: str, **arguments: Any) -> Floats:
        """Return one number of every such result, as a matrix of seeds by folds."""
        seeds = sorted(
            {done.job.arguments["seed"] for done in self.finished if done.job.row == row}
        )
        return np.array([self.values(name, row, seed=seed, **arguments) for seed in seeds])
