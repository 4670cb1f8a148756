"""``okforest index search``, ``explain`` and ``evaluate``."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from okforest.cli.console import (
    Jobs,
    Seed,
    check_jobs,
    plain_errors,
    print_json,
    print_message,
    print_table,
)
from okforest.cli.index import AsJson, Index, Labels, counted, names_of

if TYPE_CHECKING:
    from okforest.retrieval import SubwindowIndex
    from okforest.retrieval.web import RemoteIndex

Best = Annotated[int, typer.Option("-k", min=1, help="Number of hits or pairs of subwindows.")]


def search(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="INDEX... PICTURE...",
            help="Folders or addresses (http://…) of indexes, searched as one; then the pictures "
            "to search for, one after another.",
        ),
    ],
    k: Best = 10,
    label: Labels = None,
    subwindows: Annotated[int | None, typer.Option(min=1, help="Subwindows of the query.")] = None,
    as_json: AsJson = False,
    seed: Seed = 0,
) -> None:
    """Find the images that look like a picture."""
    with plain_errors():
        from okforest.retrieval import FederatedIndex, SubwindowIndex
        from okforest.retrieval.pictures import load_query

        places, files = _divide(arguments)
        shards = [_open(place) for place in places]
        alone = shards[0] if len(shards) == 1 and isinstance(shards[0], SubwindowIndex) else None
        searched = alone or FederatedIndex(shards)
        _check_labels(label, shards)
        pictures = [load_query(file) for file in files]  # fail before the first search
        answers: list[dict[str, Any]] = []
        rows = []
        for file, picture in zip(files, pictures, strict=True):
            # Opening the indexes and the picture takes longer than the search, which is timed.
            start = time.perf_counter()
            hits = searched.search(
                picture, k, labels=label, n_subwindows=subwindows, random_state=seed
            )
            spent = 1e3 * (time.perf_counter() - start)
            answers.append({"hits": [asdict(hit) for hit in hits], "milliseconds": spent})
            rows += [
                [f"{hit.score:.5f}", hit.label, hit.name, places[hit.shard], file] for hit in hits
            ]
        if as_json:
            named = [{"query": file, **one} for file, one in zip(files, answers, strict=True)]
            print_json(named if len(files) > 1 else answers[0])
            return
        shown = [True, True, True, len(places) > 1, len(files) > 1]
        columns, *rows = [
            [cell for cell, is_shown in zip(row, shown, strict=True) if is_shown]
            for row in (["score", "label", "name", "index", "query"], *rows)
        ]
        print_table(columns, rows)
        spent = sum(one["milliseconds"] for one in answers)
        print_message(f"{len(rows)} hits in {spent:.1f} ms")


def explain(
    index: Index,
    picture: Annotated[Path, typer.Argument(metavar="PICTURE", help="The query.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name or file of the hit.")],
    k: Best = 10,
    original: Annotated[
        Path | None,
        typer.Option(help="The picture of the hit, if it was not indexed from a file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the subwindows that match between a picture and a hit: left, top and side in pixels."""
    with plain_errors():
        from okforest.retrieval import SubwindowIndex

        opened = SubwindowIndex(index)
        hit = names_of(opened, [name])[0]
        if original is None and opened.row(hit).file_bytes < 0:
            raise ValueError(f"{hit!r} was not indexed from a file; pass it as --original FILE.")
        found = opened.explain(picture, hit, k, hit_picture=original)
        pairs = [
            {"query": [left, above, side], "hit": [its_left, its_above, its_side], "weight": weight}
            for (above, left, side), (its_above, its_left, its_side), weight in zip(
                found.query_boxes.tolist(),
                found.hit_boxes.tolist(),
                found.weights.tolist(),
                strict=True,
            )
        ]
        if as_json:
            print_json({"score": found.score, "pairs": pairs})
            return
        rows = [
            [f"{pair['weight']:.6f}", *(", ".join(map(str, pair[key])) for key in ("query", "hit"))]
            for pair in pairs
        ]
        print_table(["weight", "query", "hit"], rows)
        print_message(f"score {found.score:.5f}, with its {len(pairs)} largest pairs")


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
    k: Annotated[
        list[int] | None, typer.Option("-k", min=1, help="Hits, for precision and recall at k.")
    ] = None,
    as_json: AsJson = False,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    """Measure how well images with the same label are found."""
    with plain_errors():
        from okforest.retrieval import SubwindowIndex

        check_jobs(jobs)
        opened = SubwindowIndex(index, n_jobs=jobs)
        quality = opened.evaluate(folder, k=k or (1, 5, 10), random_state=seed, verbose=1)
        if as_json:
            print_json(asdict(quality))
            return
        rows = [
            ["queries", str(quality.n_queries)],
            ["top-1", f"{quality.top_1:.2%}"],
            ["mean average precision", f"{quality.mean_average_precision:.4f}"],
            *([f"precision at {n}", f"{value:.4f}"] for n, value in quality.precision.items()),
            *([f"recall at {n}", f"{value:.4f}"] for n, value in quality.recall.items()),
        ]
        print_table(["measure", "value"], rows)
        for count, reason in (
            (quality.n_left_out, "no other image of the index has the label"),
            (
                quality.n_unreadable,
                "not indexed from a file, or the file is missing or has changed",
            ),
        ):
            if count:
                print_message(f"{counted(count)} left out: {reason}")


def _divide(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return the indexes, which are folders or addresses, and the pictures after them."""
    n = 1
    while n < len(arguments) and (_is_address(arguments[n]) or Path(arguments[n]).is_dir()):
        n += 1
    if n == len(arguments):
        raise ValueError("pass an index and a picture: okforest index search INDEX PICTURE")
    return arguments[:n], arguments[n:]


def _is_address(place: str) -> bool:
    return place.startswith(("http://", "https://"))


def _open(place: str) -> "RemoteIndex | SubwindowIndex":
    if _is_address(place):
        from okforest.retrieval.web import RemoteIndex

        return RemoteIndex(place)
    from okforest.retrieval import SubwindowIndex

    return SubwindowIndex(place)


def _check_labels(labels: list[str] | None, shards: "list[RemoteIndex | SubwindowIndex]") -> None:
    if not labels:
        return
    known = {name for shard in shards for name in shard.labels}
    for label in labels:
        if label not in known:
            listed = ", ".join(map(repr, sorted(known)[:10])) + (", …" if len(known) > 10 else "")
            raise ValueError(
                f"no image has the label {label!r}; the labels are: {listed or 'none'}."
            )
