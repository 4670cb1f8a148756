"""How much memory a computation may take."""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from okforest._namespace import namespace, on_gpu
from okforest._typing import Floats

SHARE = 0.5  # of the machine's memory that one array may take
ESTIMATED = 2**30  # bytes from which the size of a matrix of weights is estimated ...
SAMPLE = 16  # ... from this number of rows
BLOCK_BYTES = 2**18  # of rows that are processed together, and stay in the cache of a core
BLOCK_BYTES_THERE = 2**28  # on a GPU


def machine_memory() -> int:
    """Return the memory of the machine in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_memory(needed: int, what: str, advice: str) -> None:
    """Raise a MemoryError with advice if an array would take more than half of the memory."""
    memory = machine_memory()
    if needed > SHARE * memory:
        raise MemoryError(
            f"{what} takes {needed / 2**30:.1f} GiB, more than half of the "
            f"{memory / 2**30:.1f} GiB of this machine. {advice}"
        )


def fitting_threads(n_threads: int, needed: int, kept: int, what: str, advice: str) -> int:
    """Return how many threads, at most n_threads, fit in half of the memory beside what is kept.

    Raise a MemoryError with advice if what a single one needs is more than half of the memory.
    """
    check_memory(needed, what, advice)
    room = int(SHARE * machine_memory()) - kept
    return min(n_threads, max(1, room // max(1, needed)))


def empty_lines(shape: tuple[int, ...]) -> Floats:
    """Return an array that begins with a cache line: SIMD loads of its rows then read one each."""
    n, per_line = int(np.prod(shape)), 8
    buffer = np.empty(n + per_line - 1)
    first = -(buffer.ctypes.data // buffer.itemsize) % per_line
    return buffer[first : first + n].reshape(shape)


def row_blocks(array: Any) -> Iterator[slice]:
    """Return slices of the rows of an array, so small that several passes over one are cheap."""
    size = BLOCK_BYTES_THERE if on_gpu(array) else BLOCK_BYTES
    n = len(array)
    height = max(1, size * n // max(1, array.nbytes))
    return (slice(i, min(i + height, n)) for i in range(0, n, height))


def blocks_with_sums(K: Floats, a: Floats, b: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Yield blocks of rows of a matrix, each with the sums a_i + b_j of its entries."""
    xp = namespace(K)
    # As a product of matrices: faster than broadcasting, and rounded only once.
    left, right = xp.stack([a, xp.ones(len(a))], axis=1), xp.stack([xp.ones(len(b)), b])
    for rows in row_blocks(K):
        yield K[rows], left[rows] @ right


def csr_bytes(W: Any) -> int:
    """Estimate the size of a sparse matrix of weights from some of its rows."""
    n = W.shape[0]
    if n <= SAMPLE or 12 * W.max_entries < ESTIMATED:
        return 12 * int(W.max_entries)
    rows = [slice(i, i + 1) for i in np.linspace(0, n - 1, SAMPLE).astype(int)]
    return round(12 * n * np.mean([W[row].tocsr().nnz for row in rows]))
