"""The independent jobs of an experiment and their results."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from okforest._utils.arrays import Floats


@dataclass(frozen=True, eq=False)
class Job:
    """A function and its arguments, such as one row of a table on one fold.

    Parameters
    ----------
    row : str
        Name of the row in the report.
    work : callable
        A module-level function, so that worker processes can import it. It returns a non-empty
        dict of numbers, text, lists and dicts.
    arguments : dict
        Keyword arguments of the function: numbers, text, lists and dicts.
    cost : float, default=1.0
        Approximate number of seconds, used to estimate the time left. Expensive jobs run first.

    Examples
    --------
    >>> from okforest.papers import Job
    >>> job = Job("tree", dict, {"fold": 0})
    >>> job.work(**job.arguments)
    {'fold': 0}
    """

    row: str
    work: Callable[..., dict[str, Any]]
    arguments: dict[str, Any]
    cost: float = 1.0


class Finished(NamedTuple):
    """A finished job, its result, its CPU time, and whether the result was in the cache.

    Examples
    --------
    >>> from okforest.papers import Finished, Job
    >>> Finished(Job("tree", dict, {"fold": 0}), {"loss": 0.5}, seconds=1.0, cached=False).result
    {'loss': 0.5}
    """

    job: Job
    result: dict[str, Any]
    seconds: float
    cached: bool


class Results:
    """Results of the jobs of an experiment.

    Parameters
    ----------
    finished : list of Finished
        The finished jobs, in the order in which the experiment lists them.

    Examples
    --------
    >>> from okforest.papers import Finished, Job, Results
    >>> jobs = [Job("tree", dict, {"fold": fold}) for fold in range(2)]
    >>> results = Results([Finished(job, {"loss": 0.5}, 1.0, False) for job in jobs])
    >>> results.values("loss", "tree")
    array([0.5, 0.5])
    """

    def __init__(self, finished: list[Finished]):
        self.finished = finished

    def __iter__(self) -> Iterator[Finished]:
        return iter(self.finished)

    def select(self, row: str, **arguments: Any) -> list[dict[str, Any]]:
        """Return the results of a row whose jobs have the given arguments."""
        return [
            done.result
            for done in self.finished
            if done.job.row == row
            and all(done.job.arguments.get(name) == value for name, value in arguments.items())
        ]

    def values(self, name: str, row: str, **arguments: Any) -> Floats:
        """Return one number from each of the selected results."""
        found = [result[name] for result in self.select(row, **arguments)]
        return np.array(found, dtype=np.float64)

    def by_seed(self, name: str, row: str, **arguments: Any) -> Floats:
        """Return one number from each of the selected results, of shape (n_seeds, n_folds)."""
        seeds = sorted(
            {done.job.arguments["seed"] for done in self.finished if done.job.row == row}
        )
        return np.array([self.values(name, row, seed=seed, **arguments) for seed in seeds])
