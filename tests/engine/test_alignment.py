"""Arrays whose values are not at addresses of their type: as fields of records, or in messages."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from okforest import OKBoost, OKExtraTrees, _core
from okforest._utils.arrays import aligned
from okforest.engine import leaf_means, leaf_weights
from okforest.engine.cpu import cut_subwindows

rng = np.random.default_rng(0)
X, y, WEIGHT = rng.normal(size=(60, 3)), rng.normal(size=(60, 2)), rng.uniform(1, 2, size=60)


def shifted(array):
    """Return a copy that begins one byte after an address of its type."""
    array = np.asarray(array)
    buffer = np.empty(array.nbytes + 1, dtype=np.uint8)
    copy = buffer[1:].view(array.dtype).reshape(array.shape)
    copy[...] = array
    assert not copy.flags.aligned
    return copy


def as_field(array):
    """Return a copy as a field of records of nine bytes."""
    records = np.zeros(array.shape, dtype=[("other", "i1"), ("value", array.dtype)])
    records["value"] = array
    assert not records["value"].flags.aligned
    return records["value"]


def unpickled(model):
    """Return a model whose arrays are read from a message, each one byte after its address."""
    buffers = []
    message = pickle.dumps(model, protocol=5, buffer_callback=buffers.append)
    moved = [memoryview(b"." + bytes(buffer))[1:] for buffer in buffers]
    return pickle.loads(message, buffers=moved)


@pytest.mark.parametrize("place", [shifted, as_field])
@pytest.mark.parametrize("model", [OKExtraTrees(5, random_state=0), OKBoost(5, random_state=0)])
def test_models(model, place):
    """Models fit and predict misaligned arrays as others."""
    expected = model.fit(X, y, sample_weight=WEIGHT).predict(X)
    model.fit(place(X), place(y), sample_weight=place(WEIGHT))
    np.testing.assert_array_equal(model.predict(place(X)), expected)


def test_sparse_inputs():
    """So do sparse matrices."""
    matrix = sp.csr_array(X * (X > 0))
    expected = OKExtraTrees(5, random_state=0).fit(matrix, y).predict(matrix)
    parts = [shifted(part) for part in (matrix.data, matrix.indices, matrix.indptr)]
    moved = sp.csr_array(tuple(parts), shape=matrix.shape)
    found = OKExtraTrees(5, random_state=0).fit(moved, y).predict(moved)
    np.testing.assert_array_equal(found, expected)


def test_unpickled_forest():
    """Trees that are read from a message are aligned once, and predict as before."""
    model = OKExtraTrees(5, random_state=0).fit(X, y, sample_weight=WEIGHT)
    copy = unpickled(model)
    assert all(array.flags.aligned for array in vars(copy.trees_).values())
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    leaves, trees = model.apply(X), model.trees_
    found = leaf_means(trees, shifted(leaves), shifted(y))
    np.testing.assert_array_equal(found, leaf_means(trees, leaves, y))
    assert (leaf_weights(trees, shifted(leaves)) != leaf_weights(trees, leaves)).nnz == 0


def test_images():
    """Images of float32 may be misaligned."""
    images = [*rng.random((2, 20, 20, 1), dtype=np.float32)]
    first_two = np.array([0, 1], dtype=np.int32)
    squares = np.array([[0, 0, 20], [3, 4, 9]], dtype=np.int32)
    none = np.zeros(0, dtype=np.float32), np.zeros(0, dtype=bool)
    expected = cut_subwindows(images, first_two, squares, *none, size=8)
    found = cut_subwindows([*map(shifted, images)], first_two, squares, *none, size=8)
    np.testing.assert_array_equal(found, expected)


def test_the_core_refuses():
    """The core itself reads no misaligned array."""
    trees = dict(vars(OKExtraTrees(2, random_state=0).fit(X, y).trees_))
    trees["threshold"] = shifted(trees["threshold"])
    with pytest.raises(ValueError, match="an array is not aligned; pass"):
        _core.apply(X, trees, 1)
    with pytest.raises(ValueError, match="an array is not aligned; pass"):
        _core.apply(shifted(X), vars(OKExtraTrees(2).fit(X, y).trees_), 1)


def test_aligned_arrays_are_not_copied():
    """Only misaligned arrays are copied."""
    assert aligned(X) is X
    assert aligned(X[::2, ::-1]).base is X
