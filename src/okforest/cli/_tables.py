"""Tables, JSON and reports of ``okforest index``."""

import json
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from okforest.cli._console import print_message
from okforest.retrieval import Added

WIDEST = 10_000  # columns of a table in a file or a pipe: nothing is cut off


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(columns: list[str], rows: list[list[str]]) -> None:
    """Print a table; in a terminal, it is as wide as that."""
    table = Table(*columns, box=None, show_header=any(columns))
    for row in rows:
        table.add_row(*(cell.replace("[", r"\[") for cell in row))
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDEST)
    console.print(table)


def report(added: Added) -> None:
    """Print what became of images that were to be added."""
    for one in added.skipped[:20]:
        print_message(f"skipped {one.name}: {one.reason}")
    if len(added.skipped) > 20:
        print_message(f"… and {len(added.skipped) - 20} more")
    print_message(
        f"{added.n_added} added, {added.n_replaced} replaced, {added.n_unchanged} unchanged, "
        f"{len(added.skipped)} skipped"
    )
