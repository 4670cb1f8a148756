"""What all commands say, and how they say that something is wrong."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

console = Console(stderr=True)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Say what is wrong with files and values, without a traceback."""
    try:
        yield
    except (ValueError, OSError, ImportError) as error:
        console.print("[bold red]error:[/bold red]", end=" ")
        console.print(str(error), markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(2) from error
