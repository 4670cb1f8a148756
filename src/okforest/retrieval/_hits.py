"""What a search is given, and what it returns."""

import os
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from okforest.retrieval._decoder import PictureError
from okforest.retrieval._pictures import Limits, Picture, as_picture, read_picture
from okforest.retrieval._store import Snapshot


class IndexChangedError(RuntimeError):
    """The index has changed between the two steps of a search over several indexes.

    Examples
    --------
    >>> from okforest.retrieval import IndexChangedError
    >>> def search_again(index, image):
    ...     try:
    ...         return index.search(image)
    ...     except IndexChangedError:
    ...         return index.search(image)
    """


@dataclass(frozen=True)
class Hit:
    """An image that a search has found.

    Parameters
    ----------
    id : int
        Its number in the index.
    name : str
        Its name; for a file, the path.
    label : str
        Its class; empty if it has none.
    score : float
        S(q, i); the scores of all images sum to one.
    height, width : int
        Pixels.
    shard : int
        Position of its index among those that are searched together; 0 for one index.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_digits
    >>> from okforest.retrieval import SubwindowIndex
    >>> images = (load_digits().images[:4] * 15).astype("uint8")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index = SubwindowIndex.build(f"{folder}/index", images, names=list("abcd"))
    ...     hit = index.search(images[3], top=1)[0]
    >>> hit.name, hit.height, hit.width
    ('d', 8, 8)
    """

    id: int
    name: str
    label: str
    score: float
    height: int
    width: int
    shard: int = 0


class RankedHits(NamedTuple):
    """Hits, the best first, and the hashes of their names, by which ties are broken."""

    hits: list[Hit]
    keys: list[int]


def hit_at(snapshot: Snapshot, position: int, score: float) -> Hit:
    """Return the image at a position, with its score."""
    s, i = snapshot.locate(position)
    table = snapshot.segments[s].table
    columns, texts = table.columns, table.texts
    return Hit(
        columns["id"].item(i),
        texts["name"].text(i),
        texts["label_name"].text(columns["label"].item(i)),
        score,
        columns["height"].item(i),
        columns["width"].item(i),
    )


def load_query(query: Any) -> Picture:
    """Return a picture that is given as an array, a file or its content."""
    if isinstance(query, bytes):  # they may come from anywhere
        return read_picture(query, Limits())
    if isinstance(query, str | os.PathLike):
        return read_picture(query)
    pixels = np.asarray(query)
    if pixels.dtype.kind not in "buif":
        raise PictureError(
            f"the query is of type {type(query).__name__}; expected an array of bytes, the path of "
            "a file, or its content as bytes."
        )
    return as_picture(pixels, "the query")
