"""A progress bar on standard error, for ``verbose``."""

import sys
import time

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


class Watchers:
    """A progress bar, a callback or both, called with the number of new trees or rounds.

    Both are passed the total number, including the ``first`` ones of a previous fit.
    """

    def __init__(self, first: int, bar: ProgressBar | None, callback: Progress | None):
        self.first, self.bar, self.callback = first, bar, callback

    def __call__(self, done: int) -> None:
        if self.bar is not None:
            self.bar(self.first + done)
        if self.callback is not None:
            self.callback(self.first + done)

    def close(self) -> None:
        """End the line of the bar."""
        if self.bar is not None:
            self.bar.close()


def progress_of(
    first: int,
    total: int,
    verbose: int,
    callback: Progress | None,
    label: str = "growing trees",
) -> Watchers:
    """Return what to call with the number of new trees: a bar if ``verbose``, and the callback."""
    return Watchers(first, ProgressBar(total, label, first) if verbose else None, callback)
