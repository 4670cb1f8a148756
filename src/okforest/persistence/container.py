r"""The file format: JSON and arrays in one file that can be memory-mapped, with checksums.

All numbers are little-endian; every checksum is a CRC-32, as :func:`zlib.crc32` computes it.

=========  ======================================================================================
bytes      content
=========  ======================================================================================
0 to 7     magic: ``\x89okf\r\n\x1a\n``
8 to 11    format number, uint32: 2
12 to 19   length of the header in bytes, uint64
20 to 27   length of the file in bytes, uint64
28 to 31   checksum of bytes 0 to 27 followed by the header, uint32
32 ...     header: JSON, in UTF-8
...        zeros up to the next multiple of 64, where the data begin
...        the bytes of the arrays, in the order of the header; each array but the last is followed
           by zeros up to the next multiple of 64. The file ends with the last array.
=========  ======================================================================================

Magic and format number keep their place in every later format. Format 1 was never released and is
not read. The header is an object with

- ``"content"``: any JSON, which refers to arrays by their position in
- ``"arrays"``: a list of objects with

  - ``"dtype"``: byte order, kind and size, as in NumPy's ``dtype.str``: one of ``|b1``, integers
    ``i`` and ``u`` of 1, 2, 4 or 8 bytes, floats ``f`` of 2, 4 or 8, complex ``c`` of 8 or 16,
    bytes ``|S`` of any number of bytes, text ``U`` of any number of four-byte code points;
  - ``"shape"``: a list of lengths;
  - ``"order"``: ``"C"``, the last index varying fastest, or ``"F"``, the first;
  - ``"offset"``: the position of its first byte, relative to the beginning of the data;
  - ``"nbytes"``: its number of bytes;
  - ``"crc32"``: its checksum.
"""

import json
import os
import re
import stat
import struct
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from io import BufferedReader
from math import prod
from mmap import ACCESS_READ, mmap
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from okforest.engine import crc32

Array = npt.NDArray[Any]
Path = str | os.PathLike[str]

MAGIC = b"\x89okf\r\n\x1a\n"
FORMAT = 2
PREFIX = struct.Struct("<8sIQQI")
ALIGNMENT = 64
CHUNK = 2**18  # bytes read at a time
DTYPE = re.compile(r"\|b1|[<>|][iu][1248]|[<>]f[248]|[<>]c(8|16)|\|S[1-9]\d*|[<>]U[1-9]\d*")
MAX_DIMENSIONS = 64  # NumPy's

AGAIN = "Copy or download it again, or save the model again."


class FileFormatError(ValueError):
    """A file that :func:`okforest.load` cannot load; the message says why and what to do.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import okforest
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.okforest")
    ...     size = path.write_bytes(b"something else")
    ...     try:
    ...         okforest.load(path)
    ...     except okforest.persistence.FileFormatError as error:
    ...         print(type(error).__name__)
    FileFormatError
    """


def write(file: BinaryIO, content: Any, arrays: Sequence[Array]) -> None:
    """Write JSON content and arrays of the types above to an open, empty file."""
    entries, pieces = [], []
    end = 0
    for array in arrays:
        entry, piece = _describe(array, offset=_aligned(end))
        entries.append(asdict(entry))
        pieces.append(piece)
        end = entry.offset + entry.nbytes
    header = json.dumps({"content": content, "arrays": entries}, allow_nan=False).encode()
    data_begin = _aligned(PREFIX.size + len(header))
    sizes = (MAGIC, FORMAT, len(header), data_begin + end)
    file.write(PREFIX.pack(*sizes, _header_checksum(PREFIX.pack(*sizes, 0), header)))
    file.write(header)
    for piece in pieces:
        file.write(bytes(-file.tell() % ALIGNMENT))
        file.write(piece.data)
    file.write(bytes(data_begin + end - file.tell()))


