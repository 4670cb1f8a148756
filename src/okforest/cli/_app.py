"""The commands, gathered."""

import typer

from okforest.cli.network import network
from okforest.cli.reproduce import reproduce

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command()(network)
app.command()(reproduce)


@app.callback()
def about() -> None:
    """Predict anything that has a kernel, with trees and forests."""
