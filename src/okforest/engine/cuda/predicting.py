"""Predictions on a GPU: the leaves of inputs, means over leaves, and products with weights.

Every result is an array on the device. The arrays of a forest are copied there when they are first
needed, and stay there as long as the forest exists.
"""

import weakref
from typing import Any

import numpy as np
import scipy.sparse as sp

from okforest.engine.cuda.layout import record_of
from okforest.engine.cuda.transfers import readable
from okforest.engine.trees import Trees

PREDICT_SOURCES = ("predict.cu",)
THREADS = 256
MOST_TREES = 2**15  # blocks along the second axis of a grid
MAX_MEMORY_FRACTION = 0.9  # largest array, relative to the free memory of the device
BLOCK_BYTES = 2**28  # of X that is copied at a time, or of what is computed from leaves
LEAF_BYTES = 32  # per leaf of a row: its number, its node, its size, and what they are made from


# The arrays of a forest that leaves are found from, and that means over leaves are computed from.
APPLIED = (
    *("node_offsets", "member_offsets", "subset_offsets", "feature", "left", "threshold"),
    *("missing_left", "subset", "subset_words", "n_categories"),
)
AVERAGED = ("begin", "end", "weight", "members", "times", "row_weight")


def check_fits(device: Any, needed: int, what: str) -> None:
    """Raise a MemoryError if what is about to be copied or computed does not fit on a device."""
    free = device.free_memory()
    if needed > MAX_MEMORY_FRACTION * free:
        raise MemoryError(
            f"{what} takes {needed / 2**30:.1f} GiB; {free / 2**30:.1f} GiB of the GPU's memory "
            "are free. Predict fewer rows at a time, or set device='cpu'."
        )


class Forest:
    """The arrays of trees on a device; each is copied when it is first needed."""

    def __init__(self, device: Any, trees: Trees):
        self.device = device
        self.arrays: dict[str, Any] = {}
        self.n_trees = len(trees)
        self.n_nodes = np.diff(trees.node_offsets)

    def copy(self, trees: Trees, names: tuple[str, ...]) -> None:
        """Copy some arrays that are not there yet."""
        new = {name: getattr(trees, name) for name in names if name not in self.arrays}
        n_bytes = sum(array.nbytes for array in new.values())
        check_fits(self.device, n_bytes, f"A forest of {len(trees)} trees")
        for name, array in new.items():
            plain = array.view(np.int8) if array.dtype == bool else array
            self.arrays[name] = self.device.xp.asarray(np.ascontiguousarray(plain))

    def fill(self, record: Any, first: int = 0, n_trees: int | None = None) -> None:
        """Write the addresses of the arrays to a record, for some of the trees."""
        for name, array in self.arrays.items():
            begin = first if name.endswith("_offsets") else 0
            # An empty array has no address; without times, every member counts once.
            record[name] = self.device.address(array[begin:]) if len(array) else 0
        record["n_trees"] = self.n_trees if n_trees is None else n_trees


_kept: dict[int, Forest] = {}


def forest_of(device: Any, trees: Trees, names: tuple[str, ...]) -> Forest:
    """Return a forest on a device, with some of its arrays."""
    forest = _kept.get(id(trees))
    if forest is None or forest.device is not device:
        forest = _kept[id(trees)] = Forest(device, trees)
        weakref.finalize(trees, _kept.pop, id(trees), None)
    try:
        forest.copy(trees, names)
    except MemoryError:
        for other in [key for key in _kept if key != id(trees)]:
            del _kept[other]
        forest.copy(trees, names)
    return forest


