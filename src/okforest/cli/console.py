"""Parts that commands share: output, errors, progress and options (docs/command_line.md)."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from time import perf_counter
from typing import Annotated, Any

import typer
from rich.console import Console

PAUSE = 60.0  # seconds between two lines of progress when the output is not a terminal
WIDEST = 10_000  # columns of a table in a file or a pipe: nothing is cut off

Out = Annotated[
    Path,
    typer.Option(metavar="FOLDER", help="Folder for the results; created if it does not exist."),
]
Jobs = Annotated[int, typer.Option(help="Number of cores to use; -1 for all cores.")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed: the same seed, the same results.")]

console = Console(stderr=True)


def print_message(message: str) -> None:
    """Print a message to standard error as it is: names in square brackets are not markup."""
    console.print(message, markup=False, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(columns: list[str], rows: list[list[str]]) -> None:
    """Print a table; in a terminal, it is as wide as that."""
    from rich.table import Table

    table = Table(*columns, box=None, show_header=any(columns))
    for row in rows:
        table.add_row(*(cell.replace("[", r"\[") for cell in row))
    output = Console()
    if not output.is_terminal:
        output = Console(width=WIDEST)
    output.print(table)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Print errors in files and values without a traceback, and exit with code 2."""
    try:
        yield
    except (ValueError, OSError, ImportError) as error:
        console.print("[bold red]error:[/bold red]", end=" ")
        message = str(error)
        if isinstance(error, OSError) and error.filename is not None:
            message = f"{error.filename}: {error.strerror}."
        print_message(message)
        raise typer.Exit(2) from error


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[..., None]]:
    """Show a bar in a terminal; elsewhere, such as in a log file, a line a minute at most.

    Yields a function to call with the number of finished items. Its options are the share of the
    work that is done, if the items differ in cost, and a note about the finished items.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[status]}"))
    bar = Progress(*columns, TimeElapsedColumn(), console=console)
    task = bar.add_task(label, total=1.0, status=f"0/{total}")
    start = last = perf_counter()

    def update(done: int, share: float | None = None, note: str = "") -> None:
        nonlocal last
        now = perf_counter()
        share = done / max(total, 1) if share is None else share
        left = (now - start) * (1 - share) / share if 0 < share < 1 else 0.0
        ending = f", {_duration(left)} left" if left else ""
        bar.update(task, completed=share, status=f"{done}/{total}{note}{ending}")
        if not console.is_terminal and done and now >= last + PAUSE:
            last = now
            print_message(f"{label}: {done}/{total}{note}, {_duration(now - start)}{ending}")

    if console.is_terminal:
        with bar:
            yield update
    else:
        yield update


def check_jobs(jobs: int) -> int:
    """Return the number of jobs, or raise an error."""
    if jobs == 0:
        raise ValueError("--jobs is 0; use a positive number, or -1 for all cores.")
    return jobs


def make_writable(folder: Path, option: str) -> None:
    """Create a folder, and raise an error if files cannot be written to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(
            f"cannot write to {folder}: {error.strerror}; choose another folder with {option}."
        ) from error


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
