"""The application: its commands and its options."""

from typing import Annotated

import typer

import okforest
from okforest.cli.index import app as index
from okforest.cli.info import info
from okforest.cli.network import network
from okforest.cli.reproduce import reproduce

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command()(network)
app.command()(info)
app.command()(reproduce)
app.add_typer(index, name="index")


def print_version(requested: bool) -> None:
    """Print the version and exit, if requested."""
    if requested:
        typer.echo(f"okforest {okforest.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Predict anything that has a kernel, with trees and forests."""
