"""The options that the commands share; docs/command_line.md describes them."""

from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated

import typer

Out = Annotated[
    Path,
    typer.Option(metavar="FOLDER", help="Folder for the results; created if it does not exist."),
]
Jobs = Annotated[int, typer.Option(help="Number of cores to use; -1 for all cores.")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed: the same seed, the same results.")]


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
