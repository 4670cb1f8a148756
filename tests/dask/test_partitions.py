"""Blocks of collections within tasks, which hold no more than their own rows, and rows of them."""

import pickle

import cloudpickle
import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp

from clusters import assert_same_trees, make_data
from okforest import OKExtraTrees, OKRandomForest
from okforest.dask import fit_remote, predict
from okforest.dask.partitions import BlockTask, PartitionedRows, blocks_of, with_blocks
from okforest.kernels import Linear

X, Y = make_data(400)


def sent(values, p):
    """Return a block as a worker receives it, and the number of bytes that were sent."""
    message = cloudpickle.dumps(BlockTask(np.array, [blocks_of(values, "X")[p]]))
    return pickle.loads(message)(), len(message)


def test_arrays_are_sent_block_by_block(tmp_path):
    """A task holds its own rows of a memory-mapped file, whatever is done with them."""
    np.save(tmp_path / "X.npy", np.random.default_rng(0).normal(size=(2000, 100)))
    whole = np.load(tmp_path / "X.npy", mmap_mode="r")
    for view in (whole, whole[5:], whole[::-2, 3:90], whole[:, 7]):
        values = da.from_array(view, chunks=(100, 40)[: view.ndim])
        for lazy in (values, values * 2 + 1, values[values.shape[0] // 2 :]):
            block, n_bytes = sent(lazy, 1)
            assert np.array_equal(block, lazy.blocks[1].compute())
            assert n_bytes < block.nbytes + 20_000


def test_sparse_matrices_are_sent_block_by_block():
    """A task holds its own rows of a sparse matrix, too."""
    whole = sp.random_array((2000, 100), density=0.5, format="csr", rng=0)
    message = cloudpickle.dumps(
        BlockTask(abs, [blocks_of(da.from_array(whole, chunks=(100, 100)), "X")[1]])
    )
    assert abs(pickle.loads(message)() - abs(whole[100:200])).max() == 0
    assert len(message) < whole.data.nbytes / 10


def test_functions_of_users_are_not_called_here():
    """They run on workers, even if their arguments are in this process."""

    def fail(values):
        raise AssertionError

    values = da.from_delayed(dask.delayed(fail)(np.ones((3, 2))), (3, 2), dtype=float)
    blocks_of(values, "X")
    blocks_of(da.from_array(X, chunks=90).map_blocks(fail, meta=X[:0]), "X")


def test_names_of_tasks():
    """Dashboards show what a task does."""
    block = with_blocks(np.array, [blocks_of(da.from_array(X, chunks=90), "X")[0]])
    assert block.key.startswith("array-")


def test_fit_and_predict_from_a_file(client, tmp_path):
    """The forest is the local one."""
    np.save(tmp_path / "X.npy", X)
    x = da.from_array(np.load(tmp_path / "X.npy", mmap_mode="r"), chunks=(100, -1))
    y = da.from_array(Y, chunks=(100, -1))
    model = OKRandomForest(3, max_samples=100, random_state=0)
    forest = fit_remote(model, x, y, partitioned=True)
    model.fit(X, Y)
    assert_same_trees(forest.to_local(), model, but=("variance",))
    assert np.allclose(forest.predict(x).compute(), model.predict(X))
    local = OKExtraTrees(3, random_state=0).fit(X, Y)
    assert np.array_equal(predict(local, x).compute(), local.predict(X))


def test_outputs_of_some_rows(threads):
    """They come in the order of the rows asked for, which may be random, or repeat."""
    n_rows = np.array([50, 0, 350])
    blocks = [dask.delayed(part) for part in np.split(Y, np.cumsum(n_rows)[:-1])]
    rows = np.array([119, 3, 50, 49, 3])
    found = PartitionedRows(blocks, blocks, n_rows).outputs_at(threads, Linear(), rows)
    assert np.array_equal(found, Y[rows])
