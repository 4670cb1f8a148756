"""Predictions by the kernels of the GPU are the same as on the CPU.

The kernels run on the host, compiled with an emulated device, and on a GPU if there is one.
"""

import gc
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import cuda_host
from okforest import OKExtraTrees, OKRandomForest
from okforest.engine import apply, cuda, devices, leaf_means
from okforest.engine.cuda import predicting
from okforest.engine.cuda.transfers import readable


def data(n=120, p=5, q=7, *, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, (n, p)) if dtype == np.uint8 else rng.normal(size=(n, p))
    y = rng.normal(size=(n, q)) + X[:, :1]
    return X.astype(dtype), y


FORESTS = {
    "full": OKExtraTrees(4, random_state=0),
    "large_leaves": OKExtraTrees(4, min_samples_leaf=20, random_state=0),
    "bootstrap": OKRandomForest(4, random_state=0),
    "one_tree": OKExtraTrees(1, random_state=0),
    "stumps": OKExtraTrees(3, max_depth=1, random_state=0),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
@pytest.mark.parametrize("name", FORESTS)
def test_leaves_are_those_of_the_cpu(device, name, dtype):
    """Leaves are equal, for inputs of every type."""
    X, y = data(dtype=dtype)
    trees = FORESTS[name].fit(X, y).trees_
    new = data(300, seed=1, dtype=dtype)[0]
    expected = apply(trees, new)
    assert_array_equal(device.to_host(cuda.apply_on(device, trees, new)), expected)
    on_device = device.xp.asarray(new)
    found = apply(trees, on_device)
    assert type(found) is type(on_device)
    assert_array_equal(device.to_host(found), expected)
    assert_array_equal(apply(trees, np.asfortranarray(new), device="cuda"), expected)


def test_missing_values_and_categories(device):
    """Missing values go the way that was learnt, and so do known and unknown categories."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), rng.integers(0, 100, 200)]).astype(float)
    X[rng.random(200) < 0.2, 0] = np.nan
    y = np.column_stack([np.isnan(X[:, 0]), X[:, 1] % 3])
    forest = OKRandomForest(
        5, categorical_features=[1], categorical_encoding="subsets", random_state=0
    ).fit(X[:150], y[:150])
    codes = X.copy()
    codes[:, 1] = rng.integers(-1, 120, 200)
    codes[::7, 1] = np.nan
    trees = forest.trees_
    assert (trees.subset >= 0).any()
    assert_array_equal(device.to_host(cuda.apply_on(device, trees, codes)), apply(trees, codes))


@pytest.mark.parametrize("name", FORESTS)
@pytest.mark.parametrize("q", [1, 7, 40])
def test_means_are_those_of_the_cpu(device, name, q):
    """Means over leaves agree up to rounding; trees may be left out of a row."""
    X, y = data(q=q)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 3.0], len(X))
    trees = FORESTS[name].fit(X, y, weight).trees_
    leaves = apply(trees, data(250, seed=1)[0])
    leaves[np.random.default_rng(0).random(leaves.shape) < 0.2] = -1
    used = (leaves >= 0).any(axis=1)
    found = cuda.leaf_means_on(device, trees, leaves, device.xp.asarray(y))
    expected = leaf_means(trees, leaves, y)
    assert_allclose(device.to_host(found)[used], expected[used], rtol=1e-12, atol=1e-14)
    assert_array_equal(device.to_host(found)[~used], 0.0)


def test_leaves_are_checked(device):
    """A node that a tree does not have is an error, not a read of other memory."""
    X, y = data()
    trees = FORESTS["full"].fit(X, y).trees_
    for wrong in (-2, 10_000):
        leaves = apply(trees, X)
        leaves[3, 1] = wrong
        with pytest.raises(ValueError, match="a node that its tree does not have"):
            cuda.leaf_means_on(device, trees, leaves, device.xp.asarray(y))


def test_blocks_of_rows(device, monkeypatch):
    """Rows are taken in parts, with the same result."""
    X, y = data(400)
    trees = FORESTS["full"].fit(X, y).trees_
    leaves = device.to_host(cuda.apply_on(device, trees, X))
    values = device.xp.asarray(y)
    means = device.to_host(cuda.leaf_means_on(device, trees, leaves, values))
    monkeypatch.setattr(predicting, "BLOCK_BYTES", 4000)
    assert_array_equal(device.to_host(cuda.apply_on(device, trees, X)), leaves)
    again = device.to_host(cuda.leaf_means_on(device, trees, leaves, values))
    assert_allclose(again, means, rtol=1e-12, atol=1e-14)


def test_sparse_products(device):
    """Products of rows of a sparse matrix equal SciPy's; entries may be repeated."""
    rng = np.random.default_rng(0)
    matrix = sp.random_array((30, 50), density=0.1, random_state=rng, format="csr")
    indices = np.concatenate([matrix.indices, [3, 3]])
    indptr = np.append(matrix.indptr, matrix.nnz + 2)
    matrix = sp.csr_array((np.append(matrix.data, [1.0, 2.0]), indices, indptr), shape=(31, 50))
    sparse = cuda.SparseMatrix(device, matrix)
    for q in (1, 5, 300):
        values = rng.normal(size=(50, q))
        found = sparse.multiply(device.xp.asarray(values), slice(4, 31))
        assert_allclose(device.to_host(found), matrix[4:] @ values, rtol=1e-12, atol=1e-14)
    assert_array_equal(device.to_host(sparse.dense(slice(5, 31))), matrix.toarray()[5:])


def test_copies_end_with_the_forest(device):
    """The arrays of a forest stay on the device as long as the forest exists."""
    X, y = data()
    before = set(predicting._kept)
    trees = FORESTS["full"].fit(X, y).trees_
    cuda.apply_on(device, trees, X)
    copies = predicting._kept[id(trees)]
    cuda.apply_on(device, trees, X)
    assert predicting._kept[id(trees)] is copies
    FORESTS["full"].fit(X, y)
    del trees
    gc.collect()
    assert set(predicting._kept) <= before


def test_not_enough_memory(monkeypatch):
    """The error has what is needed and what is free; device="auto" takes the CPU."""
    X, y = data()
    small = cuda_host.ArrayDevice(memory=1000)
    monkeypatch.setitem(sys.modules, "cupy", small.xp)
    monkeypatch.setattr(devices, "gpu", lambda: small)
    trees = FORESTS["full"].fit(X, y).trees_
    with pytest.raises(MemoryError, match=r"A forest of 4 trees takes .* GiB of the GPU's memory"):
        apply(trees, X, device="cuda")
    assert_array_equal(apply(trees, X, device="auto"), apply(trees, X))


def test_subnormal_inputs(device):
    """Inputs that a GPU would take for zero are read in float64; others are not copied."""
    X = np.array([[-1e-40], [0.0], [1e-45], [1e-40], [1.0]], dtype=np.float32)
    trees = OKRandomForest(20, random_state=0).fit(X, np.arange(5.0)).trees_
    assert readable(X).dtype == np.float64
    assert readable(X[[1, 4]]).dtype == np.float32
    expected = apply(trees, X)
    assert len(np.unique(expected, axis=0)) == 5
    assert_array_equal(device.to_host(cuda.apply_on(device, trees, X)), expected)
    on_device = device.xp.asarray(X)
    assert_array_equal(device.to_host(cuda.apply_on(device, trees, on_device)), expected)