class Contents(NamedTuple):
    """What a file holds."""

    number: int  # the version of the format
    content: Any
    arrays: list[Array]


def read(path: Path, *, mapped: bool, verify: bool) -> Contents:
    """Return the JSON content and the arrays of a file.

    Arrays are in memory or, if mapped, read-only views of the file. Their checksums are verified on
    request; the header's checksum always is. No size is trusted before it is compared with the
    size of the file.
    """
    name = os.fspath(path)
    if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would block
        raise FileFormatError(f"{name} is a folder or a device. Pass the path of a file.")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        number, header, data_begin = _read_header(file, name, size)
        try:
            content, entries = _parse_header(header)
            _check_layout(entries, size - data_begin)
            if mapped:
                buffer = mmap(file.fileno(), 0, access=ACCESS_READ)
                arrays = [entry.view(buffer, data_begin) for entry in entries]
            else:
                parts = [entry.read(file, data_begin, verify) for entry in entries]
                arrays = [array for array, _ in parts]
        except (OverflowError, TypeError, ValueError) as error:
            raise FileFormatError(f"{name} is malformed: {error}. {AGAIN}") from error
    if verify:
        found = (
            [crc32(_flat(array, entry.order)) for entry, array in zip(entries, arrays, strict=True)]
            if mapped
            else [checksum for _, checksum in parts]
        )
        for i, entry in enumerate(entries):
            if found[i] != entry.crc32:
                raise FileFormatError(
                    f"{name} is corrupted: array {i} differs from its checksum. {AGAIN}"
                )
    return Contents(number, content, arrays)


@dataclass(frozen=True)
class _Entry:
    """The description of an array in the header."""

    dtype: str
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    offset: int
    nbytes: int
    crc32: int

    @classmethod
    def parse(cls, entry: Any) -> "_Entry":
        """Read an entry of the header, and check everything but its place in the file."""
        names = {field.name for field in fields(cls)}
        if not isinstance(entry, dict) or entry.keys() != names:
            raise ValueError(f"an array has the description {str(entry)[:80]}")
        dtype, shape, order = entry["dtype"], entry["shape"], entry["order"]
        if not isinstance(dtype, str) or not DTYPE.fullmatch(dtype):
            raise ValueError(f"unknown dtype {dtype!r}")
        if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS:
            raise ValueError(f"bad shape {str(shape)[:80]}")
        if order not in ("C", "F"):
            raise ValueError(f"unknown order {order!r}")
        numbers = (*shape, entry["offset"], entry["nbytes"], entry["crc32"])
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise ValueError(f"sizes {numbers} are not all non-negative integers")
        if np.dtype(dtype).itemsize * prod(shape) != entry["nbytes"]:
            raise ValueError(f"an array of shape {shape} does not have {entry['nbytes']} bytes")
        return cls(**entry | {"shape": tuple(shape)})

    def read(self, file: BufferedReader, data_begin: int, verify: bool) -> tuple[Array, int]:
        """Return the array in memory, and its checksum, or 0 if it is not to be verified."""
        array = np.empty(self.shape, self.dtype, self.order)
        flat, checksum = _flat(array, self.order), 0
        file.seek(data_begin + self.offset)
        for start in range(0, self.nbytes, CHUNK):
            part = flat[start : start + CHUNK]
            if file.readinto(part.data) != len(part):
                raise ValueError("it ends within an array")
            if verify:  # while it is in cache
                checksum = crc32(part, checksum)
        return array, checksum

    def view(self, buffer: mmap, data_begin: int) -> Array:
        """Return the array as a read-only part of a mapped file."""
        if self.nbytes == 0:  # NumPy makes no view of the very end
            array = np.empty(self.shape, self.dtype, self.order)
            array.flags.writeable = False
            return array
        begin = data_begin + self.offset
        return np.ndarray(self.shape, self.dtype, buffer, begin, order=self.order)


