"""Files that are no saved models give one kind of error, which says what is wrong."""

import io
import json
import os
import pickle
import struct
import zlib
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import okforest
from okforest import OKExtraTrees, OKTree
from okforest.kernels import RBF
from okforest.persistence import FileFormatError
from okforest.persistence.container import read, write

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
    assert_bad(path, "was not written by okforest.save: it begins with", "load it with that")


def test_empty(path):
    """A file of no bytes."""
    path.write_bytes(b"")
    assert_bad(path, "was not written by okforest.save: it is empty")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this platform")
def test_no_file(tmp_path):
    """A folder, and a pipe, which would never answer."""
    assert_bad(tmp_path, "is a folder or a device. Pass the path of a file")
    os.mkfifo(tmp_path / "pipe")
    assert_bad(tmp_path / "pipe", "is a folder or a device")


def test_missing(path):
    """The usual error."""
    with pytest.raises(FileNotFoundError, match=r"model\.okforest"):
        okforest.load(path)


def test_truncated(path, saved):
    """Whatever is left."""
    for size in (4, 20):
        path.write_bytes(saved[:size])
        assert_bad(path, f"is truncated: it has {size} bytes only", "save the model again")
    for size in (32, 200, len(saved) // 2, len(saved) - 1):
        path.write_bytes(saved[:size])
        assert_bad(path, f"is truncated: it has {size} of {len(saved)} bytes", "Copy or download")


def test_longer(path, saved):
    """Bytes at the end."""
    path.write_bytes(saved + b"\0")
    assert_bad(path, "is corrupted: its sizes disagree")


def test_corrupted(path, saved):
    """A bit of the header, and of an array."""
    path.write_bytes(saved[:50] + bytes([saved[50] ^ 1]) + saved[51:])
    assert_bad(path, "is corrupted: its header differs from its checksum", "Copy or download")
    path.write_bytes(saved[:-1] + bytes([saved[-1] ^ 1]))
    with pytest.raises(FileFormatError, match=r"is corrupted: array \d+ differs from its checksum"):
        okforest.load(path)


def test_future(path, saved):
    """A newer format, whatever follows."""
    path.write_bytes(saved[:8] + struct.pack("<I", 7) + b"quite another layout" * 3)
    assert_bad(
        path,
        "was written by a newer okforest (format 7; this one reads up to 1). Upgrade okforest.",
    )
    path.write_bytes(saved[:8] + struct.pack("<I", 0) + saved[12:])
    assert_bad(path, "is corrupted")


def test_the_layout_is_as_documented(path, saved):
    """A reader written from the documentation alone finds the header and every array."""
    magic, number, header_size, file_size, checksum = struct.unpack("<8sIQQI", saved[:32])
    assert magic == b"\x89okf\r\n\x1a\n"
    assert (number, file_size) == (1, len(saved))
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


def with_header(header):
    """Return a file with this header, right in all its sizes and checksums."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    size = 32 + len(text)
    prefix = struct.pack("<8sIQQ", b"\x89okf\r\n\x1a\n", 1, len(text), size + -size % 64)
    checksum = struct.pack("<I", zlib.crc32(prefix + text))
    return prefix + checksum + text + bytes(-size % 64)


ENTRY = {"dtype": "<f8", "shape": [0], "order": "C", "offset": 0, "nbytes": 0, "crc32": 0}


@pytest.mark.parametrize(
    "header",
    [
        b"\xff",
        b"{",
        b"[" * 100_000,
        b"9" * 10_000,
        [],
        {},
        {"content": None, "arrays": None},
        {"content": None, "arrays": []},
        {"content": None, "arrays": [None]},
        {"content": None, "arrays": [{}]},
        *(
            {"content": None, "arrays": [ENTRY | change]}
            for change in (
                {"dtype": "|O"},
                {"dtype": "<f16"},
                {"dtype": "<M8[s]"},
                {"dtype": "<U99999999999999999999"},
                {"dtype": "f8,f8"},
                {"dtype": ["<f8"]},
                {"shape": [2**62]},
                {"shape": [2**62], "nbytes": 2**65},
                {"shape": [0, 2**64]},
                {"shape": [0, 2**62, 2**62]},
                {"shape": [-1]},
                {"shape": [True, 0]},
                {"shape": [1] * 70 + [0]},
                {"shape": 0},
                {"order": "K"},
                {"offset": 64},
                {"offset": -64},
                {"offset": 0.0},
                {"nbytes": 8},
                {"more": 0},
            )
        ),
    ],
    ids=lambda header: str(header)[:90],
)
def test_bad_headers(path, header):
    """Headers made on purpose, with the right checksum."""
    path.write_bytes(with_header(header))
    assert_bad(path)


def test_arrays_do_not_overlap(path):
    """A small file cannot ask for more memory than its size."""
    file = io.BytesIO()
    write(file, None, [np.zeros(64), np.zeros(64)])
    path.write_bytes(file.getvalue())
    _, arrays = read(path, mapped=False)
    assert len(arrays) == 2
    entry = ENTRY | {"shape": [0], "offset": 0}
    path.write_bytes(with_header({"content": None, "arrays": [entry] * 2}))
    assert read(path, mapped=False)[1][1].size == 0
    bad = [ENTRY | {"shape": [8], "nbytes": 64}] * 2
    path.write_bytes(with_header({"content": None, "arrays": bad}) + bytes(64))
    assert_bad(path)


def deep(n):
    value = 0
    for _ in range(n):
        value = {"type": "tuple", "items": [value]}
    return value


OBJECT = {"params": {}, "fitted": {}}


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (None, "it holds a NoneType, not a model"),
        ([], "it holds a list, not a model"),
        ({}, "'type'"),
        ({"type": "os.system"} | OBJECT, "unknown type 'os.system'"),
        ({"type": "models.OKBoost"} | OBJECT, "written by okforest 9.9"),
        ({"type": "kernels.FromCallable"} | OBJECT, "unknown type"),
        ({"type": ["models.OKTree"]} | OBJECT, "unhashable"),
        ({"type": "kernels.Linear"} | OBJECT, "it holds a Linear, not a model"),
        ({"type": "models.OKTree"}, "'params'"),
        ({"type": "models.OKTree"} | OBJECT, "trees_"),
        ({"type": "models.OKTree"} | OBJECT | {"params": {"colour": 1}}, "colour"),
        *(
            ({"type": "models.OKTree"} | OBJECT | {"fitted": {name: 1}}, f"{name!r} is no fitted")
            for name in ("predict", "__class__", "_private_", "feature_importances_")
        ),
        ({"type": "array", "position": 0}, "out of range"),
        ({"type": "array", "position": "0"}, ""),
        ({"type": "float", "value": []}, ""),
        ({"type": "float", "value": "one"}, "could not convert"),
        ({"type": "dict", "items": [[[], 0]]}, "unhashable"),
        ({"type": "objects", "shape": [10**15], "items": []}, "do not fill the shape"),
        ({"type": "csr", "shape": [2, 2], "data": 0, "indices": 0, "indptr": 0}, ""),
        ({"type": "trees", "fields": {}}, "missing"),
        (deep(450), ""),
    ],
    ids=lambda part: str(part)[:90],
)
def test_bad_models(path, model, problem):
    """Content made on purpose, with the right checksum."""
    path.write_bytes(with_header({"content": {"okforest": "9.9", "model": model}, "arrays": []}))
    assert_bad(path, "holds no model that this okforest can use", problem)


def test_content_without_a_model(path):
    """Another program may use the same container."""
    path.write_bytes(with_header({"content": [], "arrays": []}))
    assert_bad(path, "holds no model")


def circle(model):
    left = model.trees_.left.copy()
    left[np.flatnonzero(left >= 0)[-1]] = 0
    model.trees_ = replace(model.trees_, left=left)


def stray_columns(model):
    model.matrix_.indices[0] = 99


NO_TEXT = np.array([0x110000], "<u4").view("<U1")
NO_BOOLEANS = np.array([0, 1, 2], np.uint8).view(bool)
MODEL_CHANGES = {
    "circle": (circle, "left child is not after the node"),
    "no trees": (lambda model: setattr(model, "trees_", 0), "trees_ are no trees"),
    "outputs": (lambda model: setattr(model, "outputs_", Y[1:]), "outputs_ has 19 entries, not 20"),
    "list": (lambda model: setattr(model, "outputs_", [0] * 20), "outputs_ is no array"),
    "kernel": (lambda model: setattr(model, "kernel_", "rbf"), "kernel_ is no kernel"),
    "features": (lambda model: setattr(model, "n_features_in_", 2), "tests a feature outside 0…1"),
    "half": (lambda model: setattr(model, "n_features_in_", 2.5), "n_features_in_ is 2.5"),
    "names": (
        lambda model: setattr(model, "feature_names_in_", np.array(["a"], object)),
        "feature_names_in_ has 1 entries, not 3",
    ),
    "categories": (lambda model: setattr(model, "categories_", [None]), "categories_ has 1"),
    "text": (lambda model: setattr(model, "text_", NO_TEXT), "characters that do not exist"),
    "big-endian text": (
        lambda model: setattr(model, "text_", NO_TEXT.byteswap().view(">U1")),
        "characters that do not exist",
    ),
    "booleans": (lambda model: setattr(model, "flags_", NO_BOOLEANS), "other than 0 and 1"),
    "sparse": (stray_columns, "indices must be < 3"),
}


@pytest.mark.parametrize(("change", "problem"), MODEL_CHANGES.values(), ids=MODEL_CHANGES)
def test_models_that_would_crash(path, change, problem):
    """A file with the right checksums whose parts do not fit each other is refused."""
    model = OKTree().fit(X, Y)
    model.matrix_ = csr_array(np.eye(3))
    change(model)
    okforest.save(model, path)
    assert_bad(path, problem)
