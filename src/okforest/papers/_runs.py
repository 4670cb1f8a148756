"""Jobs run in parallel by joblib, with a cache of their results.

``joblib.Memory`` would also key results by the source of each function, so that editing a
docstring would discard hours of work. The cache here has explicit keys instead.
"""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import joblib
from threadpoolctl import threadpool_limits

import okforest
from okforest.papers._jobs import Finished, Job, Results
from okforest.persistence.atomic import replacing


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

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from okforest.papers import Cache, Job, run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = Cache(Path(folder), "sums", "1")
    ...     jobs = [Job("one", dict, {"total": 1})]
    ...     for _ in range(2):
    ...         results = run(jobs, cache, finished=lambda job: print(job.cached))
    False
    True
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

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from okforest.papers import Cache, Job, run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     jobs = [Job("one", dict, {"total": 1}), Job("two", dict, {"total": 2})]
    ...     results = run(jobs, Cache(Path(folder), "sums", "1"))
    >>> results.values("total", "two")
    array([2.])
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
