"""A progress bar on the standard error stream, for ``verbose``."""

import sys
import time

from okforest._typing import Progress


class ProgressBar:
    """Show how many of ``total`` are done, the time spent and an estimate of the time left.

    Call it with the number done so far, of which ``first`` were done before, as often as
    convenient.
    """

    def __init__(self, total: int, label: str, first: int = 0):
        self.total = total
        self.label = label
        self.first = first
        self.start = self.drawn = time.perf_counter()

    def __call__(self, done: int) -> None:
        """Redraw the bar: at every call in a terminal, else (a notebook, a file) once a second."""
        now = time.perf_counter()
        if done < self.total and not sys.stderr.isatty() and now < self.drawn + 1.0:
            return
        self.drawn = now
        spent = now - self.start
        filled = 30 * done // self.total
        bar = "#" * filled + "." * (30 - filled)
        new, more = done - self.first, self.total - done
        left = f", {spent * more / new:.1f} s left" if new > 0 and more > 0 else ""
        line = f"{self.label} [{bar}] {done}/{self.total}, {spent:.1f} s{left}"
        end = "\n" if done == self.total else ""
        sys.stderr.write(f"\r{line:<100}{end}")
        sys.stderr.flush()


def progress_of(first: int, total: int, verbose: int, callback: Progress | None) -> Progress | None:
    """Return what to call with the number of new trees: a bar if ``verbose``, and the callback.

    Both are told of all trees, the first ones being there already.
    """
    watchers: list[Progress] = [ProgressBar(total, "growing trees", first)] if verbose else []
    watchers += [callback] if callback is not None else []
    if not watchers:
        return None

    def progress(done: int) -> None:
        for watcher in watchers:
            watcher(first + done)

    return progress
