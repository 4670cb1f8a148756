"""Trees packed for transport, and the allocator of workers."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from clusters import make_data
from okforest import OKExtraTrees, OKRandomForest
from okforest.dask._allocation import Allocator
from okforest.dask._transport import SentPlan, _smaller, pack, unpack
from okforest.engine import Trees, grow

X, Y = make_data(500)
CATEGORIES = np.c_[X, np.arange(len(X)) % 70]
WEIGHT = np.random.default_rng(0).uniform(size=len(X))
FORESTS = {
    "plain": OKExtraTrees(3).fit(X, Y),
    "weights": OKExtraTrees(3).fit(X, Y, WEIGHT),
    "bootstrap": OKRandomForest(3).fit(X, Y),
    "categories": OKExtraTrees(3, categorical_features=[6]).fit(CATEGORIES, Y),
    "roots alone": OKExtraTrees(3, min_samples_leaf=400).fit(X, Y),
}


@pytest.mark.parametrize("forest", FORESTS.values(), ids=FORESTS)
def test_nothing_is_lost(forest):
    """Types and bits of all arrays are the same."""
    found = unpack([pack(forest.trees_[t]) for t in range(3)])
    for name, array in vars(forest.trees_).items():
        again = getattr(found, name)
        assert again.dtype == array.dtype, name
        assert again.tobytes() == array.tobytes(), name


@pytest.mark.parametrize("inputs", [X, sp.csr_array(np.nan_to_num(X))], ids=["dense", "sparse"])
def test_received_arrays_are_aligned(inputs):
    """Buffers of a message begin anywhere; the arrays of a received plan do not."""
    plan = OKExtraTrees(3, random_state=0)._plan(inputs, Y, None).growth
    buffers = []
    data = pickle.dumps(SentPlan.of(plan), protocol=5, buffer_callback=buffers.append)
    shifted = []
    for buffer in buffers:
        raw = np.zeros(len(buffer.raw()) + 3, dtype=np.uint8)
        raw[3:] = np.frombuffer(buffer.raw(), dtype=np.uint8)
        shifted.append(raw[3:])
    found = pickle.loads(data, buffers=shifted)
    assert len(buffers) > 2
    assert found.outputs.flags.aligned
    assert getattr(found.X, "data" if sp.issparse(inputs) else "T").flags.aligned
    grown, expected = (grow(some, range(3)) for some in (found, plan))
    assert np.array_equal(grown.threshold, expected.threshold)


def test_fewer_bytes():
    """Trees of numeric features take less than half of their bytes."""
    trees = FORESTS["plain"].trees_
    assert isinstance(trees, Trees)
    n_bytes = sum(array.nbytes for array in vars(trees).values())
    assert sum(array.nbytes for array in pack(trees).arrays.values()) < n_bytes / 2


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([0, 255]), np.uint8),
        (np.array([-1, 300]), np.int16),
        (np.array([0, 60_000], dtype=np.int32), np.uint16),
        (np.array([0, 2**40]), np.int64),
        (np.array([1.0, 3.0]), np.uint8),
        (np.array([1.0, 3.5]), np.float64),
        (np.array([0.0, -0.0]), np.float64),
        (np.array([1.0, 1e300]), np.float64),
        (np.array([1.0, np.nan]), np.float64),
        (np.array([], dtype=int), np.int64),
    ],
)
def test_smallest_types(values, expected):
    """Whole numbers take as few bytes as they need; other values are not touched."""
    found = _smaller(values)
    assert found.dtype == expected
    assert found.astype(values.dtype).tobytes() == values.tobytes()


def test_allocator(monkeypatch):
    """The allocator is set by the first task and restored after the last one, if Dask set it."""
    calls = []

    class Library:
        def mallopt(self, parameter, value):
            calls.append((parameter, value))

        def malloc_trim(self, padding):
            calls.append("trim")

    class Loop:
        def add_callback(self, function, *arguments):  # the only one that tasks may call
            function(*arguments)

        def call_later(self, seconds, function, *arguments):
            assert seconds == 1.0
            later.append(lambda: function(*arguments))

    later = []
    allocator = Allocator(Library())
    monkeypatch.setattr("distributed.get_worker", lambda: SimpleNamespace(loop=Loop()))
    monkeypatch.setattr("threading.Thread.start", None)  # it would take the arena of the next trees
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    with allocator.keeping_freed_memory():
        assert not calls
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    with allocator.keeping_freed_memory(1.0):
        with allocator.keeping_freed_memory():
            assert calls == [(-1, 2**28), (-3, 2**25)]
        assert len(calls) == 2
    with allocator.keeping_freed_memory(1.0):  # the next task begins within the second
        later[0]()
    assert len(calls) == 2
    later[1]()
    later[0]()
    restored = [(-1, 65536), (-3, 2**17), "trim"]
    assert calls[2:] == restored
    with allocator.keeping_freed_memory():
        pass
    assert calls[7:] == restored
    assert len(later) == 2
