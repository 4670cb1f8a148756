"""The independent jobs of an experiment, run in parallel by joblib, with a cache of their results.

``joblib.Memory`` would also key results by the source of each function, so that editing a
docstring would discard hours of work, and it has no checksums. The cache here has explicit keys.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

import okforest
from okforest._utils.arrays import Floats
from okforest.persistence.atomic import replacing


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
    """

    row: str
    work: Callable[..., dict[str, Any]]
    arguments: dict[str, Any]
    cost: float = 1.0


class Finished(NamedTuple):
    """A finished job, its result, its CPU time, and whether the result was in the cache."""

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


class Outcome(NamedTuple):
    """The result of a job and its CPU time in seconds."""

    result: dict[str, Any]
    seconds: float


class Cache:
    """A folder with one small file for each finished job.

    A result is found again by the experiment and its version, the release of okforest, the
    contents of the data files, and the function and arguments of the job. The code is not part of
    the key: increase the version of an experiment when its results change.

    Parameters
    ----------
    folder : Path
        The folder, created when the first result is stored.
    experiment, version : str
        Name and version of the experiment.
    files : iterable of Path, optional
        The data files. Their names and contents matter, their folder does not.
    """

    def __init__(self, folder: Path, experiment: str, version: str, files: Iterable[Path] = ()):
        self.folder = folder
        self.experiment = experiment
        self.version = version
        self.data = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    def load(self, job: Job) -> Outcome | None:
        """Return the stored outcome of a job, or None if it is absent or damaged."""
        try:
            key, outcome, checksum = joblib.load(self._path(job))
        except Exception:  # no file, or whatever unpickling a damaged file raises
            return None
        whole = key == self._key(job) and checksum == joblib.hash((key, outcome))
        return Outcome(*outcome) if whole else None

    def store(self, job: Job, outcome: Outcome) -> None:
        """Store the outcome of a job."""
        self.folder.mkdir(parents=True, exist_ok=True)
        key = self._key(job)
        with replacing(self._path(job)) as file:
            joblib.dump((key, tuple(outcome), joblib.hash((key, tuple(outcome)))), file)

    def _path(self, job: Job) -> Path:
        return self.folder / f"{self.experiment}-{joblib.hash(self._key(job))}.pkl"

    def _key(self, job: Job) -> dict[str, Any]:
        return {
            "experiment": self.experiment,
            "version": self.version,
            "okforest": okforest.__version__,
            "data": self.data,
            "work": f"{job.work.__module__}.{job.work.__qualname__}",
            "arguments": job.arguments,
        }


def run(
    jobs: list[Job],
    cache: Cache,
    workers: int = 1,
    finished: Callable[[Finished], object] = lambda done: None,
) -> Results:
    """Run the jobs whose results are not in the cache and return the results of all jobs.

    Every result is stored as soon as its job ends. When the run is interrupted or a job fails, the
    jobs in progress are stopped, and the next run computes them and those after them.

    Parameters
    ----------
    jobs : list of Job
        The jobs.
    cache : Cache
        The cache of results.
    workers : int, default=1
        Number of processes; 1 runs the jobs in this process.
    finished : callable, optional
        Called with every finished job: first those in the cache, then the others as they end.

    Returns
    -------
    results : Results
        The results, in the order of the jobs.
    """
    done: dict[int, Finished] = {}

    def record(position: int, outcome: Outcome, cached: bool) -> None:
        done[position] = Finished(jobs[position], *outcome, cached)
        finished(done[position])

    waiting = []
    for position, job in enumerate(jobs):
        outcome = cache.load(job)
        if outcome is None:
            waiting.append(position)
        else:
            record(position, outcome, cached=True)
    waiting.sort(key=lambda position: -jobs[position].cost)
    parallel = joblib.Parallel(workers, return_as="generator_unordered", batch_size=1)
    tasks = (joblib.delayed(_perform)(position, jobs[position], cache) for position in waiting)
    for position, outcome in parallel(tasks):
        record(position, outcome, cached=False)
    return Results([done[position] for position in range(len(jobs))])


def _perform(position: int, job: Job, cache: Cache) -> tuple[int, Outcome]:
    """Run a job on one thread, store its outcome and return it with the job's position."""
    with threadpool_limits(1):
        start = process_time()
        outcome = Outcome(job.work(**job.arguments), process_time() - start)
    cache.store(job, outcome)
    return position, outcome
