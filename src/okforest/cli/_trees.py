"""The trees of an index on the command line: the options that grow them, and their files."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from okforest.cli._console import print_message
from okforest.persistence import FileFormatError
from okforest.retrieval import SubwindowIndex, Vocabulary
from okforest.segments import RandomSubwindows


class Color(StrEnum):
    """The channels of subwindows."""

    auto = "auto"
    grey = "grey"
    rgb = "rgb"
    hsv = "hsv"


Trees = Annotated[int, typer.Option(min=1, help="Number of trees.")]
Subwindows = Annotated[int, typer.Option(min=1, help="Subwindows of each image.")]
Size = Annotated[int, typer.Option(min=2, help="Pixels of a subwindow's side.")]
Smallest = Annotated[
    float, typer.Option(min=0.01, max=1.0, help="Least side, as a share of the image's.")
]
Channels = Annotated[Color, typer.Option(help="Channels of the subwindows.")]
MinSplit = Annotated[int, typer.Option(min=2, help="Subwindows that a split needs.")]
Sample = Annotated[int, typer.Option(min=2, help="Subwindows that trees are grown on, at most.")]

GROWTH = ("trees", "subwindows", "size", "smallest", "color", "min_split", "sample", "seed")
FORGOTTEN = ("min_split", "sample")  # an index does not know how its trees were grown


def grow(folder: Path, options: dict[str, Any], jobs: int) -> Vocabulary:
    """Grow trees on the images of a folder, with the options of a command."""
    return Vocabulary.grow(
        folder,
        segmenter=RandomSubwindows(
            options["subwindows"],
            side_range=(options["smallest"], 1.0),
            size=options["size"],
            color=options["color"].value,
        ),
        n_trees=options["trees"],
        min_samples_split=options["min_split"],
        max_sample=options["sample"],
        random_state=options["seed"],
        n_jobs=jobs,
        verbose=1,
    )


def read_vocabulary(path: Path) -> Vocabulary:
    """Read trees from their file, or from an index that has them."""
    if not path.exists():
        raise ValueError(f"--vocabulary {path} does not exist; pass a file of trees, or an index.")
    if path.is_dir():
        return SubwindowIndex(path).vocabulary
    try:
        return Vocabulary.load(path)
    except FileFormatError as error:
        raise ValueError(
            f"--vocabulary {path} is not a file of trees; make one with 'okforest index "
            "vocabulary', or pass an index."
        ) from error


def given(context: typer.Context, names: tuple[str, ...]) -> list[str]:
    """Return those of some options that are on the command line."""
    sources = {name: context.get_parameter_source(name) for name in names}
    return [name for name, source in sources.items() if source and source.name == "COMMANDLINE"]


def check_growth(context: typer.Context) -> None:
    """Refuse options for growing trees beside those that have been grown."""
    if unused := given(context, GROWTH):
        raise ValueError(
            f"{_option(unused[0])} is for growing trees, and --vocabulary has trees; leave one of "
            "the two out."
        )


def check_same(context: typer.Context, index: SubwindowIndex, folder: Path) -> None:
    """Refuse to go on with an index that was built from another folder, or otherwise."""
    manifest, vocabulary = index.snapshot.manifest, index.vocabulary
    if os.path.realpath(folder) != manifest.root:
        origin = manifest.root or "no folder"
        raise ValueError(
            f"{index.path} was built from {origin}, not from {folder}; 'okforest index add' adds "
            "the images of another folder to it."
        )
    segmenter = vocabulary.segmenter
    has = {
        "trees": vocabulary.n_trees,
        "subwindows": segmenter.n_segments,
        "size": segmenter.size,
        "smallest": segmenter.side_range[0],
        "color": segmenter.color,
        "seed": vocabulary.seed,
        "thumbnails": manifest.thumbnail_side,
    }
    for name in given(context, tuple(has)):
        value = context.params[name]
        if value not in (has[name], Color.auto):
            raise ValueError(
                f"{index.path} was built with {_option(name)} {has[name]}, which does not change; "
                f"{value} needs another index."
            )
    for name in given(context, FORGOTTEN):
        print_message(f"{_option(name)} has no effect: {index.path} has its trees")
    path = context.params["vocabulary"]
    if path is not None and read_vocabulary(path).key != vocabulary.key:
        raise ValueError(f"{index.path} was built on other trees than those of {path}.")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