def apply_on(device: Any, trees: Trees, X: Any) -> Any:
    """Return the leaf that each row of X, an array anywhere, reaches in each tree."""
    xp, n_rows, n_trees = device.xp, X.shape[0], len(trees)
    forest = forest_of(device, trees, APPLIED)
    check_fits(device, 4 * n_rows * n_trees, f"The leaves of {n_rows:,} rows in {n_trees} trees")
    leaves = xp.empty((n_rows, n_trees), dtype=np.int32)
    size = max(1, BLOCK_BYTES // max(1, X.shape[1] * X.dtype.itemsize))
    for start in range(0, n_rows, size):
        rows = slice(start, min(start + size, n_rows))
        block = xp.asarray(readable(X[rows]))
        record = np.zeros(1, dtype=record_of("Walk"))
        forest.fill(record["forest"])
        record["X"], record["leaves"] = device.address(block), device.address(leaves[rows])
        record["n_rows"], record["n_columns"] = block.shape
        kernels = device.kernels({"INPUT_BYTES": block.dtype.itemsize}, {}, PREDICT_SOURCES)
        grid = (-(-len(block) // THREADS), min(n_trees, MOST_TREES))
        kernels.launch("follow_trees", grid, THREADS, record)
    return leaves


def leaf_means_on(device: Any, trees: Trees, leaves: Any, values: Any) -> Any:
    """Return the means of values, on the device, over the leaves of each row and its trees."""
    forest = forest_of(device, trees, (*APPLIED[:2], *AVERAGED))
    (n, n_trees), width = leaves.shape, values.shape[1]
    size = max(1, BLOCK_BYTES // (LEAF_BYTES * n_trees + 24 * width))
    check_fits(device, 8 * n * width + BLOCK_BYTES, f"The means of {n:,} rows over leaves")
    means = device.xp.zeros((n, width))
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        _add_means(forest, leaves[rows], values, means[rows], len(trees.members))
    return means


def _add_means(forest: Forest, leaves: Any, values: Any, means: Any, n_members: int) -> None:
    """Add to each row the mean of values over its leaves."""
    xp, n = forest.device.xp, len(means)
    leaves = xp.ascontiguousarray(xp.asarray(leaves))
    offsets = forest.arrays["node_offsets"]
    nodes = leaves + offsets[:-1]
    if bool((leaves < -1).any() | (nodes >= offsets[1:]).any()):
        raise ValueError("leaves contains a node that its tree does not have")
    sizes = forest.arrays["end"][nodes] - forest.arrays["begin"][nodes]
    n_added = int(xp.where(leaves >= 0, sizes, 0).sum(dtype=np.int64))
    del nodes, sizes
    if n_added <= 2 * n_members:
        _average(forest, leaves, values, means)
        return
    # Every leaf once: rows share large leaves.
    share = 1.0 / xp.maximum((leaves >= 0).sum(axis=1), 1)
    for t in range(forest.n_trees):
        reached, number = xp.unique(leaves[:, t], return_inverse=True)
        leaf_means = xp.zeros((len(reached), means.shape[1]))
        _average(forest, xp.ascontiguousarray(reached[:, None]), values, leaf_means, t)
        means += share[:, None] * leaf_means[number.reshape(n)]


def _average(forest: Forest, leaves: Any, values: Any, means: Any, first: int = 0) -> None:
    """Compute means over leaves of the trees from ``first`` on, one column of leaves for each."""
    device, (n, width) = forest.device, means.shape
    if n == 0 or width == 0:
        return
    record = np.zeros(1, dtype=record_of("Means"))
    forest.fill(record["forest"], first, leaves.shape[1])
    record["leaves"], record["values"] = device.address(leaves), device.address(values)
    record["means"] = device.address(means)
    record["n_rows"], record["n_columns"] = n, width
    _launch(device, "average_leaves", record, n, width)


class SparseMatrix:
    """A sparse matrix on a device, in compressed rows.

    Parameters
    ----------
    device : object
        Where it is copied to.
    matrix : csr_array
        The matrix, of float64.
    """

    def __init__(self, device: Any, matrix: sp.csr_array):
        check_fits(device, 12 * matrix.nnz, f"A matrix of {matrix.nnz:,} weights")
        xp = device.xp
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        self.device, self.shape = device, matrix.shape
        self.data = xp.asarray(matrix.data.astype(np.float64, copy=False))
        self.indices = xp.asarray(matrix.indices.astype(np.int32, copy=False))
        self.offsets = matrix.indptr.astype(np.int64)

    def multiply(self, values: Any, rows: slice) -> Any:
        """Return the product of some rows with an array on the device."""
        xp = self.device.xp
        values = xp.ascontiguousarray(values)
        offsets = xp.asarray(self.offsets[rows.start : rows.stop + 1])
        n, width = len(offsets) - 1, values.shape[1]
        product = xp.empty((n, width))
        record = np.zeros(1, dtype=record_of("SparseProduct"))
        for name, array in {"offsets": offsets, "values": values, "product": product}.items():
            record[name] = self.device.address(array)
        for name in ("data", "indices"):
            array = getattr(self, name)
            record[name] = self.device.address(array) if len(array) else 0
        record["n_rows"], record["n_columns"] = n, width
        _launch(self.device, "multiply_rows", record, n, width)
        return product

    def dense(self, rows: slice) -> Any:
        """Return some rows as a dense array."""
        xp = self.device.xp
        offsets = self.offsets[rows.start : rows.stop + 1]
        block = xp.zeros((len(offsets) - 1, self.shape[1]))
        row = xp.asarray(np.repeat(np.arange(len(block)), np.diff(offsets)))
        entries = slice(int(offsets[0]), int(offsets[-1]))
        block[row, self.indices[entries]] = self.data[entries]
        return block


def _launch(device: Any, name: str, record: Any, n_rows: int, width: int) -> None:
    """Launch a kernel with a block for every row and some of the columns."""
    threads = min(THREADS, -(-width // 32) * 32)
    kernels = device.kernels({"INPUT_BYTES": 8}, {}, PREDICT_SOURCES)
    kernels.launch(name, (n_rows, -(-width // threads)), threads, record)
