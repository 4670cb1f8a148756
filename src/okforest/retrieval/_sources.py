"""Images as users pass them: a folder, files or arrays; each with a name and a label."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from okforest.retrieval._pictures import (
    Limits,
    Picture,
    PictureError,
    as_picture,
    list_pictures,
    read_picture,
)

PER_BATCH = 64  # images that are read at a time


@dataclass(frozen=True)
class Source:
    """An image to be read: a file, or an array.

    Parameters
    ----------
    name : str
        Its name in an index; empty if the index is to choose one.
    label : str
        Its class; empty if it has none.
    item : Path or ndarray
        The image.
    """

    name: str
    label: str
    item: Any

    @property
    def path(self) -> Path | None:
        """The file, if it is one."""
        return self.item if isinstance(self.item, Path) else None

    def read(self, limits: Limits) -> Picture:
        """Return the pixels, or raise a PictureError."""
        if self.path is not None:
            return read_picture(self.path, limits)
        return as_picture(self.item, f"image {self.name!r}" if self.name else "an image")


@dataclass(frozen=True)
class Unreadable:
    """An image that could not be read, and why."""

    name: str
    reason: str


def as_sources(images: Any, names: Any = None, labels: Any = None) -> list[Source]:
    """List images. Files in the folders of a folder are labelled by them unless labels are given.

    A file is named by its absolute path.
    """
    if isinstance(images, str | os.PathLike):
        folder = Path(os.path.abspath(images))
        items: list[Any] = list(list_pictures(folder))
        if labels is None:
            parents = (path.parent.relative_to(folder).as_posix() for path in items)
            labels = ["" if parent == "." else parent for parent in parents]
    else:
        items = [
            Path(os.path.abspath(item)) if isinstance(item, str | os.PathLike) else np.asarray(item)
            for item in images
        ]
    default = [str(item) if isinstance(item, Path) else "" for item in items]
    names = _texts(names, default, "names", len(items))
    labels = _texts(labels, [""] * len(items), "labels", len(items))
    given = [name for name in names if name]
    if len(set(given)) < len(given):
        duplicate = next(name for name in given if given.count(name) > 1)
        raise ValueError(f"two images have the name {duplicate!r}; names must be unique.")
    return [Source(*row) for row in zip(names, labels, items, strict=True)]


def _texts(values: Any, default: list[str], what: str, n: int) -> list[str]:
    if values is None:
        return default
    texts = [str(value) for value in values]
    if len(texts) != n:
        raise ValueError(f"there are {n} images and {len(texts)} {what}; pass one for each image.")
    return texts


def read_batches(
    sources: Sequence[Source], limits: Limits, n_threads: int
) -> Iterator[tuple[list[tuple[Source, Picture]], list[Unreadable]]]:
    """Read images, a batch at a time; those that cannot be read come with the reason."""

    def read(source: Source) -> Picture | PictureError:
        try:
            return source.read(limits)
        except PictureError as error:
            return error

    with ThreadPoolExecutor(n_threads) as pool:
        for begin in range(0, len(sources), PER_BATCH):
            batch = sources[begin : begin + PER_BATCH]
            results = list(pool.map(read, batch))
            pairs = list(zip(batch, results, strict=True))
            yield (
                [(source, item) for source, item in pairs if isinstance(item, np.ndarray)],
                [
                    Unreadable(source.name, str(item))
                    for source, item in pairs
                    if isinstance(item, PictureError)
                ],
            )
