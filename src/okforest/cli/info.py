"""``okforest info``: what is in a file."""

from pathlib import Path
from typing import Annotated

import typer

import okforest
from okforest.cli._console import plain_errors


def info(
    path: Annotated[Path, typer.Argument(help="A file written by okforest.save.", metavar="FILE")],
) -> None:
    """List what a saved model holds, and which version of okforest wrote it."""
    with plain_errors():
        typer.echo(okforest.describe(path))
