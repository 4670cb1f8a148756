"""Progress of jobs: how many have finished, and an estimate of the time left."""

from collections.abc import Iterable
from time import perf_counter
from typing import Self

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from okforest.cli._console import console
from okforest.papers import Finished, Job

PAUSE = 20.0  # seconds between two lines when the output is not a terminal


class JobProgress:
    """A progress bar in a terminal; elsewhere, such as in a log file, an occasional line.

    The time left is estimated from the costs of the jobs, since expensive jobs run first.

    Parameters
    ----------
    label : str
        Name of the experiment.
    jobs : iterable of Job
        All jobs.
    """

    def __init__(self, label: str, jobs: Iterable[Job]):
        costs = [job.cost for job in jobs]
        self.label = label
        self.n_jobs, self.n_done, self.n_cached = len(costs), 0, 0
        self.cost, self.cost_done = sum(costs), 0.0
        self.start = self.last_line = perf_counter()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[status]}"),
        )
        self.bar = Progress(*columns, TimeElapsedColumn(), console=console)
        self.task = self.bar.add_task(label, total=self.cost, status=f"0/{self.n_jobs}")

    def __enter__(self) -> Self:
        if console.is_terminal:
            self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if console.is_terminal:
            self.bar.stop()

    def update(self, done: Finished) -> None:
        """Count a finished job."""
        self.n_done += 1
        if done.cached:
            self.n_cached += 1
            self.cost -= done.job.cost
        else:
            self.cost_done += done.job.cost
        status = f"{self.n_done}/{self.n_jobs}{self._time_left()}"
        self.bar.update(self.task, total=self.cost, completed=self.cost_done, status=status)
        now = perf_counter()
        last = self.n_done == self.n_jobs
        if not console.is_terminal and (last or now > self.last_line + PAUSE):
            self.last_line = now
            cached = f" ({self.n_cached} cached)" if self.n_cached else ""
            console.print(
                f"{self.label}: {status}{cached}, {now - self.start:.0f} s", soft_wrap=True
            )

    def _time_left(self) -> str:
        if self.cost_done == 0.0 or self.n_done == self.n_jobs:
            return ""
        elapsed = perf_counter() - self.start
        left = elapsed * (self.cost - self.cost_done) / self.cost_done
        return f", {left / 60:.0f} min left" if left > 90 else f", {left:.0f} s left"
