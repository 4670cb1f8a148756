"""The progress of jobs: how many are done, and about how long the others will take."""

from collections.abc import Iterable
from time import perf_counter
from typing import Self

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from okforest.cli._console import console
from okforest.papers import Finished, Job

PAUSE = 20.0  # seconds between two lines where there is no terminal to draw a bar in


class JobProgress:
    """A bar in a terminal, else (a file) a line now and then.

    The time left is told by what jobs cost, so that dear ones at the beginning do not mislead.

    Parameters
    ----------
    label : str
        What is going on.
    jobs : iterable of Job
        All of the jobs.
    """

    def __init__(self, label: str, jobs: Iterable[Job]):
        costs = [job.cost for job in jobs]
        self.label = label
        self.n_jobs, self.n_done, self.n_earlier = len(costs), 0, 0
        self.cost, self.cost_done = sum(costs), 0.0
        self.start = self.told = perf_counter()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[words]}"),
        )
        self.bar = Progress(*columns, TimeElapsedColumn(), console=console)
        self.task = self.bar.add_task(label, total=self.cost, words=f"0/{self.n_jobs}")

    def __enter__(self) -> Self:
        if console.is_terminal:
            self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Leave the bar as it is."""
        if console.is_terminal:
            self.bar.stop()

    def finished(self, done: Finished) -> None:
        """Tell that a job is done."""
        self.n_done += 1
        if done.earlier:
            self.n_earlier += 1
            self.cost -= done.job.cost
        else:
            self.cost_done += done.job.cost
        words = f"{self.n_done}/{self.n_jobs}{self._left()}"
        self.bar.update(self.task, total=self.cost, completed=self.cost_done, words=words)
        now = perf_counter()
        last = self.n_done == self.n_jobs
        if not console.is_terminal and (last or now > self.told + PAUSE):
            self.told = now
            earlier = f" ({self.n_earlier} earlier)" if self.n_earlier else ""
            console.print(
                f"{self.label}: {words}{earlier}, {now - self.start:.0f} s", soft_wrap=True
            )

    def stopping(self, n_under_way: int) -> None:
        """Tell that the run stops when the jobs under way are done."""
        console.print(
            f"stopping when {n_under_way} jobs under way are done; press Ctrl-C again to stop at "
            "once, and lose them",
            soft_wrap=True,
        )

    def _left(self) -> str:
        if self.cost_done == 0.0 or self.n_done == self.n_jobs:
            return ""
        spent = perf_counter() - self.start
        left = spent * (self.cost - self.cost_done) / self.cost_done
        return f", {left / 60:.0f} min left" if left > 90 else f", {left:.0f} s left"
