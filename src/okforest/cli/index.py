"""``okforest index``: build, change, search, evaluate and serve an index of images."""

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from okforest.cli._console import console, plain_errors, print_message
from okforest.cli._options import Jobs, Seed, check_jobs
from okforest.cli._tables import print_json, print_table, report
from okforest.cli._watch import Watcher
from okforest.retrieval import FederatedIndex, RemoteIndex, SubwindowIndex, Vocabulary
from okforest.retrieval._pictures import list_pictures
from okforest.segments import RandomSubwindows

app = typer.Typer(no_args_is_help=True, help="Search images by parts that look alike.")

PAUSE = 20.0  # seconds between two lines of progress when the output is not a terminal


class Color(StrEnum):
    """The channels of subwindows."""

    auto = "auto"
    grey = "grey"
    rgb = "rgb"
    hsv = "hsv"


Index = Annotated[Path, typer.Argument(metavar="INDEX", help="Folder of the index.")]
Folder = Annotated[
    Path,
    typer.Argument(metavar="FOLDER", help="Folder of images; its folders are the labels."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
CommitEvery = Annotated[int | None, typer.Option(min=1, help="Images that are written at a time.")]


@app.command()
def build(
    index: Index,
    folder: Folder,
    trees: Annotated[int, typer.Option(min=1, help="Number of trees.")] = 10,
    subwindows: Annotated[int, typer.Option(min=1, help="Subwindows of each image.")] = 200,
    size: Annotated[int, typer.Option(min=2, help="Pixels of a subwindow's side.")] = 16,
    smallest: Annotated[
        float, typer.Option(min=0.01, max=1.0, help="Least side, as a share of the image's.")
    ] = 0.25,
    color: Annotated[Color, typer.Option(help="Channels of the subwindows.")] = Color.auto,
    min_split: Annotated[int, typer.Option(min=2, help="Subwindows that a split needs.")] = 2,
    sample: Annotated[
        int, typer.Option(min=2, help="Subwindows that trees are grown on, at most.")
    ] = 100_000,
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
        n = len(list_pictures(folder))
        if n == 0:
            raise ValueError(f"{folder} has no images; pass a folder of image files.")
        made = _open_or_none(index, jobs)
        if made is None:
            words = None if vocabulary is None else _read_vocabulary(vocabulary)
            if words is None:
                words = Vocabulary.grow(
                    folder,
                    segmenter=RandomSubwindows(
                        subwindows, side_range=(smallest, 1.0), size=size, color=color.value
                    ),
                    n_trees=trees,
                    min_samples_split=min_split,
                    max_sample=sample,
                    random_state=seed,
                    n_jobs=jobs,
                    verbose=1,
                )
            made = SubwindowIndex.build(
                index, vocabulary=words, thumbnail_side=thumbnails, root=folder, n_jobs=jobs
            )
        else:
            print_message(f"{index} exists: adding the images that it does not have yet")
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
        _add(opened, folder, len(list_pictures(folder)), commit_every, as_json)
        watcher = Watcher(opened, folder)
        while watch is not None:
            time.sleep(watch)
            watcher.follow()


@app.command()
def remove(
    index: Index,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of images.")],
) -> None:
    """Remove images by their names."""
    with plain_errors():
        print_message(f"removed {SubwindowIndex(index).remove(names)} images")


@app.command()
def search(
    index: Annotated[
        list[str],
        typer.Argument(
            metavar="INDEX... PICTURE",
            help="Folders or addresses (http://…) of indexes, searched as one; then the query.",
        ),
    ],
    top: Annotated[int, typer.Option(min=1, help="Number of hits.")] = 10,
    label: Annotated[
        list[str] | None, typer.Option(help="Only images with this label; repeat for several.")
    ] = None,
    subwindows: Annotated[int | None, typer.Option(min=1, help="Subwindows of the query.")] = None,
    as_json: AsJson = False,
    seed: Seed = 0,
) -> None:
    """Find the images that look like a picture."""
    with plain_errors():
        *places, picture = index
        if not places:
            raise ValueError("pass an index and a picture: okforest index search INDEX PICTURE")
        shards = [
            RemoteIndex(place)
            if place.startswith(("http://", "https://"))
            else SubwindowIndex(place)
            for place in places
        ]
        searched = shards[0] if len(places) == 1 and isinstance(shards[0], SubwindowIndex) else None
        start = time.perf_counter()
        hits = (searched or FederatedIndex(shards)).search(
            picture, top, labels=label, n_subwindows=subwindows, random_state=seed
        )
        spent = 1e3 * (time.perf_counter() - start)
        if as_json:
            print_json({"hits": [asdict(hit) for hit in hits], "milliseconds": spent})
            return
        columns = ["score", "label", "name"] + (["index"] if len(places) > 1 else [])
        rows = [
            [f"{hit.score:.5f}", hit.label, hit.name, places[hit.shard]][: len(columns)]
            for hit in hits
        ]
        print_table(columns, rows)
        print_message(f"{len(hits)} hits in {spent:.1f} ms")


@app.command()
def evaluate(
    index: Index,
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FOLDER]",
            help="Queries, labelled by their folders; by default the images of the index, each "
            "searched for among the others.",
        ),
    ] = None,
    at: Annotated[list[int] | None, typer.Option(min=1, help="k of precision at k.")] = None,
    as_json: AsJson = False,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    """Measure how well images with the same label are found."""
    with plain_errors():
        check_jobs(jobs)
        opened = SubwindowIndex(index, n_jobs=jobs)
        n = len(opened) if folder is None else len(list_pictures(folder))
        with _progress("searching", n) as update:
            quality = opened.evaluate(
                folder, ks=tuple(at or (1, 5, 10)), random_state=seed, callback=update
            )
        if as_json:
            print_json(asdict(quality))
            return
        rows = [
            ["queries", str(quality.n_queries)],
            ["top-1", f"{quality.top_1:.2%}"],
            ["mean average precision", f"{quality.mean_average_precision:.4f}"],
            *([f"precision at {k}", f"{value:.4f}"] for k, value in quality.precision.items()),
            *([f"recall at {k}", f"{value:.4f}"] for k, value in quality.recall.items()),
        ]
        print_table(["measure", "value"], rows)


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
    """Merge the segments of an index, without removed images; it frees their place."""
    with plain_errors():
        opened = SubwindowIndex(index)
        before = opened.info()["bytes"]
        opened.compact()
        print_message(f"{before:,} bytes before, {opened.info()['bytes']:,} after")


@app.command()
def serve(
    index: Index,
    host: Annotated[
        str, typer.Option(help="Address to listen on; the default is this machine only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the secret for changes; or the variable OKFOREST_TOKEN. Without one, "
            "the server is read-only."
        ),
    ] = None,
    max_megabytes: Annotated[float, typer.Option(min=0.001, help="Size of an upload.")] = 20.0,
    workers: Annotated[int, typer.Option(min=1, help="Searches at the same time.")] = 2,
    queue: Annotated[int, typer.Option(min=1, help="Searches that may wait.")] = 32,
) -> None:
    """Serve an index: a page for people and an interface for programs."""
    with plain_errors():
        try:
            from okforest.retrieval import server
            from okforest.retrieval._settings import ServerSettings
        except ImportError as error:
            raise ImportError(
                f"the server needs {error.name}, which is not installed: pip install "
                "okforest[serve]"
            ) from error
        token = os.environ.get("OKFOREST_TOKEN") or None
        if token_file is not None:
            token = token_file.read_text().strip()
            if not token:
                raise ValueError(f"{token_file} is empty; write a secret to it.")
        local = host in ("127.0.0.1", "localhost", "::1")
        settings = ServerSettings(
            token=token,
            max_bytes=int(max_megabytes * 2**20),
            workers=workers,
            queue=queue,
            hosts=("127.0.0.1", "localhost", "::1") if local else (),
        )
        # Refused requests and errors are lines on the standard error stream.
        logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
        opened = SubwindowIndex(index)
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        changes = "changes need the token" if token else "read-only"
        print_message(f"{len(opened)} images on http://{place} ({changes}); Ctrl-C stops it")
        server.serve(opened, host, port, settings)


def _open_or_none(path: Path, jobs: int) -> SubwindowIndex | None:
    try:
        return SubwindowIndex(path, n_jobs=jobs)
    except FileNotFoundError:
        return None


def _read_vocabulary(path: Path) -> Vocabulary:
    return SubwindowIndex(path).vocabulary if path.is_dir() else Vocabulary.load(path)


def _add(
    index: SubwindowIndex, folder: Path, n: int, commit_every: int | None, as_json: bool
) -> None:
    with _progress("indexing", n) as update:
        added = index.add(folder, commit_every=commit_every, callback=update)
    if as_json:
        print_json(added._asdict() | {"skipped": [asdict(one) for one in added.skipped]})
        return
    report(added)


@contextmanager
def _progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar with the time left; elsewhere than in a terminal, an occasional line."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    bar = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console)
    task = bar.add_task(label, total=total)
    start = last = time.perf_counter()

    def update(done: int) -> None:
        nonlocal last
        bar.update(task, completed=done)
        now = time.perf_counter()
        if not console.is_terminal and done and now > last + PAUSE:
            last = now
            left = (now - start) * (total - done) / done
            print_message(f"{label}: {done}/{total}, {now - start:.0f} s, {left:.0f} s left")

    if console.is_terminal:
        with bar:
            yield update
    else:
        yield update


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
