"""The memory allocator of a worker while trees grow.

Dask starts workers with ``MALLOC_TRIM_THRESHOLD_=65536``, so that the C library returns freed
memory to the system at once. Growing and packing trees frees and allocates the same memory over and
over; page faults then take a fifth of the time. While trees grow, the allocator keeps what is
freed; for a moment after, too, if the worker has several such tasks, one after the other.
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
_is_keeping = False


@contextmanager
def keeping_freed_memory(seconds: float = 0.0) -> Iterator[None]:
    """Keep freed memory for later allocations, until some seconds after the end."""
    usual = os.environ.get("MALLOC_TRIM_THRESHOLD_", "")
    library = ctypes.CDLL(None)
    if not usual.isdigit() or not hasattr(library, "mallopt"):  # not set, or not glibc
        yield
        return
    _begin(library)
    try:
        yield
    finally:
        _end(library, int(usual), seconds)


def _begin(library: ctypes.CDLL) -> None:
    global _n_growing, _is_keeping
    with _lock:
        _n_growing += 1
        if not _is_keeping:
            library.mallopt(TRIM_THRESHOLD, KEPT)
            library.mallopt(MMAP_THRESHOLD, LARGE)
            _is_keeping = True


def _end(library: ctypes.CDLL, usual: int, seconds: float) -> None:
    global _n_growing
    with _lock:
        _n_growing -= 1
    if seconds == 0.0:
        _return(library, usual)
    else:
        timer = threading.Timer(seconds, _return, (library, usual))
        timer.daemon = True
        timer.start()


def _return(library: ctypes.CDLL, usual: int) -> None:
    """Set the allocator as Dask does, unless trees are growing again."""
    global _is_keeping
    with _lock:
        if _n_growing == 0 and _is_keeping:
            library.mallopt(TRIM_THRESHOLD, usual)
            library.mallopt(MMAP_THRESHOLD, DEFAULT_MMAP)
            library.malloc_trim(0)
            _is_keeping = False
