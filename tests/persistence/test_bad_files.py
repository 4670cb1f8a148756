"""Files that are not intact: each fault has an error of its own."""

import json
import os
import pickle
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import okforest
from okforest import OKExtraTrees
from okforest.engine import crc32
from okforest.kernels import RBF
from okforest.persistence import FileFormatError
from okforest.persistence.container import read

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 3))
Y = rng.normal(size=(20, 2))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.okforest"


@pytest.fixture
def saved(path):
    okforest.save(OKExtraTrees(3, kernel=RBF(), random_state=0).fit(X, Y), path)
    return path.read_bytes()


def assert_bad(path, *parts):
    for mmap in (False, True):
        with pytest.raises(FileFormatError) as error:
            okforest.load(path, mmap=mmap)
        message = str(error.value)
        assert os.fspath(path) in message
        assert all(part in message for part in parts), message


@pytest.mark.parametrize(
    "content",
    [
        b"\x89PNG\r\n\x1a\n" + bytes(100),
        pickle.dumps([1, 2]),
        b"PK\x03\x04",
        b"text",
        b"\n",
    ],
    ids=["png", "pickle", "zip", "text", "line"],
)
def test_foreign(path, content):
    """Files of other programs."""
    path.write_bytes(content)
    assert_bad(
        path,
        "was not written by okforest.save: it begins with",
        "load it with that",
    )


def test_empty(path):
    """A file without bytes."""
    path.write_bytes(b"")
    assert_bad(path, "was not written by okforest.save: it is empty")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this platform")
def test_not_a_file(tmp_path):
    """A folder, and a pipe, which would block."""
    assert_bad(tmp_path, "is a folder or a device. Pass the path of a file")
    os.mkfifo(tmp_path / "pipe")
    assert_bad(tmp_path / "pipe", "is a folder or a device")


def test_missing(path):
    """Python's own error."""
    with pytest.raises(FileNotFoundError, match=r"model\.okforest"):
        okforest.load(path)


