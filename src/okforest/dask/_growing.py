"""Growing trees on a cluster: every worker has the data, and grows ranges of trees."""

from math import ceil
from typing import Any

import numpy as np

from okforest._utils.arrays import Progress
from okforest.dask._allocation import allocator
from okforest.dask._cluster import (
    WorkerLimits,
    cancelling,
    completed,
    log,
    size_text,
    stop_if_cancelled,
    with_replicated,
)
from okforest.dask._sampling import without_sampling
from okforest.dask._transport import PackedTrees, SentPlan, pack, unpack
from okforest.engine import GrowthPlan, Trees
from okforest.engine import grow as grow_here

# A thread takes its trees in this number of ranges, so that threads end at about the same time and
# a worker that dies costs little.
RANGES = 6
# A range repeats what the engine prepares for all its trees: it has at least this number of them.
LEAST_TREES = 4
# Seconds that a worker keeps freed memory after a task, for the next one.
MOMENT = 1.0

ADVICE = (
    "Give workers more memory, or keep the rows in partitions of which trees draw samples, with "
    "okforest.dask.fit_remote(..., partitioned=True)."
)


def tree_ranges(trees: range, n_threads: int) -> list[range]:
    """Divide trees into the ranges that tasks grow."""
    size = max(LEAST_TREES, ceil(len(trees) / (RANGES * n_threads)))
    size = min(size, max(1, ceil(len(trees) / n_threads)))
    return [trees[i : i + size] for i in range(0, len(trees), size)]


def grow(
    plan: GrowthPlan,
    trees: range,
    *,
    client: Any,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> Trees:
    """Grow trees on the workers of a cluster, as :func:`okforest.engine.grow` does here.

    ``n_threads`` is not used: every thread of every worker grows trees.
    """
    limits = check_plan(client, plan)
    ranges = tree_ranges(trees, limits.n_threads)
    parts: dict[range, PackedTrees] = {}

    def grow_missing(data: Any) -> None:
        _grow_missing(client, data, ranges, parts, progress)

    with_replicated(client, SentPlan.of(plan), grow_missing)
    return unpack([parts[some] for some in ranges])


def _grow_missing(
    client: Any, data: Any, ranges: list[range], parts: dict[range, PackedTrees], progress: Any
) -> None:
    """Grow the ranges of trees that are not among the parts yet, and add them."""
    futures: list[Any] = []
    of_future: dict[str, range] = {}
    with cancelling(client, futures):
        for some in ranges:
            if some not in parts:
                futures.append(client.submit(grow_packed, data, some, pure=False))
                of_future[futures[-1].key] = some
        for future in completed(client, futures):
            parts[of_future[future.key]] = future.result()
            future.release()
            if progress is not None:
                progress(sum(map(len, parts)))


def check_plan(client: Any, plan: GrowthPlan) -> WorkerLimits:
    """Check that the data fits on every worker; return their limits."""
    limits = WorkerLimits(client)
    n_bytes = bytes_of(plan.X) + plan.outputs.nbytes + plan.row_weight.nbytes
    limits.check(n_bytes, "X and the embedded outputs, which every worker must hold", ADVICE)
    log.info("sending %s to each of %d workers", size_text(n_bytes), limits.n_workers)
    return limits


def grow_packed(plan: GrowthPlan, trees: range) -> PackedTrees:
    """Grow some trees, on a worker, and make them ready to be sent."""
    with allocator.keeping_freed_memory(MOMENT):
        return pack(grow_range(plan, trees))


def grow_range(plan: GrowthPlan, trees: range) -> Trees:
    """Grow some trees, on a worker."""
    with allocator.keeping_freed_memory(), without_sampling():
        return grow_here(plan, trees, progress=stop_if_cancelled)


def bytes_of(X: Any) -> int:
    """Return the size of inputs, dense or sparse."""
    parts = (X.data, X.indices, X.indptr) if hasattr(X, "indptr") else (X,)
    return sum(int(np.asarray(part).nbytes) for part in parts)
