"""The memory allocator of a worker while trees grow.

Dask starts workers with ``MALLOC_TRIM_THRESHOLD_=65536``, so that the C library returns freed
memory to the system at once. Growing trees frees and allocates the same memory over and over; page
faults then take a fifth of the time. While trees grow, the allocator keeps what is freed.
"""

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Parameters of mallopt in glibc's malloc.h, and the default of the second.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
DEFAULT_MMAP = 128 * 1024
KEPT = 2**28  # bytes of freed memory that are kept
LARGE = 2**25  # bytes from which an allocation has pages of its own; the most that glibc allows

_lock = threading.Lock()
_n_growing = 0


@contextmanager
def keeping_freed_memory() -> Iterator[None]:
    """Keep freed memory for later allocations, and return it to the system at the end."""
    usual = os.environ.get("MALLOC_TRIM_THRESHOLD_", "")
    library = ctypes.CDLL(None)
    if not usual.isdigit() or not hasattr(library, "mallopt"):  # not set, or not glibc
        yield
        return
    _count(1, library, int(usual))
    try:
        yield
    finally:
        _count(-1, library, int(usual))


def _count(change: int, library: ctypes.CDLL, usual: int) -> None:
    """Count the threads that grow trees; the first and the last one set the allocator."""
    global _n_growing
    with _lock:
        _n_growing += change
        if change == 1 and _n_growing == 1:
            library.mallopt(TRIM_THRESHOLD, KEPT)
            library.mallopt(MMAP_THRESHOLD, LARGE)
        elif _n_growing == 0:
            library.mallopt(TRIM_THRESHOLD, usual)
            library.mallopt(MMAP_THRESHOLD, DEFAULT_MMAP)
            library.malloc_trim(0)
