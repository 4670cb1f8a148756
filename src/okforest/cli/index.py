"""``okforest index``: the content of an index of images; removals, merges; its server."""

import os
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from okforest.cli.console import plain_errors, print_json, print_message, print_table

if TYPE_CHECKING:
    from okforest.retrieval import SubwindowIndex
    from okforest.retrieval.segment import Row

import logging

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
        from okforest.retrieval import SubwindowIndex

        if bool(names) == bool(label or match):
            found = "both names and --label or --match" if names else "neither"
            raise ValueError(f"pass either names of images, or --label or --match; got {found}.")
        opened = SubwindowIndex(index)
        if names:
            wanted = names_of(opened, names)
        else:
            wanted = [row.name for row in chosen(opened, label, match)]
        print_message(f"{counted(opened.remove(wanted))} removed")


def list_images(
    index: Index, label: Labels = None, match: Match = None, as_json: AsJson = False
) -> None:
    """Print the names, labels and sizes of images."""
    with plain_errors():
        from okforest.retrieval import SubwindowIndex

        rows = chosen(SubwindowIndex(index), label, match)
        if as_json:
            keys = ("id", "name", "label", "height", "width")
            print_json([{key: getattr(row, key) for key in keys} for row in rows])
            return
        sizes = [f"{row.width} × {row.height}" for row in rows]
        table = [[row.name, row.label, size] for row, size in zip(rows, sizes, strict=True)]
        print_table(["name", "label", "pixels"], table)
        print_message(counted(len(rows)))


def info(index: Index, as_json: AsJson = False) -> None:
    """Show what an index holds."""
    with plain_errors():
        from okforest.retrieval import SubwindowIndex

        values = SubwindowIndex(index).info()
        if as_json:
            print_json(values)
            return
        print_table(["", ""], [[name.replace("_", " "), _text(v)] for name, v in values.items()])


def compact(index: Index) -> None:
    """Merge the segments of an index into one, without removed images."""
    with plain_errors():
        from okforest.retrieval import SubwindowIndex

        opened = SubwindowIndex(index)
        before = opened.info()["bytes"]
        opened.compact()
        print_message(f"{before:,} bytes before, {opened.info()['bytes']:,} after")


def merge(
    index: Index,
    others: Annotated[
        list[Path], typer.Argument(metavar="OTHER...", help="Folders of indexes on its trees.")
    ],
) -> None:
    """Add the images of other indexes on the same trees, without reading the images."""
    with plain_errors():
        from okforest.retrieval import SubwindowIndex

        opened = SubwindowIndex(index)
        before = len(opened)
        opened.merge([SubwindowIndex(other) for other in others])
        print_message(f"{counted(len(opened) - before)} added")


def chosen(index: "SubwindowIndex", labels: list[str] | None, pattern: str | None) -> "list[Row]":
    """Return the images with one of the labels whose names match the pattern, by name."""
    rows = (
        row
        for row in index.rows()
        if (not labels or row.label in labels) and (not pattern or fnmatchcase(row.name, pattern))
    )
    return sorted(rows, key=lambda row: row.name)


def names_of(index: "SubwindowIndex", texts: Iterable[str]) -> list[str]:
    """Return the names of images from names, or from the paths of their files."""
    known = {row.name for row in index.rows()}
    root = index.snapshot.manifest.root
    return [_name_of(text, known, root, index.path) for text in texts]


def counted(n: int) -> str:
    """Return a number of images in words."""
    return f"{n:,} image" if n == 1 else f"{n:,} images"


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


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


MIN_TOKEN_LENGTH = 16


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
    queue: Annotated[int, typer.Option(min=1, help="Searches that may wait.")] = 100,
) -> None:
    """Serve an index: a page for people and an interface for programs."""
    with plain_errors():
        from okforest.retrieval import SubwindowIndex, web

        token = _token(token_file)
        local = host in ("127.0.0.1", "localhost", "::1")
        settings = web.ServerSettings(
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
        message = f"{counted(len(opened))} on http://{place} ({changes}); Ctrl-C stops it"
        web.serve(opened, host, port, settings, lambda: print_message(message))


def _token(file: Path | None) -> str | None:
    """Return the secret for changes, from a file or from the environment."""
    if file is None:
        token = os.environ.get("OKFOREST_TOKEN", "")
    else:
        try:
            token = file.read_text().strip()
        except OSError as error:
            raise ValueError(f"--token-file {file} cannot be read: {error.strerror}.") from error
        if not token:
            raise ValueError(f"{file} is empty; write a secret to it.")
    if 0 < len(token) < MIN_TOKEN_LENGTH:
        print_message(
            f"warning: the token has {len(token)} characters and can be guessed; use a long random "
            "one, such as the output of: python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    return token or None
