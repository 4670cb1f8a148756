"""The commands, gathered."""

import typer

from okforest.cli.network import network

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command()(network)


@app.callback()
def about() -> None:
    """Predict anything that has a kernel, with trees and forests."""
