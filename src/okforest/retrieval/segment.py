"""A segment: the postings and the table of images, in one immutable file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from okforest._utils.arrays import Booleans
from okforest.persistence import FileFormatError
from okforest.persistence.atomic import replacing
from okforest.persistence.container import write
from okforest.retrieval.pictures import HASH_BYTES, Loaded, content_hash, thumbnail
from okforest.retrieval.postings import Postings, UInt8s, UInt64s, merge
from okforest.retrieval.vocabulary import VERSION, UInt32s, Vocabulary, reading

KIND = "okforest segment"
POSTINGS = {"offsets": np.uint64, "low": np.uint16, "image": np.uint32, "count": np.uint8}
# The columns with one number for each image.
COLUMNS = {
    "id": np.uint64,
    "key": np.uint64,
    "height": np.uint32,
    "width": np.uint32,
    "n_subwindows": np.uint32,
    "file_bytes": np.int64,
    "file_time": np.int64,
    "label": np.uint32,
}
TEXTS = ("name", "label_name", "thumbnail")


@dataclass(frozen=True)
class Row:
    """An image of an index, as the table has it.

    Parameters
    ----------
    id : int
        Its number in the index, which is never used again.
    name : str
        Its unique name; for a file, the path.
    label : str
        Its class; empty if it has none.
    height, width : int
        Pixels.
    n_subwindows : int
        Subwindows in the index.
    hash : bytes
        A hash of its pixels.
    file_bytes, file_time : int
        Size and time (nanoseconds) of its file; -1 if it is not a file.
    thumbnail : bytes
        A JPEG; empty if there is none.
    """

    id: int
    name: str
    label: str
    height: int
    width: int
    n_subwindows: int
    hash: bytes = field(repr=False)
    file_bytes: int
    file_time: int
    thumbnail: bytes = field(repr=False)


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
    ...     hit = index.search(images[3], k=1)[0]
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


def name_key(name: str) -> int:
    """Return a hash of a name, 64 bits."""
    # A name that no index can hold has a hash, too: it is looked up and not found.
    content = name.encode(errors="surrogateescape")
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little")


@dataclass(frozen=True)
class Texts:
    """Byte strings, one after the other."""

    data: UInt8s
    offsets: UInt64s

    @classmethod
    def join(cls, parts: Sequence[bytes]) -> "Texts":
        """Concatenate byte strings."""
        offsets = np.cumsum([0, *map(len, parts)]).astype(np.uint64)
        return cls(np.frombuffer(b"".join(parts), dtype=np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> bytes:
        return self.data[self.offsets.item(i) : self.offsets.item(i + 1)].tobytes()

    def text(self, i: int) -> str:
        """Return a string of UTF-8."""
        return self[i].decode(errors="replace")

    def check(self, n: int, what: str) -> None:
        """Raise a ValueError unless the offsets fit the data."""
        offsets = self.offsets
        if len(offsets) != n + 1 or offsets[0] != 0 or offsets[-1] != len(self.data):
            raise ValueError(f"the offsets of {what} do not go from 0 to {len(self.data)}")
        if (offsets[1:] < offsets[:-1]).any():
            raise ValueError(f"the offsets of {what} do not ascend")


@dataclass(frozen=True)
class ImageTable:
    """Images in columns, as views of a file or in memory.

    Parameters
    ----------
    columns : dict
        The columns of numbers, by name; ``key`` is the hash of the name, and ``label`` the
        position in ``label_name``.
    hash : ndarray of shape (n, 16), uint8
        Hashes of pixels.
    texts : dict
        Names, names of labels, and thumbnails.
    """

    columns: dict[str, npt.NDArray[Any]]
    hash: UInt8s
    texts: dict[str, Texts]

    @classmethod
    def of_rows(cls, rows: Sequence[Row]) -> "ImageTable":
        """Make a table of rows."""
        labels = sorted({row.label for row in rows})
        code = {label: i for i, label in enumerate(labels)}
        values: dict[str, list[int]] = {
            "key": [name_key(row.name) for row in rows],
            "label": [code[row.label] for row in rows],
        }
        columns = {
            name: np.array(values.get(name) or [getattr(row, name) for row in rows], dtype=dtype)
            for name, dtype in COLUMNS.items()
        }
        hashes = np.frombuffer(b"".join(row.hash for row in rows), dtype=np.uint8)
        texts = {
            "name": Texts.join([row.name.encode() for row in rows]),
            "label_name": Texts.join([label.encode() for label in labels]),
            "thumbnail": Texts.join([row.thumbnail for row in rows]),
        }
        return cls(columns, hashes.reshape(-1, HASH_BYTES), texts)

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[Any]]) -> "ImageTable":
        """Make a table of the arrays of a file, after checking that they fit each other."""
        columns = {name: arrays[name] for name in COLUMNS}
        n = len(columns["id"])
        for name, dtype in COLUMNS.items():
            if columns[name].dtype != dtype or columns[name].shape != (n,):
                raise ValueError(f"column {name} has the wrong type or length")
        hashes = arrays["hash"]
        if hashes.dtype != np.uint8 or hashes.shape != (n, HASH_BYTES):
            raise ValueError("the hashes have the wrong type or length")
        texts = {}
        for name in TEXTS:
            data, offsets = arrays[name], arrays[f"{name}_offsets"]
            if data.dtype != np.uint8 or offsets.dtype != np.uint64 or data.ndim != 1:
                raise ValueError(f"{name} has the wrong type")
            texts[name] = Texts(data, offsets)
            texts[name].check(len(offsets) - 1 if name == "label_name" else n, name)
        if n and columns["label"].max() >= len(texts["label_name"]):
            raise ValueError("an image has an unknown label")
        return cls(columns, hashes, texts)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays of a file."""
        texts = {name: self.texts[name].data for name in TEXTS}
        offsets = {f"{name}_offsets": self.texts[name].offsets for name in TEXTS}
        return self.columns | {"hash": self.hash} | texts | offsets

    def __len__(self) -> int:
        return len(self.columns["id"])

    def __getitem__(self, i: int) -> Row:
        numbers = {name: int(self.columns[name][i]) for name in COLUMNS}
        label = self.texts["label_name"].text(numbers.pop("label"))
        del numbers["key"]
        return Row(
            **numbers,
            name=self.texts["name"].text(i),
            label=label,
            hash=self.hash[i].tobytes(),
            thumbnail=self.texts["thumbnail"][i],
        )

    def hit(self, i: int, score: float) -> Hit:
        """Return the image of a row with its score."""
        columns, texts = self.columns, self.texts
        return Hit(
            columns["id"].item(i),
            texts["name"].text(i),
            texts["label_name"].text(columns["label"].item(i)),
            score,
            columns["height"].item(i),
            columns["width"].item(i),
        )

    def rows(self) -> Iterator[Row]:
        """Return all rows."""
        return (self[i] for i in range(len(self)))

    def labels(self) -> list[str]:
        """Return the names of the labels."""
        names = self.texts["label_name"]
        return [names.text(i) for i in range(len(names))]


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
    title = "a segment of an index"
    with reading(path, KIND, title, mapped=True, verify=verify) as (content, values):
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
        return Segment(path.name, postings, ImageTable.from_arrays(arrays))


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
    segments: list[Segment], removed: list[Booleans], vocabulary: Vocabulary
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
