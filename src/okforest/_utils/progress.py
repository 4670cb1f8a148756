"""Progress of a fit: a bar on standard error, for ``verbose``, and callbacks."""

import sys
import time
from typing import Any, Self

from okforest._utils.arrays import Progress


class ProgressBar:
    """Show how many of ``total`` items are done, the elapsed time and an estimate of the time left.

    Call it with the number of items done so far. ``first`` of them were done before the bar
    started.
    """

    def __init__(self, total: int, label: str, first: int = 0):
        self.total = total
        self.label = label
        self.first = first
        self.done = first
        self.start = self.drawn = time.perf_counter()
        # A notebook redraws a line as a terminal does; a file or a pipe keeps every line.
        notebook = type(sys.stderr).__module__.startswith("ipykernel")
        self.redrawn = sys.stderr.isatty() or notebook
        self.pause = 0.0 if sys.stderr.isatty() else 1.0 if notebook else 60.0

    def __call__(self, done: int) -> None:
        """Draw the bar: at every call in a terminal, once a second in a notebook.

        In a file or a pipe it is a line a minute, and one at the end.
        """
        now, self.done = time.perf_counter(), done
        if done < self.total and now < self.drawn + self.pause:
            return
        self.drawn = now
        self._draw(done, now - self.start, end="\n" if done == self.total else "")

    def close(self) -> None:
        """Draw the bar a last time and end its line, if it has not reached its total."""
        if self.first < self.done < self.total:
            self._draw(self.done, time.perf_counter() - self.start, end="\n")

    def _draw(self, done: int, spent: float, end: str) -> None:
        filled = 30 * done // self.total
        bar = "#" * filled + "." * (30 - filled)
        new, more = done - self.first, self.total - done
        left = f", {spent * more / new:.1f} s left" if new > 0 and more > 0 else ""
        line = f"{self.label} [{bar}] {done}/{self.total}, {spent:.1f} s{left}"
        sys.stderr.write(f"\r{line:<100}{end}" if self.redrawn else f"{line}\n")
        sys.stderr.flush()


class FitTasks:
    """Trees or rounds as subtasks of a fit, for callbacks of scikit-learn 1.9 and later.

    They are set by ``estimator.set_callbacks``. A callback cannot stop the fit, except by an
    exception.
    """

    def __init__(self, estimator: Any, name: str, n_tasks: int):
        self.estimator, self.name, self.done = estimator, name, 0
        self.fit = estimator._init_callback_context(max_subtasks=n_tasks)
        self.fit.call_on_fit_task_begin(estimator=estimator)

    def __call__(self, done: int) -> None:
        for _ in range(self.done, done):
            task = self.fit.subcontext(task_name=self.name)
            task.call_on_fit_task_begin(estimator=self.estimator)
            task.call_on_fit_task_end(estimator=self.estimator)
        self.done = max(self.done, done)

    def end(self) -> None:
        """Report that the fit is complete."""
        self.fit.call_on_fit_task_end(estimator=self.estimator)


class Watchers:
    """Whoever is told the number of new trees or rounds: a progress bar and callbacks.

    The bar and the callback are passed the total number, including the ``first`` ones of a previous
    fit.
    """

    def __init__(
        self, first: int, bar: ProgressBar | None, callback: Progress | None, tasks: FitTasks | None
    ):
        self.first, self.bar, self.callback, self.tasks = first, bar, callback, tasks

    def __call__(self, done: int) -> None:
        if self.bar is not None:
            self.bar(self.first + done)
        if self.callback is not None:
            self.callback(self.first + done)
        if self.tasks is not None:
            self.tasks(done)

    def close(self) -> None:
        """End the line of the bar."""
        if self.bar is not None:
            self.bar.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """End the line of the bar, and the fit if there was no error."""
        self.close()
        if self.tasks is not None and error is None:
            self.tasks.end()


def progress_of(
    first: int,
    total: int,
    verbose: int,
    callback: Progress | None,
    label: str = "growing trees",
    estimator: Any = None,
) -> Watchers:
    """Return what to call with the number of new trees or rounds.

    It is a progress bar if ``verbose``, the callback, and the callbacks that ``set_callbacks`` of
    the estimator has set.
    """
    bar = ProgressBar(total, label, first) if verbose else None
    tasks = None
    if getattr(estimator, "_skl_callbacks", None):
        tasks = FitTasks(estimator, label, total - first)
    return Watchers(first, bar, callback, tasks)
