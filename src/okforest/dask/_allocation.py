"""The memory allocator of a worker while trees grow.

Dask starts workers with ``MALLOC_TRIM_THRESHOLD_=65536``, so that the C library returns freed
memory to the system at once. Growing and packing trees frees and allocates the same memory over and
over; page faults then take a fifth of the time. While trees grow, the allocator keeps what is
freed; for a moment after, too, if the worker has several such tasks, one after the other.

Every thread has an arena of memory, which passes to the next thread once it has ended. Trees grow
in a new thread each time: a thread that waits between two tasks would take the arena, with the
freed memory in it. So the event loop waits.
"""

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from okforest.dask._cluster import require

# Parameters of mallopt in glibc's malloc.h, and the default of the second.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
DEFAULT_MMAP = 128 * 1024
KEPT = 2**28  # bytes of freed memory that are kept
LARGE = 2**25  # bytes from which an allocation has pages of its own; the most that glibc allows


class Allocator:
    """The C library's allocator, which threads of this process share, and how Dask set it."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._lock = threading.Lock()
        self._n_tasks = 0
        self._is_keeping = False

    @contextmanager
    def keeping_freed_memory(self, seconds: float = 0.0) -> Iterator[None]:
        """Keep freed memory for later allocations, until some seconds after the end of the task."""
        usual = os.environ.get("MALLOC_TRIM_THRESHOLD_", "")
        if not usual.isdigit() or not hasattr(self._library, "mallopt"):  # not set, or not glibc
            yield
            return
        self._begin()
        try:
            yield
        finally:
            self._end(int(usual), seconds)

    def _begin(self) -> None:
        with self._lock:
            self._n_tasks += 1
            if not self._is_keeping:
                self._library.mallopt(TRIM_THRESHOLD, KEPT)
                self._library.mallopt(MMAP_THRESHOLD, LARGE)
                self._is_keeping = True

    def _end(self, usual: int, seconds: float) -> None:
        with self._lock:
            self._n_tasks -= 1
        if seconds == 0.0:
            self._return(usual)
        else:
            loop = require("distributed").get_worker().loop
            loop.add_callback(loop.call_later, seconds, self._return, usual)

    def _return(self, usual: int) -> None:
        """Set the allocator as Dask does, unless trees are growing again."""
        with self._lock:
            if self._n_tasks == 0 and self._is_keeping:
                self._library.mallopt(TRIM_THRESHOLD, usual)
                self._library.mallopt(MMAP_THRESHOLD, DEFAULT_MMAP)
                self._library.malloc_trim(0)
                self._is_keeping = False


allocator = Allocator(ctypes.CDLL(None))
