"""Images as users pass them: a folder, files or arrays; each with a name and a label."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from okforest.retrieval._checks import as_list
from okforest.retrieval._decoder import PictureError
from okforest.retrieval._pictures import (
    Limits,
    Picture,
    as_picture,
    list_pictures,
    read_picture,
)

PER_BATCH = 64  # images that are read at a time
NO_FILE = -1  # bytes and time of an image that is not a file


@dataclass(frozen=True)
class Source:
    """An image to be read: a file, or an array.

    Parameters
    ----------
    name : str
        Its name in an index; empty if the index is to choose one.
    label : str or None
        Its class; None if it was not given.
    item : Path or ndarray
        The image.
    folder : Path, optional
        The folder that was passed, if the file was found in one.
    default_label : str, default=""
        The class of a new image whose label was not given.
    position : int, default=0
        Its place among the images that were passed.
    """

    name: str
    label: str | None
    item: Any
    folder: Path | None = None
    default_label: str = ""
    position: int = 0

    @property
    def path(self) -> Path | None:
        """The file, if it is one."""
        return self.item if isinstance(self.item, Path) else None

    @property
    def title(self) -> str:
        """What errors call it: its name or, without one, its place."""
        return shown(self.name) or f"images[{self.position}]"

    def label_after(self, known: str | None) -> str:
        """Return the label; if none was given, that of the image in the index, if it has one."""
        if self.label is not None:
            return self.label
        return self.default_label if known is None else known

    def read(self, limits: Limits) -> Picture:
        """Return the pixels, or raise a PictureError."""
        if self.path is not None:
            return read_picture(self.path, limits)
        return as_picture(self.item, f"image {self.name!r}" if self.name else self.title)


class Sources(list[Source]):
    """Images that were listed and checked."""


class Loaded(NamedTuple):
    """An image that was read; size and time (nanoseconds) of its file, or -1."""

    source: Source
    picture: Picture
    file_bytes: int
    file_time: int


@dataclass(frozen=True)
class Unreadable:
    """An image that could not be read, and why."""

    name: str
    reason: str


def as_sources(images: Any, names: Any = None, labels: Any = None) -> Sources:
    """List images. A file is named by its absolute path; its folder has no symbolic links."""
    if isinstance(images, Sources):
        return images
    folder = None
    if isinstance(images, str | os.PathLike):
        folder = Path(os.path.realpath(images))
        items: list[Any] = list(list_pictures(folder))
    else:
        items = [
            _real_path(item) if isinstance(item, str | os.PathLike) else np.asarray(item)
            for item in images
        ]
    default = [str(item) if isinstance(item, Path) else "" for item in items]
    names = _texts(names, default, "names", len(items))
    labels = _texts(labels, [None] * len(items), "labels", len(items))
    given = Counter(name for name in names if name)
    if duplicates := [name for name, n in given.items() if n > 1]:
        raise ValueError(f"two images have the name {duplicates[0]!r}; names must be unique.")
    rows = enumerate(zip(names, labels, items, strict=True))
    return Sources(Source(*row, folder, position=i) for i, row in rows)


def _real_path(file: str | os.PathLike[str]) -> Path:
    """Return a path without symbolic links to folders; a link to a file keeps its own name."""
    path = Path(os.path.abspath(file))
    return Path(os.path.realpath(path.parent)) / path.name


def _texts(values: Any, default: list[Any], what: str, n: int) -> list[Any]:
    if values is None:
        return default
    texts = [str(value) for value in as_list(what, values)]
    if len(texts) != n:
        raise ValueError(f"there are {n} images and {len(texts)} {what}; pass one for each image.")
    for text in texts:
        if not is_utf8(text):
            raise ValueError(f"{shown(text)!r}, one of the {what}, is not valid Unicode.")
    return texts


def place(sources: Iterable[Source], root: str) -> Sources:
    """Name and label files by their place in the root folder, or in the folder that was passed."""
    root_folder = Path(os.path.realpath(root)) if root else None
    return Sources(_placed(source, root_folder) for source in sources)


def _placed(source: Source, root: Path | None) -> Source:
    path = source.path
    if path is None:
        return source
    if root is not None and path.is_relative_to(root):
        if source.name == str(path):
            source = replace(source, name=path.relative_to(root).as_posix())
        base: Path | None = root
    else:
        base = source.folder
    if base is None or source.label is not None:
        return source
    parent = path.parent.relative_to(base).as_posix()
    label = "" if parent == "." else parent
    # The labels of a folder are those of its folders; a file alone keeps the one that it has.
    if source.folder is None:
        return replace(source, default_label=label)
    return replace(source, label=label)


def is_utf8(text: str) -> bool:
    """Return whether a text can be written; names of files on Linux need not be UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(text: str) -> str:
    """Return a text that can be printed, with a mark for each byte that is not UTF-8."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def read_batches(
    sources: Sequence[Source], limits: Limits, n_threads: int
) -> Iterator[tuple[list[Loaded], list[Unreadable]]]:
    """Read images, a batch at a time; those that cannot be read come with the reason."""

    def read(source: Source) -> Loaded | Unreadable:
        try:
            # The state before reading: if the file changes meanwhile, it is read again next time.
            status = source.path.stat() if source.path else None
            picture = source.read(limits)
        except (OSError, PictureError) as error:
            return Unreadable(source.title, shown(str(error)))
        if status is None:
            return Loaded(source, picture, NO_FILE, NO_FILE)
        return Loaded(source, picture, status.st_size, status.st_mtime_ns)

    with ThreadPoolExecutor(n_threads) as pool:
        for begin in range(0, len(sources), PER_BATCH):
            results = list(pool.map(read, sources[begin : begin + PER_BATCH]))
            yield (
                [one for one in results if isinstance(one, Loaded)],
                [one for one in results if isinstance(one, Unreadable)],
            )
