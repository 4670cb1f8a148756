"""How much memory and how many threads a call may use."""

import os
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import joblib
import numpy as np

from okforest._utils.arrays import Floats, namespace, on_gpu

MAX_MEMORY_FRACTION = 0.5  # largest single array, relative to RAM
ESTIMATED = 2**30  # bytes from which the size of a matrix of weights is estimated ...
SAMPLE = 16  # ... from this number of rows
BLOCK_BYTES = 2**18  # rows that are processed together fit in the cache of a core
BLOCK_BYTES_ON_GPU = 2**28


def machine_memory() -> int:
    """Return the memory of the machine in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_memory(needed: int, what: str, advice: str) -> None:
    """Raise a MemoryError with advice if an array would take more than half of the memory."""
    memory = machine_memory()
    if needed > MAX_MEMORY_FRACTION * memory:
        raise MemoryError(
            f"{what} takes {needed / 2**30:.1f} GiB, more than half of the "
            f"{memory / 2**30:.1f} GiB of this machine. {advice}"
        )


def fitting_threads(n_threads: int, needed: int, kept: int, what: str, advice: str) -> int:
    """Return how many threads, at most n_threads, fit in half of the memory beside what is kept.

    Raise a MemoryError with advice if what a single one needs is more than half of the memory.
    """
    check_memory(needed, what, advice)
    room = int(MAX_MEMORY_FRACTION * machine_memory()) - kept
    return min(n_threads, max(1, room // max(1, needed)))


def empty_lines(shape: tuple[int, ...]) -> Floats:
    """Return an array that begins with a cache line: SIMD loads of its rows then read one each."""
    n, per_line = int(np.prod(shape)), 8
    buffer = np.empty(n + per_line - 1)
    first = -(buffer.ctypes.data // buffer.itemsize) % per_line
    return buffer[first : first + n].reshape(shape)


def row_blocks(array: Any) -> Iterator[slice]:
    """Return slices of the rows of an array, so small that several passes over one are cheap."""
    size = BLOCK_BYTES_ON_GPU if on_gpu(array) else BLOCK_BYTES
    n = len(array)
    height = max(1, size * n // max(1, array.nbytes))
    return (slice(i, min(i + height, n)) for i in range(0, n, height))


def blocks_with_sums(K: Floats, a: Floats, b: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Yield blocks of rows of a matrix, each with the sums a_i + b_j of its entries."""
    xp = namespace(K)
    # As a product of matrices: faster than broadcasting, and rounded only once.
    left, right = xp.ones((len(a), 2)), xp.ones((2, len(b)))
    left[:, 0], right[1] = a, b
    for rows in row_blocks(K):
        yield K[rows], left[rows] @ right


def csr_bytes(W: Any) -> int:
    """Estimate the size of a sparse matrix of weights from some of its rows."""
    n = W.shape[0]
    if n <= SAMPLE or 12 * W.max_entries < ESTIMATED:
        return 12 * int(W.max_entries)
    rows = [slice(i, i + 1) for i in np.linspace(0, n - 1, SAMPLE).astype(int)]
    return round(12 * n * np.mean([W[row].tocsr().nnz for row in rows]))


MAX_THREADS = 1024
LARGE_PRODUCT = 2**22  # entries from which a product of matrices may take long


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads for a value of ``n_jobs``.

    As in scikit-learn, ``None`` means one, or the value of an enclosing
    :class:`joblib.parallel_config`; -1 means all cores, -2 all but one and so on, but at least one
    thread. The environment variable ``OKFOREST_NUM_THREADS``, or if it is not set
    ``OMP_NUM_THREADS``, is an upper limit: joblib and Dask set the latter in worker processes to
    avoid oversubscription.
    """
    if n_jobs is None:
        n_threads = int(joblib.effective_n_jobs(None))
    elif n_jobs == 0:
        raise ValueError("n_jobs=0 is not valid; use a number of threads, or -1 for all cores.")
    else:
        n_threads = n_jobs if n_jobs > 0 else max(1, joblib.cpu_count() + 1 + n_jobs)
    n_threads = min(n_threads, MAX_THREADS)
    for name in ("OKFOREST_NUM_THREADS", "OMP_NUM_THREADS"):
        limit = os.environ.get(name, "").strip()
        if limit.isdecimal() and int(limit) > 0:
            return min(n_threads, int(limit))
        if limit and name == "OKFOREST_NUM_THREADS":  # the other has lists, such as "4,2"
            raise ValueError(
                f"the environment variable {name} is {limit!r}; set it to a positive number of "
                "threads, or unset it."
            )
    return n_threads


def interruptible(call: Callable[[], Any]) -> Any:
    """Call a compiled function in a thread of its own, so that Ctrl-C is heard at once.

    The function must release the GIL, as functions of NumPy do. After Ctrl-C the thread ends when
    the function returns; its result is dropped.
    """
    results: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=run, daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the system has no thread left
        return call()
    while thread.is_alive():
        thread.join(0.05)
    if errors:
        raise errors[0]
    return results[0]


def gram_product(a: Floats, b: Floats) -> Floats:
    """Return a @ b.T; Ctrl-C is heard during a long product."""
    if on_gpu(a) or len(a) * len(b) < LARGE_PRODUCT:
        return a @ b.T
    product: Floats = interruptible(lambda: a @ b.T)
    return product