def test_truncated(path, saved):
    """Wherever the file ends."""
    for size in (4, 20):
        path.write_bytes(saved[:size])
        assert_bad(path, f"is truncated: it has only {size} bytes", "save the model again")
    for size in (32, 200, len(saved) // 2, len(saved) - 1):
        path.write_bytes(saved[:size])
        assert_bad(path, f"is truncated: it has {size} of {len(saved)} bytes", "Copy or download")


def test_longer(path, saved):
    """Additional bytes at the end."""
    path.write_bytes(saved + b"\0")
    assert_bad(path, "is corrupted: its sizes disagree")


def test_corrupted(path, saved):
    """A flipped bit in the header, and in an array."""
    path.write_bytes(saved[:50] + bytes([saved[50] ^ 1]) + saved[51:])
    assert_bad(path, "is corrupted: its header differs from its checksum", "Copy or download")
    path.write_bytes(saved[:-1] + bytes([saved[-1] ^ 1]))
    with pytest.raises(FileFormatError, match=r"is corrupted: array \d+ differs from its checksum"):
        okforest.load(path)


def test_future(path, saved):
    """A newer format is refused before anything else is read, and so are formats 0 and 1."""
    path.write_bytes(saved[:8] + struct.pack("<I", 7) + b"a different layout" * 3)
    assert_bad(
        path,
        "was written by a newer okforest (format 7; this one reads up to 2). Upgrade okforest.",
    )
    for number in (0, 1):
        path.write_bytes(saved[:8] + struct.pack("<I", number) + saved[12:])
        assert_bad(path, f"is corrupted: its format is {number}; formats begin at 2")


def test_the_layout_is_as_documented(path, saved):
    """A reader written from the documentation alone finds the header and every array."""
    magic, number, header_size, file_size, checksum = struct.unpack("<8sIQQI", saved[:32])
    assert magic == b"\x89okf\r\n\x1a\n"
    assert (number, file_size) == (2, len(saved))
    header = saved[32 : 32 + header_size]
    assert checksum == zlib.crc32(saved[:28] + header)
    header = json.loads(header.decode("utf-8"))
    assert header["content"]["okforest"] == okforest.__version__
    begin = 32 + header_size + -(32 + header_size) % 64
    model = okforest.load(path)
    fields = header["content"]["model"]["fitted"]["trees_"]["fields"]
    for name, field in fields.items():
        entry = header["arrays"][field["position"]]
        part = saved[begin + entry["offset"] :][: entry["nbytes"]]
        assert (begin + entry["offset"]) % 64 == 0
        assert zlib.crc32(part) == entry["crc32"]
        array = np.frombuffer(part, entry["dtype"]).reshape(entry["shape"], order=entry["order"])
        np.testing.assert_array_equal(array, getattr(model.trees_, name))


def with_header(header, data=b""):
    """Return a file with this header and data, and the right sizes and checksum."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    begin = 32 + len(text) + -(32 + len(text)) % 64
    prefix = struct.pack("<8sIQQ", b"\x89okf\r\n\x1a\n", 2, len(text), begin + len(data))
    checksum = struct.pack("<I", zlib.crc32(prefix + text))
    return (prefix + checksum + text).ljust(begin, b"\0") + data


ENTRY = {"dtype": "<f8", "shape": [0], "order": "C", "offset": 0, "nbytes": 0, "crc32": 0}
EIGHT = ENTRY | {"shape": [8], "nbytes": 64, "crc32": zlib.crc32(bytes(64))}


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (b"\xff", "its header is not JSON"),
        (b"{", "its header is not JSON"),
        (b"[" * 100_000, "its header is not JSON"),
        (b"9" * 10_000, "its header is not JSON"),
        ([], "it is not an object with content and arrays"),
        ({}, "it is not an object with content and arrays"),
        ({"arrays": []}, "it is not an object with content and arrays"),
        ({"content": None, "arrays": None}, "arrays is not a list"),
        ({"content": None, "arrays": [None]}, "an array has the description None"),
        ({"content": None, "arrays": [{}]}, "an array has the description {}"),
    ],
    ids=lambda part: str(part)[:50],
)
def test_bad_headers(path, header, problem):
    """Headers made on purpose, with the right checksum."""
    path.write_bytes(with_header(header))
    assert_bad(path, f"is malformed: {problem}")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"dtype": "|O"}, "unknown dtype '|O'"),
        ({"dtype": "<f16"}, "unknown dtype '<f16'"),
        ({"dtype": "<M8[s]"}, "unknown dtype '<M8[s]'"),
        ({"dtype": "f8,f8"}, "unknown dtype 'f8,f8'"),
        ({"dtype": ["<f8"]}, "unknown dtype ['<f8']"),
        ({"dtype": "<U99999999999999999999"}, ""),  # NumPy's error
        ({"shape": [2**62]}, f"an array of shape [{2**62}] does not have 0 bytes"),
        ({"shape": [2**62], "nbytes": 2**65}, f"arrays take {2**65} bytes, and the file has 0"),
        ({"shape": [0, 2**64]}, ""),  # NumPy's error
        ({"shape": [0, 2**62, 2**62]}, ""),  # NumPy's error
        ({"shape": [-1]}, "sizes (-1, 0, 0, 0) are not all non-negative integers"),
        ({"shape": [True, 0]}, "sizes (True, 0, 0, 0, 0) are not all non-negative integers"),
        ({"shape": [1] * 70 + [0]}, "bad shape [1, 1, 1"),
        ({"shape": 0}, "bad shape 0"),
        ({"order": "K"}, "unknown order 'K'"),
        ({"order": ["C"]}, "unknown order ['C']"),
        ({"offset": 64}, "array 0 begins at 64, not at 0"),
        ({"offset": -64}, "sizes (0, -64, 0, 0) are not all non-negative integers"),
        ({"offset": 0.0}, "sizes (0, 0.0, 0, 0) are not all non-negative integers"),
        ({"nbytes": 8}, "an array of shape [0] does not have 8 bytes"),
        ({"more": 0}, "an array has the description {'dtype': '<f8'"),
    ],
    ids=str,
)
def test_bad_arrays(path, change, problem):
    """Descriptions of arrays made on purpose; nothing of their size is allocated."""
    path.write_bytes(with_header({"content": None, "arrays": [ENTRY | change]}))
    assert_bad(path, f"is malformed: {problem}")


def test_arrays_do_not_overlap(path):
    """A small file cannot demand more memory than its size; all else in it is right."""
    after = EIGHT | {"offset": 64}
    path.write_bytes(with_header({"content": None, "arrays": [EIGHT, after]}, bytes(128)))
    assert len(read(path, mapped=False, verify=True).arrays) == 2
    path.write_bytes(with_header({"content": None, "arrays": [EIGHT, EIGHT]}, bytes(64)))
    assert_bad(path, "is malformed: array 1 begins at 0, not at 64")


def test_arrays_fill_the_file(path):
    """No array is outside the file, and there is nothing between or after the arrays."""
    gap = EIGHT | {"offset": 128}
    path.write_bytes(with_header({"content": None, "arrays": [EIGHT, gap]}, bytes(192)))
    assert_bad(path, "is malformed: array 1 begins at 128, not at 64")
    for size in (63, 65):
        path.write_bytes(with_header({"content": None, "arrays": [EIGHT]}, bytes(size)))
        assert_bad(path, f"is malformed: arrays take 64 bytes, and the file has {size}")


def test_empty_arrays_share_a_place(path):
    """Arrays without entries take no space."""
    path.write_bytes(with_header({"content": None, "arrays": [ENTRY, ENTRY]}))
    for mapped in (False, True):
        _, second = read(path, mapped=mapped, verify=True).arrays
        assert second.size == 0


def test_content_without_a_model(path):
    """Content of another program in the same container."""
    for content in ([], {}, None):
        path.write_bytes(with_header({"content": content, "arrays": []}))
        assert_bad(path, "does not hold a model")


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_checksums_are_those_of_zlib(first, second):
    """Of any bytes, in one part or in two."""
    a, b = (np.frombuffer(part, np.uint8) for part in (first, second))
    assert crc32(a) == zlib.crc32(first)
    assert crc32(b, crc32(a)) == zlib.crc32(first + second)
