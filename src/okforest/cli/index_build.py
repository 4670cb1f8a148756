"""``okforest index build``, ``add`` and ``vocabulary``: trees are grown, and images added."""

import os
import time
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from okforest.cli.console import Jobs, Seed, check_jobs, plain_errors, print_json, print_message
from okforest.cli.index import AsJson, Folder, Index

if TYPE_CHECKING:
    from okforest.retrieval import Added, SubwindowIndex, Vocabulary
    from okforest.retrieval.pictures import Sources


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
CommitEvery = Annotated[int | None, typer.Option(min=1, help="Images that are written at a time.")]

GROWTH = ("trees", "subwindows", "size", "smallest", "color", "min_split", "sample", "seed")
FORGOTTEN = ("min_split", "sample")  # an index does not store how its trees were grown


def build(
    context: typer.Context,
    index: Index,
    folder: Folder,
    trees: Trees = 10,
    subwindows: Subwindows = 200,
    size: Size = 16,
    smallest: Smallest = 0.25,
    color: Channels = Color.auto,
    min_split: MinSplit = 2,
    sample: Sample = 100_000,
    vocabulary: Annotated[
        Path | None, typer.Option(help="File of trees to use, or an index that has them.")
    ] = None,
    thumbnails: Annotated[int, typer.Option(min=0, help="Side of thumbnails; 0: none.")] = 192,
    commit_every: CommitEvery = None,
    as_json: AsJson = False,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    """Make an index of a folder of images. If it was interrupted, the same command resumes it."""
    with plain_errors():
        from okforest.retrieval import SubwindowIndex
        from okforest.retrieval.pictures import list_pictures
        from okforest.retrieval.store import Store

        check_jobs(jobs)
        if not list_pictures(folder):
            raise ValueError(f"{folder} has no images; pass a folder of image files.")
        store = Store(index)
        if store.exists():
            made = SubwindowIndex(index, n_jobs=jobs)
            check_same(context, made, folder)
            print_message(f"{index} exists: adding the images that it does not have yet")
        else:
            store.check_free()
            if vocabulary is None:
                words = grow(folder, context.params, jobs)
            else:
                check_growth(context)
                words = read_vocabulary(vocabulary)
            made = SubwindowIndex.build(
                index, vocabulary=words, thumbnail_side=thumbnails, root=folder, n_jobs=jobs
            )
        _add(made, folder, commit_every, as_json)


def add(
    index: Index,
    folder: Folder,
    watch: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0.1,
            help="Keep looking for new, changed and deleted files, so often.",
        ),
    ] = None,
    commit_every: CommitEvery = None,
    as_json: AsJson = False,
    jobs: Jobs = -1,
) -> None:
    """Add the images of a folder that are new or have changed; the others are skipped."""
    with plain_errors():
        from okforest.retrieval import SubwindowIndex

        check_jobs(jobs)
        opened = SubwindowIndex(index, n_jobs=jobs)
        _add(opened, folder, commit_every, as_json)
        watcher = Watcher(opened, folder)
        while watch is not None:
            time.sleep(watch)
            watcher.follow()


