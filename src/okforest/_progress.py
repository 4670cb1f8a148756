"""A progress bar on the standard error stream, for ``verbose``."""

import sys
import time

from okforest._typing import Progress


class ProgressBar:
    """Show how many of ``total`` are done, the time spent and an estimate of the time left.

    Call it with the number done so far, as often as convenient.
    """

    def __init__(self, total: int, label: str):
        self.total = total
        self.label = label
        self.start = time.perf_counter()

    def __call__(self, done: int) -> None:
        """Redraw the bar; in a file or a pipe, write it once, when all is done."""
        if done < self.total and not sys.stderr.isatty():
            return
        spent = time.perf_counter() - self.start
        filled = 30 * done // self.total
        bar = "#" * filled + "." * (30 - filled)
        left = f", {spent * (self.total - done) / done:.1f} s left" if 0 < done < self.total else ""
        line = f"{self.label} [{bar}] {done}/{self.total}, {spent:.1f} s{left}"
        end = "\n" if done == self.total else ""
        sys.stderr.write(f"\r{line:<100}{end}")
        sys.stderr.flush()


def progress_of(total: int, label: str, verbose: int, callback: Progress | None) -> Progress | None:
    """Return what to call as work goes on: the bar if ``verbose``, the callback if there is one."""
    watchers: list[Progress] = [ProgressBar(total, label)] if verbose else []
    watchers += [callback] if callback is not None else []
    if not watchers:
        return None

    def progress(done: int) -> None:
        for watcher in watchers:
            watcher(done)

    return progress
