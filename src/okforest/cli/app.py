"""The application: its commands, and the options of all of them."""

import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from okforest.cli.console import plain_errors
from okforest.cli.index import compact, list_images, merge, remove, serve
from okforest.cli.index import info as index_info
from okforest.cli.index_build import add, build, vocabulary
from okforest.cli.index_search import evaluate, explain, search
from okforest.cli.network import network

BOOLEANS = ("true", "false")


class Command(TyperCommand):
    """A command whose flags have no type in the help, and take no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with nothing to show as the type of flags."""
        return _without_types(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; raise an error for a flag with a value, such as --clean true."""
        flags = {name for one in self.get_params(ctx) if _is_flag(one) for name in one.opts}
        end = args.index("--") if "--" in args else len(args)
        for flag, value in pairwise(args[:end]):
            if flag in flags and value.lower() in BOOLEANS:
                ctx.fail(
                    f"Option '{flag}' takes no value: remove '{value}'. (A file of this name is "
                    f"./{value}.)"
                )
        return super().parse_args(ctx, args)


class Group(TyperGroup):
    """A group of commands whose flags have no type in the help."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with nothing to show as the type of flags."""
        return _without_types(super().get_params(ctx))


def _without_types(params: list[Any]) -> list[Any]:
    for param in params:
        if _is_flag(param):
            param.metavar = ""
    return params


def _is_flag(param: Any) -> bool:
    return bool(getattr(param, "is_flag", False))


app = typer.Typer(
    cls=Group, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)
index = typer.Typer(cls=Group, no_args_is_help=True, help="Search images by parts that look alike.")


def print_version(requested: bool) -> None:
    """Print the version and exit, if requested."""
    if requested:
        from okforest import __version__

        typer.echo(f"okforest {__version__}")
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


def info(
    path: Annotated[Path, typer.Argument(help="A file written by okforest.save.", metavar="FILE")],
) -> None:
    """List what a saved model holds, and which version of okforest wrote it."""
    with plain_errors():
        from okforest.persistence import describe

        typer.echo(describe(path))


@index.callback()
def prepare() -> None:
    """Search images by parts that look alike."""
    # Pillow warns of large pictures; those beyond our limit are reported as skipped.
    warnings.filterwarnings("ignore", r"Image size \(\d+ pixels\) exceeds limit")


INDEX_COMMANDS: dict[str, Callable[..., None]] = {
    "search": search,
    "explain": explain,
    "evaluate": evaluate,
    "serve": serve,
    "build": build,
    "add": add,
    "remove": remove,
    "list": list_images,
    "info": index_info,
    "compact": compact,
    "merge": merge,
    "vocabulary": vocabulary,
}

for command in (network, info):
    app.command(cls=Command)(command)
for name, subcommand in INDEX_COMMANDS.items():
    index.command(name, cls=Command)(subcommand)
app.add_typer(index, name="index")