def writable_dtype(dtype: np.dtype[Any]) -> bool:
    """Return whether arrays of this type can be written."""
    return DTYPE.fullmatch(dtype.str) is not None


def _describe(array: Array, offset: int) -> tuple[_Entry, Array]:
    """Return an array's entry and its bytes, copied only if the array is not contiguous."""
    array = np.asarray(array)
    if not array.flags.forc:
        array = np.ascontiguousarray(array)
    order: Literal["C", "F"] = "C" if array.flags.c_contiguous else "F"
    flat = _flat(array, order)
    checksum = crc32(flat)
    return _Entry(array.dtype.str, array.shape, order, offset, array.nbytes, checksum), flat


def _flat(array: Array, order: Literal["C", "F"]) -> npt.NDArray[np.uint8]:
    """Return the bytes of a contiguous array, without a copy."""
    return array.reshape(-1, order=order).view(np.uint8)


def _aligned(position: int) -> int:
    return position + -position % ALIGNMENT


def _header_checksum(prefix: bytes, header: bytes) -> int:
    return zlib.crc32(header, zlib.crc32(prefix[: PREFIX.size - 4]))


def _parse_header(header: Any) -> tuple[Any, list[_Entry]]:
    """Return the content and the descriptions of the arrays."""
    if not isinstance(header, dict) or header.keys() != {"content", "arrays"}:
        raise ValueError("it is not an object with content and arrays")
    if not isinstance(header["arrays"], list):
        raise ValueError("arrays is not a list")
    return header["content"], [_Entry.parse(entry) for entry in header["arrays"]]


def _check_layout(entries: Sequence[_Entry], available: int) -> None:
    """Check that arrays follow each other to the end of the file, without overlaps or gaps."""
    end = 0
    for i, entry in enumerate(entries):
        if entry.offset != _aligned(end):
            raise ValueError(f"array {i} begins at {entry.offset}, not at {_aligned(end)}")
        end = entry.offset + entry.nbytes
    if end != available:
        raise ValueError(f"arrays take {end} bytes, and the file has {available}")


def _read_header(file: BufferedReader, name: str, size: int) -> tuple[int, Any, int]:
    """Return the number of the format, the verified header, and where the data begin."""
    prefix = file.read(PREFIX.size)
    if prefix[: len(MAGIC)] != MAGIC[: max(len(prefix), 1)]:
        what = "is empty" if size == 0 else f"begins with {prefix[: len(MAGIC)]!r}"
        raise FileFormatError(
            f"{name} was not written by okforest.save: it {what}. If it was written by pickle, "
            "joblib or skops, load it with that."
        )
    if len(prefix) < PREFIX.size:
        raise FileFormatError(f"{name} is truncated: it has only {size} bytes. {AGAIN}")
    _, number, header_size, file_size, checksum = PREFIX.unpack(prefix)
    if number > FORMAT:
        raise FileFormatError(
            f"{name} was written by a newer okforest (format {number}; this one reads up to "
            f"{FORMAT}). Upgrade okforest."
        )
    if size < file_size:
        raise FileFormatError(f"{name} is truncated: it has {size} of {file_size} bytes. {AGAIN}")
    data_begin = _aligned(PREFIX.size + header_size)
    if number < FORMAT:
        raise FileFormatError(
            f"{name} is corrupted: its format is {number}; formats begin at {FORMAT}. {AGAIN}"
        )
    if size > file_size or data_begin > size:
        raise FileFormatError(f"{name} is corrupted: its sizes disagree. {AGAIN}")
    text = file.read(header_size)
    if _header_checksum(prefix, text) != checksum:
        raise FileFormatError(f"{name} is corrupted: its header differs from its checksum. {AGAIN}")
    try:
        header = json.loads(text)
    except (RecursionError, ValueError) as error:
        raise FileFormatError(f"{name} is malformed: its header is not JSON. {AGAIN}") from error
    return number, header, data_begin
