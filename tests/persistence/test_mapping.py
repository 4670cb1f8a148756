"""Models whose arrays stay in the file."""

import numpy as np
import pytest

import okforest
from okforest import OKTree
from okforest.persistence import FileFormatError

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 4))
Y = rng.normal(size=(40, 2))


@pytest.fixture
def path(tmp_path):
    okforest.save(OKTree(random_state=0).fit(X, Y), tmp_path / "forêt 1")
    return tmp_path / "forêt 1"


def test_mapped_arrays_are_read_only(path):
    """Mapped arrays cannot be written; the others can, and own their memory."""
    mapped, loaded = okforest.load(path, mmap=True), okforest.load(str(path))
    for array in [mapped.outputs_, *vars(mapped.trees_).values()]:
        assert not array.flags.writeable
        assert array.size == 0 or array.ctypes.data % 64 == 0
    assert all(array.flags.owndata for array in [loaded.outputs_, *vars(loaded.trees_).values()])
    with pytest.raises(ValueError, match="read-only"):
        mapped.outputs_[0] = 0.0


def test_saving_over_a_mapped_file(path):
    """A model whose arrays are in a file can be saved to that file, and still works."""
    mapped = okforest.load(path, mmap=True)
    expected = mapped.predict(X)
    okforest.save(mapped, path)
    for same in (mapped, okforest.load(path)):
        np.testing.assert_array_equal(same.predict(X), expected)


def test_checksums(path):
    """They are verified by default in memory, and on request in a mapped file."""
    assert okforest.load(path, mmap=True, verify=True).score(X, Y) == 1.0
    content, at = bytearray(path.read_bytes()), path.read_bytes().index(Y.tobytes())
    content[at : at + 8] = np.float64(7.0).tobytes()
    path.write_bytes(content)
    for options in ({}, {"verify": True}, {"mmap": True, "verify": True}):
        with pytest.raises(FileFormatError, match=r"corrupted: array \d+ differs from its checks"):
            okforest.load(path, **options)
    for options in ({"mmap": True}, {"mmap": True, "verify": False}, {"verify": False}):
        assert okforest.load(path, **options).outputs_[0, 0] == 7.0
