"""The commands, gathered."""

from typing import Annotated

import typer

import okforest
from okforest.cli.network import network
from okforest.cli.reproduce import reproduce

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command()(network)
app.command()(reproduce)


def tell_version(asked: bool) -> None:
    """Print the version and end, if asked to."""
    if asked:
        typer.echo(f"okforest {okforest.__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool,
        typer.Option("--version", callback=tell_version, is_eager=True, help="Say the version."),
    ] = False,
) -> None:
    """Predict anything that has a kernel, with trees and forests."""
