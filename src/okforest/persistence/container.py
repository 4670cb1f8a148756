r"""The file: JSON and arrays in one memory-mappable piece, with checksums.

All numbers are little-endian; every checksum is a CRC-32, as :func:`zlib.crc32` has it.

=========  ======================================================================================
bytes      content
=========  ======================================================================================
0 to 7     magic: ``\x89okf\r\n\x1a\n``
8 to 11    format number, uint32: 1
12 to 19   length of the header in bytes, uint64
20 to 27   length of the file in bytes, uint64
28 to 31   checksum of bytes 0 to 27 followed by the header, uint32
32 ...     header: JSON, in UTF-8
...        zeros, up to the next multiple of 64: here the data begin
...        the arrays' bytes, in the header's order; each but the last is followed by zeros up to
           the next multiple of 64. The file ends with the last byte of the last array.
=========  ======================================================================================

Magic and format number stay where they are in every later format. The header is an object with

- ``"content"``: any JSON, which refers to arrays by their position in
- ``"arrays"``: a list of objects with

  - ``"dtype"``: byte order, kind and size, as in NumPy's ``dtype.str``: one of ``|b1``, integers
    ``i`` and ``u`` of 1, 2, 4 or 8 bytes, floats ``f`` of 2, 4 or 8, complex ``c`` of 8 or 16,
    bytes ``|S`` of any number of bytes, text ``U`` of any number of four-byte code points;
  - ``"shape"``: a list of lengths;
  - ``"order"``: ``"C"``, the last index varying fastest, or ``"F"``, the first;
  - ``"offset"``: where its bytes begin, counted from where the data begin;
  - ``"nbytes"``: how many they are;
  - ``"crc32"``: their checksum.
"""

import json
import os
import re
import stat
import struct
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import prod
from mmap import ACCESS_READ, mmap
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt

from okforest.persistence._errors import FileFormatError

Array = npt.NDArray[Any]
Path = str | os.PathLike[str]

MAGIC = b"\x89okf\r\n\x1a\n"
FORMAT = 1
PREFIX = struct.Struct("<8sIQQI")
ALIGNMENT = 64
DTYPE = re.compile(r"\|b1|[<>|][iu][1248]|[<>]f[248]|[<>]c(8|16)|\|S[1-9]\d*|[<>]U[1-9]\d*")
MAX_DIMENSIONS = 64  # NumPy's

AGAIN = "Copy or download it again, or save the model again."


def write(file: BinaryIO, content: Any, arrays: Sequence[Array]) -> None:
    """Write JSON content and arrays of the types above to a file that is open and empty."""
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
        file.write(piece)
    file.write(bytes(data_begin + end - file.tell()))


def read(path: Path, *, mapped: bool) -> tuple[Any, list[Array]]:
    """Return the JSON content and the arrays of a file.

    Arrays are in memory, their checksums verified, or, if mapped, read-only and still in the file,
    not verified. No size is believed before it is compared with the file's.
    """
    name = os.fspath(path)
    if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for its other end
        raise FileFormatError(f"{name} is a folder or a device. Pass the path of a file.")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        header, data_begin = _read_header(file, name, size)
        try:
            content, entries = header["content"], [_Entry.parse(e) for e in header["arrays"]]
            _check_layout(entries, size - data_begin)
            if mapped:
                buffer = mmap(file.fileno(), 0, access=ACCESS_READ)
                return content, [entry.view(buffer, data_begin) for entry in entries]
            arrays = [np.empty(entry.shape, entry.dtype, entry.order) for entry in entries]
        except (LookupError, OverflowError, TypeError, ValueError) as error:
            raise FileFormatError(f"{name} has a bad header: {error}. {AGAIN}") from error
        for i, (entry, array) in enumerate(zip(entries, arrays, strict=True)):
            file.seek(data_begin + entry.offset)
            flat = _flat(array, entry.order)
            if file.readinto(flat) != entry.nbytes or zlib.crc32(flat) != entry.crc32:
                raise FileFormatError(
                    f"{name} is corrupted: array {i} differs from its checksum. {AGAIN}"
                )
    return content, arrays