def vocabulary(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write the trees to.")],
    folder: Folder,
    trees: Trees = 10,
    subwindows: Subwindows = 200,
    size: Size = 16,
    smallest: Smallest = 0.25,
    color: Channels = Color.auto,
    min_split: MinSplit = 2,
    sample: Sample = 100_000,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    """Grow trees on a folder of images, for the --vocabulary of several indexes."""
    with plain_errors():
        check_jobs(jobs)
        if file.exists():
            raise ValueError(f"{file} exists; choose another name.")
        grown = grow(folder, context.params, jobs)
        grown.save(file)
        print_message(f"{file}: {grown.n_trees} trees with {grown.n_leaves:,} leaves")


class Watcher:
    """Brings an index up to date with the files of a folder.

    Parameters
    ----------
    index : SubwindowIndex
        The index.
    folder : Path
        The folder.
    """

    def __init__(self, index: "SubwindowIndex", folder: Path):
        self.index = index
        self.folder = Path(os.path.realpath(folder))
        self.waiting = False

    def follow(self) -> None:
        """Add new and changed files, and remove those that were deleted."""
        from okforest.retrieval import IndexBusyError

        try:
            self._follow()
        except IndexBusyError as error:
            self._wait(f"{error} It is tried again.")

    def _follow(self) -> None:
        from okforest.retrieval.pictures import Sources, as_sources

        self.index.refresh()
        try:
            files = as_sources(self.folder)
        except NotADirectoryError:
            files = Sources()
        if not files:
            # The disk may not be mounted: that is no reason to forget its images.
            self._wait(f"{self.folder} is missing or has no pictures; nothing is removed meanwhile")
            return
        self.waiting = False
        gone = self._deleted(files)
        if gone:
            self.index.remove(gone)
            print_message(f"{len(gone)} removed")
        added = self.index.add(files)
        if added.n_added or added.n_replaced:
            report(added)

    def _deleted(self, files: "Sources") -> list[str]:
        root = Path(os.path.realpath(self.index.snapshot.manifest.root or "/"))
        present = {source.path for source in files}
        return [
            row.name
            for row in self.index.rows()
            if row.file_bytes >= 0
            and (path := root / row.name).is_relative_to(self.folder)
            and path not in present
            and not path.exists()
        ]

    def _wait(self, reason: str) -> None:
        if not self.waiting:
            print_message(reason)
        self.waiting = True


def report(added: "Added") -> None:
    """Print what became of images that were to be added."""
    for one in added.skipped[:20]:
        print_message(f"skipped {one.name}: {one.reason}")
    if len(added.skipped) > 20:
        print_message(f"… and {len(added.skipped) - 20} more")
    print_message(
        f"{added.n_added} added, {added.n_replaced} replaced, {added.n_unchanged} unchanged, "
        f"{len(added.skipped)} skipped"
    )


def grow(folder: Path, options: dict[str, Any], jobs: int) -> "Vocabulary":
    """Grow trees on the images of a folder, with the options of a command."""
    from okforest.retrieval import Vocabulary
    from okforest.segments import RandomSubwindows

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
        max_segments=options["sample"],
        random_state=options["seed"],
        n_jobs=jobs,
        verbose=1,
    )


def read_vocabulary(path: Path) -> "Vocabulary":
    """Read trees from their file, or from an index that has them."""
    from okforest.persistence import FileFormatError
    from okforest.retrieval import SubwindowIndex, Vocabulary

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


def on_command_line(context: typer.Context, names: tuple[str, ...]) -> list[str]:
    """Return which of these options are on the command line."""
    sources = {name: context.get_parameter_source(name) for name in names}
    return [name for name, source in sources.items() if source and source.name == "COMMANDLINE"]


def check_growth(context: typer.Context) -> None:
    """Refuse options for growing trees beside those that have been grown."""
    if unused := on_command_line(context, GROWTH):
        raise ValueError(
            f"{_option(unused[0])} is for growing trees, and --vocabulary has trees; leave one of "
            "the two out."
        )


def check_same(context: typer.Context, index: "SubwindowIndex", folder: Path) -> None:
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
    for name in on_command_line(context, tuple(has)):
        value = context.params[name]
        if value not in (has[name], Color.auto):
            raise ValueError(
                f"{index.path} was built with {_option(name)} {has[name]}, which does not change; "
                f"{value} needs another index."
            )
    for name in on_command_line(context, FORGOTTEN):
        print_message(f"{_option(name)} has no effect: {index.path} has its trees")
    path = context.params["vocabulary"]
    if path is not None and read_vocabulary(path).key != vocabulary.key:
        raise ValueError(f"{index.path} was built on trees that differ from the trees of {path}.")


def _add(index: "SubwindowIndex", folder: Path, commit_every: int | None, as_json: bool) -> None:
    added = index.add(folder, commit_every=commit_every, verbose=1)
    if as_json:
        print_json(added._asdict() | {"skipped": [asdict(one) for one in added.skipped]})
        return
    report(added)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
