"""Dask's sampling of running tasks, which a worker pauses while it grows trees.

For the profile of its dashboard, a worker looks at the stacks of running tasks a hundred times a
second. Growing trees is one call of the compiled core: every sample is the same, and they take CPU
time from the trees.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from okforest.dask._cluster import require

_lock = threading.Lock()
_n_growing: WeakKeyDictionary[Any, int] = WeakKeyDictionary()  # tasks that grow trees, by worker


@contextmanager
def without_sampling() -> Iterator[None]:
    """Pause the sampling of the worker that runs this task; other tasks may pause it, too."""
    worker = require("distributed").get_worker()
    if "profile" not in worker.periodic_callbacks:  # distributed.worker.profile.enabled: false
        yield
        return
    _count(worker, 1)
    try:
        yield
    finally:
        _count(worker, -1)


def _count(worker: Any, change: int) -> None:
    with _lock:
        _n_growing[worker] = _n_growing.get(worker, 0) + change
    worker.loop.add_callback(_pause_or_resume, worker)  # callbacks belong to the event loop


def _pause_or_resume(worker: Any) -> None:
    sampling, status = worker.periodic_callbacks["profile"], require("distributed").Status
    if _n_growing[worker] > 0:
        sampling.stop()
    elif not sampling.is_running() and worker.status in (status.running, status.paused):
        sampling.start()
