"""Growing trees on samples of rows that stay in partitions.

:func:`plan_rows` learns from all partitions what trees depend on. The rows that a tree draws are
then sent from their partitions to the worker that grows it. A few trees are grown at a time, so
that workers hold a bounded number of samples.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from math import ceil
from operator import getitem
from typing import Any

import numpy as np
import scipy.sparse as sp

from okforest._utils.arrays import Floats, Inputs, Ints, Outputs
from okforest._utils.frames import category_counts
from okforest._utils.inputs import check_weights
from okforest.dask.cluster import (
    WorkerLimits,
    cancelling,
    completed,
    computed,
    is_collection,
    log,
    size_text,
    stop_if_cancelled,
    workers_of,
)
from okforest.dask.partitions import (
    PartitionedRows,
    Positions,
    aligned_blocks,
    bare,
    check_subsets,
    input_blocks,
    sent_once,
    take_rows,
    with_blocks,
)
from okforest.dask.prediction import Part, check_decoder
from okforest.dask.summary import OutputMap, Summary, merge, output_map, resolve, summarize
from okforest.engine import GrowthPlan, GrowthRules, draw, grow, prune
from okforest.kernels import as_kernel
from okforest.models.tree_model import TreeModel
from okforest.weights import Span

# The share of a worker's free memory that samples may take at a time.
SAMPLE_SHARE = 0.6
# Largest number of pieces of samples, and of row numbers, in one message to the scheduler.
TASKS = 10_000
ROW_NUMBERS = 2**23

# The inputs of a tree, filled in piece by piece, and its outputs in pieces.
Sample = tuple[Any, list[Outputs]]


@dataclass(frozen=True)
class Recipe:
    """Everything that trees are grown from, besides their rows.

    Parameters
    ----------
    shell : TreeModel
        The model, which knows its inputs but has no trees.
    outputs : OutputMap
        Outputs as numbers.
    rules : GrowthRules
        How to grow.
    seed : int
        The seed of all trees.
    dtype : dtype
        The type of inputs.
    """

    shell: TreeModel
    outputs: OutputMap
    rules: GrowthRules
    seed: int
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class SampleSize:
    """The size of the rows that a tree is grown on, in bytes.

    Parameters
    ----------
    sent : int
        What is sent to its worker: inputs and outputs. Sparse rows count as the mean of all.
    embedded : int
        The outputs as numbers, which the worker computes.
    """

    sent: int
    embedded: int

    @classmethod
    def of(cls, n: int, summary: Summary, outputs: OutputMap, reference: Outputs) -> "SampleSize":
        """Return the size of n rows."""
        row = summary.n_bytes / summary.n_rows + reference[:1].nbytes
        return cls(int(n * row), n * outputs.embed(reference[:2]).values[:1].nbytes)

    @property
    def held(self) -> int:
        """The bytes that a worker holds to grow the tree."""
        return self.sent + self.embedded


@dataclass(frozen=True)
class RowPlan:
    """A fit to rows in partitions, before its trees are grown.

    Parameters
    ----------
    rows : PartitionedRows
        The rows.
    recipe : Recipe
        What trees are grown from, besides their rows.
    weight : ndarray
        The weight of each row.
    n_draws : int
        Number of rows drawn for each tree.
    reference : ndarray
        A few outputs, to decode predictions like them.
    size : SampleSize
        The size of the rows of a tree.
    """

    rows: PartitionedRows
    recipe: Recipe
    weight: Floats
    n_draws: int
    reference: Outputs
    size: SampleSize


def plan_rows(client: Any, model: TreeModel, X: Any, y: Any, sample_weight: Any) -> RowPlan:
    """Check all partitions, and learn from them what trees depend on."""
    _check_parameters(model)
    model._validate_params()
    kernel = as_kernel(model.kernel)
    blocks, targets = input_blocks(X), aligned_blocks(y, "y", X)
    weights = _weights(client, sample_weight, X, targets)
    shared = sent_once(bare(model)), sent_once(kernel)
    tasks = [
        with_blocks(summarize, (x, y), *shared, p, weight)
        for p, (x, y, weight) in enumerate(zip(blocks, targets, weights, strict=True))
    ]
    summaries = computed(client, tasks)
    summary = merge(summaries)
    check_subsets(model, summary.categories)
    n_rows = np.array([part.n_rows for part in summaries], dtype=np.int64)
    rows = PartitionedRows(blocks, targets, n_rows)
    weight = np.ones(summary.n_rows) if weights[0] is None else np.concatenate(weights)
    n_draws = model._n_draws(weight)
    seed = model._draw_seed()
    kernel = resolve(kernel, rows, client, summary, weight)
    outputs = output_map(model, kernel, rows, client, seed)
    reference = _reference(rows, client, outputs, summary.labels)
    check_decoder(model, Span(kernel, reference), partitioned=True)
    model.n_features_in_, model.categories_ = summary.n_features, summary.categories
    model.has_missing_ = summary.has_missing
    if summary.names is not None:
        model.feature_names_in_ = summary.names
    rules = model._rules(summary.n_features, n_draws)
    recipe = Recipe(bare(model), outputs, rules, seed, summary.dtype)
    size = SampleSize.of(min(n_draws, summary.n_rows), summary, outputs, reference)
    return RowPlan(rows, recipe, weight, n_draws, reference, size)


def _weights(client: Any, sample_weight: Any, X: Any, y: list[Any]) -> list[Any]:
    """Return the weights of each partition, which its summary depends on; None without any."""
    if sample_weight is None:
        return [None] * len(y)
    if is_collection(sample_weight):
        sample_weight = computed(client, [sample_weight])[0]
    n_rows = getattr(X, "chunks", [[np.nan]])[0]
    if np.isnan(n_rows).any():
        n_rows = computed(client, [with_blocks(len, [part]) for part in y])
    weight = check_weights(sample_weight, np.empty((sum(n_rows), 1)))
    return np.split(weight, np.cumsum(n_rows)[:-1])


def _check_parameters(model: TreeModel) -> None:
    if not model.bootstrap:
        raise ValueError(
            f"{type(model).__name__} has bootstrap=False: every tree is grown on all rows, which "
            "are in partitions. Set bootstrap=True, and max_samples to the number of rows that a "
            "worker can hold."
        )
    for name, value in (("criterion", "variance"), ("search_rank", None), ("oob_score", False)):
        found = getattr(model, name, value)
        if found not in (value, "auto"):
            raise ValueError(
                f"{name}={found!r} needs all outputs at once, and they are in partitions; use "
                f"{name}={value!r}."
            )


def _reference(
    rows: PartitionedRows, client: Any, outputs: OutputMap, labels: Outputs | None
) -> Outputs:
    """Return as many outputs as there are explicit features, or a few."""
    n = int(rows.n_rows.sum())
    if labels is not None:
        return labels
    first = rows.outputs_at(client, outputs.kernel, np.arange(min(n, 2)))
    dim = outputs.kernel.feature_dim(first) or 0
    spread = np.linspace(0, n - 1, min(n, max(512, dim))).astype(np.intp)
    return rows.outputs_at(client, outputs.kernel, spread)


def trees_at_a_time(client: Any, size: SampleSize, most: int) -> int:
    """Return how many trees may be grown together, so that samples fit in memory.

    A worker holds the samples of its trees, the embedded outputs of trees that it grows at the same
    time, and its share of the rows for all trees, until they are sent. Without memory limits, there
    is a tree for each thread; with limits there may be more, since every partition is read once for
    all trees grown together.
    """
    limits = WorkerLimits(client)
    advice = "Lower max_samples or embedding_rank, or give workers more memory."
    what = "the sample of a tree, with its embedded outputs"
    limits.check(size.held, what, advice, SAMPLE_SHARE)
    if limits.memory is None:
        return limits.n_threads
    n_workers, room = limits.n_workers, SAMPLE_SHARE * limits.memory

    def needed(n_trees: int) -> float:
        n_samples = ceil(n_trees / n_workers)
        n_growing = min(n_samples, ceil(limits.n_threads / n_workers))
        return (n_samples + n_trees / n_workers) * size.sent + n_growing * size.embedded

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
    recipe = client.submit(copy, plan.recipe, pure=False)
    try:
        with cancelling(client, parts, keep=True) as token:
            for first in range(0, n_trees, at_a_time):
                wave = range(first, min(first + at_a_time, n_trees))
                _submit(client, plan, recipe, wave, token, parts)
                for n_done, _ in enumerate(completed(client, parts[first:]), start=first + 1):
                    progress(n_done)
    finally:
        recipe.release()
    return parts


def _submit(
    client: Any, plan: RowPlan, recipe: Any, wave: range, token: str, parts: list[Any]
) -> None:
    """Submit the trees of a wave, and add them to the parts.

    Samples are filled piece by piece, so that workers do not hold the pieces and the whole.
    """
    drawn = draw(plan.weight, plan.n_draws, plan.recipe.seed, wave)
    rows_of_tree = [drawn[k].members.astype(np.intp) for k in range(len(wave))]
    # For each partition, the trees that draw from it, and the rows that they draw.
    requests: dict[int, list[tuple[int, Positions]]] = {}
    for k, rows in enumerate(rows_of_tree):
        for p, local in plan.rows.split(rows):
            requests.setdefault(p, []).append((k, local))
    requests = dict(sorted(requests.items()))  # samples are filled in the order of the rows
    workers = list(workers_of(client))
    # A worker for each, or the samples of several trees may meet on one.
    where = [{"workers": [workers[t % len(workers)]], "allow_other_workers": True} for t in wave]
    takes = [
        with_blocks(
            take_for_trees, (plan.rows.X[p], plan.rows.y[p]), recipe, [rows for _, rows in asked]
        )
        for p, asked in requests.items()
    ]
    taken: list[Any] = []
    samples: list[Any] = [None] * len(wave)
    try:
        taken += client.compute(takes)  # each partition is read once for all trees
        begins = [0] * len(wave)
        for asked, take in zip(requests.values(), taken, strict=True):
            for place, (k, rows) in enumerate(asked):
                piece, before = client.submit(getitem, take, place, pure=False), samples[k]
                more = recipe, before, (len(rows_of_tree[k]), begins[k]), piece
                samples[k] = client.submit(add_piece, *more, pure=False, **where[k])
                _release(piece, before)
                begins[k] += len(rows)
        for k, t in enumerate(wave):
            what = recipe, samples[k], rows_of_tree[k], drawn[k].times, t, token
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


def add_piece(
    recipe: Recipe, sample: Sample | None, place: tuple[int, int], piece: tuple[Inputs, Outputs]
) -> Sample:
    """Add rows from a partition to the sample of a tree, at a place: its size, and their begin.

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


def grow_part(
    recipe: Recipe, sample: Sample, rows: Positions, times: Ints, tree: int, token: str
) -> Part:
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
    grown = grow(plan, range(tree, tree + 1), progress=partial(stop_if_cancelled, token))
    # A row that was drawn k times has weight k: the same tree as with k as its number of times.
    grown = replace(grown, times=times[grown.members], row_weight=np.ones(len(rows)))
    if recipe.shell.ccp_alpha > 0:
        grown = prune(grown, recipe.shell.ccp_alpha)
    return Part(grown, recipe.outputs.kernel, y, rows)
