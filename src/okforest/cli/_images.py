"""Images of an index as the command line names them, and the options that choose them."""

import os
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer

from okforest.retrieval import SubwindowIndex
from okforest.retrieval._table import Row

Index = Annotated[Path, typer.Argument(metavar="INDEX", help="Folder of the index.")]
Folder = Annotated[
    Path,
    typer.Argument(metavar="FOLDER", help="Folder of images; its folders are the labels."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Labels = Annotated[
    list[str] | None, typer.Option(help="Only images with this label; repeat for several.")
]
Match = Annotated[
    str | None, typer.Option(metavar="PATTERN", help="Only names like this, such as 'sea/*'.")
]


def chosen(index: SubwindowIndex, labels: list[str] | None, pattern: str | None) -> list[Row]:
    """Return the images with one of the labels whose names match the pattern, by name."""
    rows = (
        row
        for row in index.rows()
        if (not labels or row.label in labels) and (not pattern or fnmatchcase(row.name, pattern))
    )
    return sorted(rows, key=lambda row: row.name)


def names_of(index: SubwindowIndex, given: Iterable[str]) -> list[str]:
    """Return the names of images that are given by them, or by the paths of their files."""
    known = {row.name for row in index.rows()}
    root = index.snapshot.manifest.root
    return [_name_of(text, known, root, index.path) for text in given]


def _name_of(text: str, known: set[str], root: str, index: Path) -> str:
    path = Path(os.path.realpath(Path(text).parent)) / Path(text).name
    names = [text, str(path)]
    if root and path.is_relative_to(root):
        names.append(path.relative_to(root).as_posix())
    for name in names:
        if name in known:
            return name
    raise ValueError(
        f"the index has no image {text!r}; 'okforest index list {index}' prints the names."
    )


def counted(n: int) -> str:
    """Return a number of images in words."""
    return f"{n:,} image" if n == 1 else f"{n:,} images"
