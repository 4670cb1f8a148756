"""Output of the commands: messages and errors, on the standard error stream."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

console = Console(stderr=True)


def print_message(message: str) -> None:
    """Print a message as it is: names in square brackets are not markup."""
    console.print(message, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Print errors in files and values without a traceback, and exit with code 2."""
    try:
        yield
    except (ValueError, OSError, ImportError) as error:
        console.print("[bold red]error:[/bold red]", end=" ")
        print_message(str(error))
        raise typer.Exit(2) from error
