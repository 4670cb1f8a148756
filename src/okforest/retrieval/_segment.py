"""A segment: the postings and the table of some images, in one immutable file."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from okforest.persistence import FileFormatError
from okforest.persistence.atomic import replacing
from okforest.persistence.container import read, write
from okforest.retrieval._pictures import content_hash, thumbnail
from okforest.retrieval._postings import Postings, UInt32s, UInt64s, merge
from okforest.retrieval._sources import Loaded
from okforest.retrieval._table import ImageTable, Row
from okforest.retrieval.vocabulary import Vocabulary

KIND, VERSION = "okforest segment", 1
POSTINGS = {"offsets": np.uint64, "low": np.uint16, "image": np.uint32, "count": np.uint8}


@dataclass(frozen=True)
class Segment:
    """The images of a segment.

    Parameters
    ----------
    file : str
        Name of its file.
    postings : Postings
        Leaves and images; images are numbered by their rows in the table.
    table : ImageTable
        The images.
    """

    file: str
    postings: Postings
    table: ImageTable


def write_segment(
    path: Path, postings: Postings, table: ImageTable, vocabulary: Vocabulary
) -> None:
    """Write a file, completely or not at all."""
    arrays = {name: getattr(postings, name) for name in POSTINGS} | table.arrays()
    content = {
        "kind": KIND,
        "version": VERSION,
        "vocabulary": vocabulary.key,
        "shift": postings.shift,
        "arrays": list(arrays),
    }
    with replacing(path) as file:
        write(file, content, list(arrays.values()))


def read_segment(path: Path, vocabulary: Vocabulary, verify: bool) -> Segment:
    """Map a file into memory, after checking that its arrays fit each other."""
    _, content, values = read(path, mapped=True, verify=verify)
    try:
        if not isinstance(content, dict) or content.get("kind") != KIND:
            raise ValueError("it is not a segment of an index")
        if content["version"] != VERSION:
            raise ValueError(f"version {content['version']} is unknown; upgrade okforest")
        if content["vocabulary"] != vocabulary.key:
            raise ValueError("it belongs to another vocabulary")
        arrays = dict(zip(content["arrays"], values, strict=True))
        for name, dtype in POSTINGS.items():
            if arrays[name].dtype != dtype or arrays[name].ndim != 1:
                raise ValueError(f"{name} is not an array of {np.dtype(dtype)}")
        if type(content["shift"]) is not int:
            raise ValueError("shift is not an integer")
        postings = Postings(**{name: arrays[name] for name in POSTINGS}, shift=content["shift"])
        postings.check(vocabulary.n_leaves)
        table = ImageTable.from_arrays(arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"{path} cannot be read: {error}.") from error
    return Segment(path.name, postings, table)


@dataclass
class SegmentBuilder:
    """Collects images in memory until they are written as a segment.

    Parameters
    ----------
    vocabulary : Vocabulary
        The trees.
    first_id : int
        The number of the first image.
    thumbnail_side : int
        Pixels of the longer side of thumbnails; 0 for none.
    """

    vocabulary: Vocabulary
    first_id: int
    thumbnail_side: int
    rows: list[Row] = field(default_factory=list)
    keys: list[UInt64s] = field(default_factory=list)
    n_keys: int = 0

    @property
    def next_id(self) -> int:
        """The number of the next image."""
        return self.first_id + len(self.rows)

    def add(self, name: str, label: str, image: Loaded, leaves: UInt32s) -> None:
        """Add an image, given the leaves of its subwindows, (n_subwindows, n_trees)."""
        picture = image.picture
        row = Row(
            id=self.next_id,
            name=name,
            label=label,
            height=picture.shape[0],
            width=picture.shape[1],
            n_subwindows=len(leaves),
            hash=content_hash(picture),
            file_bytes=image.file_bytes,
            file_time=image.file_time,
            thumbnail=thumbnail(picture, self.thumbnail_side),
        )
        number = np.uint64(len(self.rows))
        self.keys.append((leaves.ravel().astype(np.uint64) << np.uint64(32)) | number)
        self.n_keys += leaves.size
        self.rows.append(row)  # the last step: an image that is interrupted before is not added

    def finish(self) -> tuple[Postings, ImageTable]:
        """Return the postings and the table."""
        del self.keys[len(self.rows) :]
        keys = np.concatenate(self.keys) if self.keys else np.empty(0, np.uint64)
        self.keys.clear()
        return Postings.of_subwindows(keys, self.vocabulary.n_leaves), ImageTable.of_rows(self.rows)


def merge_segments(
    segments: list[Segment], removed: list[npt.NDArray[np.bool_]], vocabulary: Vocabulary
) -> tuple[Postings, ImageTable]:
    """Merge segments, without the images that are removed."""
    parts: list[tuple[Postings, Any]] = []
    rows: list[Row] = []
    for segment, gone in zip(segments, removed, strict=True):
        try:
            segment.postings.check_entries(len(segment.table), vocabulary.n_leaves)
        except ValueError as error:
            raise FileFormatError(
                f"{segment.file} is malformed: {error}. Restore the index from a copy, or build it "
                "again from its images."
            ) from error
        kept = np.ones(len(segment.table), dtype=bool) if len(gone) == 0 else ~gone
        numbers = np.where(kept, len(rows) + np.cumsum(kept) - 1, -1)
        parts.append((segment.postings, numbers))
        rows += [segment.table[int(i)] for i in np.flatnonzero(kept)]
    return merge(parts, vocabulary.n_leaves), ImageTable.of_rows(rows)
