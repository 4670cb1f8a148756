"""The table of the images of a segment: names, labels, sizes, hashes and thumbnails, in columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from okforest.retrieval._pictures import HASH_BYTES
from okforest.retrieval._postings import UInt8s, UInt64s


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


def name_key(name: str) -> int:
    """Return a hash of a name, 64 bits."""
    content = name.encode(errors="surrogateescape")  # of a file that cannot be in an index
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

    def rows(self) -> Iterator[Row]:
        """Return all rows."""
        return (self[i] for i in range(len(self)))

    def labels(self) -> list[str]:
        """Return the names of the labels."""
        names = self.texts["label_name"]
        return [names.text(i) for i in range(len(names))]
