"""``okforest index``: build and change an index of images, and show what it holds."""

import time
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from okforest.cli._bar import showing
from okforest.cli._console import plain_errors, print_message
from okforest.cli._images import AsJson, Folder, Index, Labels, Match, chosen, counted, names_of
from okforest.cli._options import Jobs, Seed, check_jobs
from okforest.cli._tables import print_json, print_table, report
from okforest.cli._trees import (
    Channels,
    Color,
    MinSplit,
    Sample,
    Size,
    Smallest,
    Subwindows,
    Trees,
    check_growth,
    check_same,
    grow,
    read_vocabulary,
)
from okforest.cli._watch import Watcher
from okforest.cli.index_search import evaluate, explain, search
from okforest.cli.index_serve import serve
from okforest.retrieval import SubwindowIndex
from okforest.retrieval._pictures import list_pictures
from okforest.retrieval._store import Store

app = typer.Typer(no_args_is_help=True, help="Search images by parts that look alike.")
app.command()(search)
app.command()(explain)
app.command()(evaluate)
app.command()(serve)

CommitEvery = Annotated[int | None, typer.Option(min=1, help="Images that are written at a time.")]


@app.callback()
def prepare() -> None:
    """Search images by parts that look alike."""
    # Pillow warns of large pictures; those beyond our limit are reported as skipped.
    warnings.filterwarnings("ignore", r"Image size \(\d+ pixels\) exceeds limit")


@app.command()
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
        check_jobs(jobs)
        n = _count(folder)
        if n == 0:
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
        _add(made, folder, n, commit_every, as_json)


@app.command()
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
        check_jobs(jobs)
        opened = SubwindowIndex(index, n_jobs=jobs)
        _add(opened, folder, _count(folder), commit_every, as_json)
        watcher = Watcher(opened, folder)
        while watch is not None:
            time.sleep(watch)
            watcher.follow()


@app.command()
def remove(
    index: Index,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help="Names or files of images.")
    ] = None,
    label: Labels = None,
    match: Match = None,
) -> None:
    """Remove images by their names; or all with a label, or with names like a pattern."""
    with plain_errors():
        if bool(names) == bool(label or match):
            raise ValueError("pass names, or --label and --match, and not both.")
        opened = SubwindowIndex(index)
        if names:
            wanted = names_of(opened, names)
        else:
            wanted = [row.name for row in chosen(opened, label, match)]
        print_message(f"{counted(opened.remove(wanted))} removed")


@app.command("list")
def list_images(
    index: Index, label: Labels = None, match: Match = None, as_json: AsJson = False
) -> None:
    """Print the names, labels and sizes of images."""
    with plain_errors():
        rows = chosen(SubwindowIndex(index), label, match)
        if as_json:
            keys = ("id", "name", "label", "height", "width")
            print_json([{key: getattr(row, key) for key in keys} for row in rows])
            return
        sizes = [f"{row.width} × {row.height}" for row in rows]
        table = [[row.name, row.label, size] for row, size in zip(rows, sizes, strict=True)]
        print_table(["name", "label", "pixels"], table)
        print_message(counted(len(rows)))


@app.command()
def info(index: Index, as_json: AsJson = False) -> None:
    """Show what an index holds."""
    with plain_errors():
        values = SubwindowIndex(index).info()
        if as_json:
            print_json(values)
            return
        print_table(["", ""], [[name.replace("_", " "), _text(v)] for name, v in values.items()])


@app.command()
def compact(index: Index) -> None:
    """Merge the segments of an index into one, without removed images."""
    with plain_errors():
        opened = SubwindowIndex(index)
        before = opened.info()["bytes"]
        opened.compact()
        print_message(f"{before:,} bytes before, {opened.info()['bytes']:,} after")


@app.command()
def merge(
    index: Index,
    others: Annotated[
        list[Path], typer.Argument(metavar="OTHER...", help="Folders of indexes on its trees.")
    ],
) -> None:
    """Add the images of other indexes on the same trees, without reading the images."""
    with plain_errors():
        opened = SubwindowIndex(index)
        before = len(opened)
        opened.merge([SubwindowIndex(other) for other in others])
        print_message(f"{counted(len(opened) - before)} added")


@app.command()
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


def _count(folder: Path) -> int:
    return len(list_pictures(folder))


def _add(
    index: SubwindowIndex, folder: Path, n: int, commit_every: int | None, as_json: bool
) -> None:
    with showing("indexing", n) as update:
        added = index.add(folder, commit_every=commit_every, callback=update)
    if as_json:
        print_json(added._asdict() | {"skipped": [asdict(one) for one in added.skipped]})
        return
    report(added)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
