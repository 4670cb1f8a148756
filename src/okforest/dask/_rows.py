"""Growing trees on samples of rows that stay in partitions.

The rows that a tree draws are sent from their partitions to the worker that grows it. A few trees
are grown at a time, so that workers hold a bounded number of samples.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile
from math import ceil
from operator import getitem
from typing import Any

import numpy as np
import scipy.sparse as sp

from okforest._utils.arrays import Inputs, Ints, Outputs
from okforest._utils.frames import category_counts
from okforest.dask._blocks import with_blocks
from okforest.dask._cluster import (
    WorkerLimits,
    cancelling,
    completed,
    log,
    size_text,
    workers_of,
)
from okforest.dask._growing import grow_range
from okforest.dask._partitions import Positions, take_rows
from okforest.dask._parts import Part
from okforest.dask._row_plan import Recipe, RowPlan, SampleSize
from okforest.engine import GrowthPlan, Trees, draw, prune

# The share of a worker's free memory that samples may take at a time.
SAMPLE_SHARE = 0.6
# What the scheduler is sent at a time, at most: pieces of samples, and numbers of rows.
TASKS = 10_000
ROW_NUMBERS = 2**23

# The inputs of a tree, filled in piece by piece, and its outputs in pieces.
Sample = tuple[Any, list[Outputs]]
# For each partition, the trees that draw from it, and the rows that they draw.
Requests = dict[int, list[tuple[int, Positions]]]


def trees_at_a_time(client: Any, size: SampleSize, most: int) -> int:
    """Return how many trees may be grown together, so that samples fit in memory.

    A worker holds the samples of its trees, the embedded outputs of those that it grows at the same
    time, and its share of the rows for all trees, until they are sent. Without memory limits, there
    is a tree for each thread; else there may be more, since every partition is read once for all
    trees grown together.
    """
    limits = WorkerLimits(client)
    advice = "Lower max_samples or embedding_rank, or give workers more memory."
    what = "the sample of a tree, with its embedded outputs"
    limits.check(size.held, what, advice, SAMPLE_SHARE)
    if limits.memory is None:
        return limits.n_threads
    n_workers, room = limits.n_workers, SAMPLE_SHARE * limits.memory

    def needed(n_trees: int) -> float:
        own = ceil(n_trees / n_workers)
        growing = min(own, ceil(limits.n_threads / n_workers))
        return own * size.sent + growing * size.embedded + n_trees * size.sent / n_workers

    fitting = takewhile(lambda n: needed(n) <= room, range(1, max(limits.n_threads, most) + 1))
    return max(fitting, default=1)


def grow_parts(
    client: Any, plan: RowPlan, n_trees: int, progress: Callable[[int], None]
) -> list[Any]:
    """Grow trees, a few at a time; return them as parts that stay on the workers."""
    by_tasks = TASKS // len(plan.rows.n_rows)
    by_numbers = ROW_NUMBERS // plan.n_draws
    at_a_time = min(n_trees, trees_at_a_time(client, plan.size, min(by_tasks, by_numbers)))
    log.info(
        "growing %d trees, %d at a time, each on at most %s of rows sent to its worker",
        n_trees,
        at_a_time,
        size_text(plan.size.sent),
    )
    parts: list[Any] = []
    # A task, and not scattered data: a worker that dies does not lose it.
    recipe = client.submit(_same, plan.recipe, pure=False)
    try:
        with cancelling(client, parts, keep=True):
            for first in range(0, n_trees, at_a_time):
                wave = range(first, min(first + at_a_time, n_trees))
                drawn = draw(plan.weight, plan.n_draws, plan.recipe.seed, wave)
                _submit(client, plan, recipe, wave, drawn, parts)
                for n_done, _ in enumerate(completed(client, parts[first:]), start=first + 1):
                    progress(n_done)
    finally:
        recipe.release()
    return parts


def _submit(
    client: Any, plan: RowPlan, recipe: Any, wave: range, drawn: Trees, parts: list[Any]
) -> None:
    """Submit the trees of a wave, and add them to the parts."""
    rows_of_tree = [drawn[k].members.astype(np.intp) for k in range(len(wave))]
    requests: Requests = {}
    for k, rows in enumerate(rows_of_tree):
        for p, own in plan.rows.split(rows):
            requests.setdefault(p, []).append((k, own))
    requests = dict(sorted(requests.items()))  # samples are filled in the order of the rows
    workers = list(workers_of(client))
    # A worker for each, or the samples of several trees may meet on one.
    where = [{"workers": [workers[t % len(workers)]], "allow_other_workers": True} for t in wave]
    taken: list[Any] = []
    samples: list[Any] = [None] * len(wave)
    try:
        taken += _submit_takes(client, plan, recipe, requests)
        _submit_samples(client, recipe, requests, rows_of_tree, where, taken, samples)
        for k, t in enumerate(wave):
            what = recipe, samples[k], rows_of_tree[k], drawn[k].times, t
            parts.append(client.submit(grow_part, *what, pure=False, **where[k]))
    finally:
        _release(*taken, *samples)  # even if the traceback of an error is kept, and this with it
    n_sent = sum(map(len, rows_of_tree))
    log.info(
        "trees %d to %d: sending %s of row numbers and %s of rows",
        wave[0],
        wave[-1],
        size_text(sum(rows.nbytes for rows in rows_of_tree)),
        size_text(n_sent * plan.size.sent / min(plan.n_draws, plan.rows.n_rows.sum())),
    )


def _submit_takes(client: Any, plan: RowPlan, recipe: Any, requests: Requests) -> list[Any]:
    """Submit tasks that take rows from partitions, each of which is read once for all trees."""
    takes = [
        with_blocks(
            take_for_trees, (plan.rows.X[p], plan.rows.y[p]), recipe, [rows for _, rows in asked]
        )
        for p, asked in requests.items()
    ]
    futures: list[Any] = client.compute(takes)
    return futures


def _submit_samples(
    client: Any,
    recipe: Any,
    requests: Requests,
    rows_of_tree: list[Positions],
    where: list[dict[str, Any]],
    taken: list[Any],
    samples: list[Any],
) -> None:
    """Submit the sample of each tree, filled piece by piece so that pieces are not there twice."""
    begins = [0] * len(samples)
    for asked, take in zip(requests.values(), taken, strict=True):
        for place, (k, rows) in enumerate(asked):
            piece, before = client.submit(getitem, take, place, pure=False), samples[k]
            more = recipe, before, (len(rows_of_tree[k]), begins[k]), piece
            samples[k] = client.submit(add_piece, *more, pure=False, **where[k])
            _release(piece, before)
            begins[k] += len(rows)


def _release(*futures: Any) -> None:
    for future in futures:
        if future is not None:
            future.release()


def take_for_trees(
    recipe: Recipe, rows_of_trees: list[Positions], X: Any, y: Any
) -> list[tuple[Inputs, Outputs]]:
    """Take the rows of several trees from a partition, on a worker."""
    kernel = recipe.outputs.kernel
    return [take_rows(recipe.shell, kernel, recipe.dtype, rows, X, y) for rows in rows_of_trees]


def _same(recipe: Recipe) -> Recipe:
    return recipe


def add_piece(
    recipe: Recipe, sample: Sample | None, place: tuple[int, int], piece: tuple[Inputs, Outputs]
) -> Sample:
    """Add rows from a partition to the sample of a tree, given its size and where they begin.

    Writing them again, if a worker has died, changes nothing.
    """
    n_rows, begin = place
    X, y = piece
    if sp.issparse(X):
        inputs, outputs = ([], []) if sample is None else sample
        return [*inputs, X], [*outputs, y]
    if sample is None:
        sample = np.empty((n_rows, X.shape[1]), dtype=recipe.dtype), []
    inputs, outputs = sample
    if not inputs.flags.writeable:  # it was sent from another worker
        inputs = inputs.copy()
    inputs[begin : begin + len(y)] = X
    return inputs, [*outputs, y]


def grow_part(recipe: Recipe, sample: Sample, rows: Positions, times: Ints, tree: int) -> Part:
    """Grow a tree on the rows that it has drawn, on a worker."""
    inputs, outputs = sample
    X = sp.csc_array(sp.vstack(inputs)) if isinstance(inputs, list) else inputs
    y = np.concatenate(outputs)
    weight = times.astype(np.float64)
    embedding = recipe.outputs.embed(y)
    plan = GrowthPlan(
        X=X,
        outputs=embedding.values,
        gram=False,
        rules=recipe.rules,
        row_weight=weight,
        n_categories=category_counts(recipe.shell.categories_),
        seed=recipe.seed,
        row_errors=embedding.errors,
    )
    grown = grow_range(plan, range(tree, tree + 1))
    # A row that was drawn k times has weight k: the same tree as with k as its number of times.
    grown = replace(grown, times=times[grown.members], row_weight=np.ones(len(rows)))
    if recipe.shell.ccp_alpha > 0:
        grown = prune(grown, recipe.shell.ccp_alpha)
    return Part(grown, recipe.outputs.kernel, y, rows)
