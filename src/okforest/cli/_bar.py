"""Progress of ``okforest index``: a bar with the time left, or an occasional line."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from okforest.cli._console import console, print_message

PAUSE = 20.0  # seconds between two lines of progress when the output is not a terminal


@contextmanager
def showing(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar with the time left; elsewhere than in a terminal, an occasional line."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    bar = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console)
    task = bar.add_task(label, total=total)
    start = last = time.perf_counter()

    def update(done: int) -> None:
        nonlocal last
        bar.update(task, completed=done)
        now = time.perf_counter()
        if not console.is_terminal and done and now > last + PAUSE:
            last = now
            left = (now - start) * (total - done) / done
            print_message(f"{label}: {done}/{total}, {now - start:.0f} s, {left:.0f} s left")

    if console.is_terminal:
        with bar:
            yield update
    else:
        yield update
