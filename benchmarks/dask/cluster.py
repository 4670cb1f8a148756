"""Clusters of processes on this machine, and what their workers cost."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import numpy as np
from distributed import Client, LocalCluster


@contextmanager
def workers(n_workers: int, memory_limit: int | None = None) -> Iterator[Client]:
    """Start worker processes with one thread each; they have imported okforest.

    They keep freed memory, as docs/dask.md advises.
    """
    environ = "distributed.nanny.pre-spawn-environ"
    kept = {f"{environ}.MALLOC_TRIM_THRESHOLD_": 2**28, f"{environ}.MALLOC_MMAP_THRESHOLD_": 2**25}
    with (
        dask.config.set(kept),
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            memory_limit=memory_limit,
            dashboard_address=":0",
        ) as cluster,
        Client(cluster) as client,
    ):
        client.run(_warm_up)
        yield client


def _warm_up() -> None:
    from okforest import OKTree

    OKTree().fit(np.arange(8.0).reshape(4, 2), np.arange(4.0))


def cpu_seconds() -> float:
    """Return the CPU time of this process and its threads."""
    return time.process_time()


def reset_peak() -> None:
    """Forget the peak memory of this process (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")


def memory(field: str) -> int:
    """Return ``VmRSS`` or ``VmHWM``, the peak, of this process in bytes (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}")


def bytes_of(trees: Any) -> int:
    """Return the size of trees."""
    return sum(array.nbytes for array in vars(trees).values())