@dataclass(frozen=True)
class _Entry:
    """What the header says of an array."""

    dtype: str
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    offset: int
    nbytes: int
    crc32: int

    @classmethod
    def parse(cls, entry: dict[str, Any]) -> "_Entry":
        """Read an entry of the header, and check all but its place in the file."""
        parsed = cls(**entry | {"shape": tuple(entry["shape"])})
        numbers = (*parsed.shape, parsed.offset, parsed.nbytes, parsed.crc32)
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise ValueError(f"sizes {numbers} are not all whole numbers ≥ 0")
        if not DTYPE.fullmatch(parsed.dtype):
            raise ValueError(f"unknown dtype {parsed.dtype!r}")
        if len(parsed.shape) > MAX_DIMENSIONS or parsed.order not in ("C", "F"):
            raise ValueError(f"bad shape {parsed.shape} or order {parsed.order!r}")
        if np.dtype(parsed.dtype).itemsize * prod(parsed.shape) != parsed.nbytes:
            raise ValueError(f"shape {parsed.shape} does not have {parsed.nbytes} bytes")
        return parsed

    def view(self, buffer: mmap, data_begin: int) -> Array:
        """Return the array as a read-only part of a mapped file."""
        if self.nbytes == 0:  # may begin at the very end, where NumPy takes no view
            array = np.empty(self.shape, self.dtype)
            array.flags.writeable = False
            return array
        begin = data_begin + self.offset
        return np.ndarray(self.shape, self.dtype, buffer, begin, order=self.order)


def writable_dtype(dtype: np.dtype[Any]) -> bool:
    """Return whether the format has this type."""
    return DTYPE.fullmatch(dtype.str) is not None


def _describe(array: Array, offset: int) -> tuple[_Entry, memoryview]:
    """Return an array's entry and its bytes; a copy only if it is not contiguous."""
    array = np.asarray(array)
    if not array.flags.forc:
        array = np.ascontiguousarray(array)
    order: Literal["C", "F"] = "C" if array.flags.c_contiguous else "F"
    flat = _flat(array, order)
    checksum = zlib.crc32(flat)
    return _Entry(array.dtype.str, array.shape, order, offset, array.nbytes, checksum), flat


def _flat(array: Array, order: Literal["C", "F"]) -> memoryview:
    """See a contiguous array as its bytes."""
    return array.reshape(-1, order=order).view(np.uint8).data


def _aligned(position: int) -> int:
    return position + -position % ALIGNMENT


def _header_checksum(prefix: bytes, header: bytes) -> int:
    return zlib.crc32(header, zlib.crc32(prefix[: PREFIX.size - 4]))


def _check_layout(entries: Sequence[_Entry], available: int) -> None:
    """Check that arrays follow each other to the end of the file: none overlap, none is outside."""
    end = 0
    for entry in entries:
        if entry.offset != _aligned(end):
            raise ValueError(f"an array begins at {entry.offset}, not at {_aligned(end)}")
        end = entry.offset + entry.nbytes
    if end != available:
        raise ValueError(f"arrays take {end} bytes of {available}")


def _read_header(file: BinaryIO, name: str, size: int) -> tuple[dict[str, Any], int]:
    """Return the header, verified, and where the data begin."""
    prefix = file.read(PREFIX.size)
    if prefix[: len(MAGIC)] != MAGIC[: max(len(prefix), 1)]:
        what = "is empty" if size == 0 else f"begins with {prefix[: len(MAGIC)]!r}"
        raise FileFormatError(
            f"{name} was not written by okforest.save: it {what}. If pickle, joblib or skops wrote "
            "it, load it with that."
        )
    if len(prefix) < PREFIX.size:
        raise FileFormatError(f"{name} is truncated: it has {size} bytes only. {AGAIN}")
    _, number, header_size, file_size, checksum = PREFIX.unpack(prefix)
    if number > FORMAT:
        raise FileFormatError(
            f"{name} was written by a newer okforest (format {number}; this one reads up to "
            f"{FORMAT}). Upgrade okforest."
        )
    if size < file_size:
        raise FileFormatError(f"{name} is truncated: it has {size} of {file_size} bytes. {AGAIN}")
    data_begin = _aligned(PREFIX.size + header_size)
    if size > file_size or data_begin > size or number < 1:
        raise FileFormatError(f"{name} is corrupted: its sizes disagree. {AGAIN}")
    text = file.read(header_size)
    if _header_checksum(prefix, text) != checksum:
        raise FileFormatError(f"{name} is corrupted: its header differs from its checksum. {AGAIN}")
    try:
        header: dict[str, Any] = json.loads(text)
    except (RecursionError, ValueError) as error:
        raise FileFormatError(f"{name} has a header that is not JSON: {error}. {AGAIN}") from error
    return header, data_begin
