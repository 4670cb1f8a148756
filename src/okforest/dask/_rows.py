"""Growing trees on samples of rows that stay in partitions.

The rows that a tree draws are sent from their partitions to the worker that grows it. A few trees
are grown at a time, so that workers hold a bounded number of samples.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import getitem
from typing import Any

import numpy as np
import scipy.sparse as sp

from okforest._categories import category_counts
from okforest._typing import Floats, Ints, Outputs
from okforest._validation import check_weights
from okforest.dask._cluster import (
    WorkerLimits,
    cancelling,
    is_collection,
    log,
    mebibytes,
    require,
)
from okforest.dask._growing import grow_range
from okforest.dask._outputs import OutputMap, output_map, resolve
from okforest.dask._partitions import (
    PartitionedRows,
    Positions,
    aligned_blocks,
    bare,
    blocks_of,
    merge,
    summarize,
    take_rows,
    with_blocks,
)
from okforest.dask._parts import Part
from okforest.decode import as_decoder
from okforest.engine import GrowthPlan, GrowthRules, Trees, draw, prune
from okforest.engine.inputs import Inputs
from okforest.kernels import as_kernel
from okforest.models._tree_model import TreeModel
from okforest.weights import Span

# The share of a worker's memory that samples may take at a time.
SAMPLE_SHARE = 0.4

# The inputs of a tree, filled in piece by piece, and its outputs in pieces.
Sample = tuple[Any, list[Outputs]]


@dataclass(frozen=True)
class Recipe:
    """What every tree is grown from, besides its rows.

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
    """

    rows: PartitionedRows
    recipe: Recipe
    weight: Floats
    n_draws: int
    reference: Outputs


def plan_rows(client: Any, model: TreeModel, X: Any, y: Any, sample_weight: Any) -> RowPlan:
    """Check all partitions, and learn from them what trees depend on."""
    _check_parameters(model)
    model._validate_params()
    dask = require("dask")
    kernel = as_kernel(model.kernel)
    blocks, targets = blocks_of(X, "X"), aligned_blocks(y, "y", X)
    shared = [dask.delayed(thing, traverse=False) for thing in (bare(model), kernel)]  # sent once
    tasks = [
        with_blocks(summarize, pair, *shared, p)
        for p, pair in enumerate(zip(blocks, targets, strict=True))
    ]
    futures = client.compute(tasks)
    with cancelling(client, futures):
        summaries = client.gather(futures)
    summary = merge(summaries)
    n_rows = np.array([part.n_rows for part in summaries], dtype=np.int64)
    rows = PartitionedRows(blocks, targets, n_rows)
    if is_collection(sample_weight):
        sample_weight = client.compute(sample_weight, sync=True)
    weight = check_weights(sample_weight, np.empty((summary.n_rows, 1)))
    n_draws = model._n_draws(weight)
    seed = model._draw_seed()
    kernel = resolve(kernel, rows, client, summary, weight)
    outputs = output_map(model, kernel, rows, client, seed)
    reference = _reference(rows, client, outputs, summary.labels)
    as_decoder(model.decoder, kernel).check(Span(kernel, reference))
    model.n_features_in_, model.categories_ = summary.n_features, summary.categories
    model.has_missing_ = summary.has_missing
    if summary.names is not None:
        model.feature_names_in_ = summary.names
    assert summary.dtype is not None
    recipe = Recipe(
        bare(model), outputs, model._rules(summary.n_features, n_draws), seed, summary.dtype
    )
    return RowPlan(rows, recipe, weight, n_draws, reference)


def _check_parameters(model: TreeModel) -> None:
    if not model.bootstrap:
        raise ValueError(
            f"{type(model).__name__} has bootstrap=False: every tree is grown on all rows, which "
            "are in partitions. Set bootstrap=True, and max_samples to the number of rows that a "
            "worker can hold."
        )
    for name, value in (("criterion", "variance"), ("search_rank", None), ("oob_score", False)):
        given = getattr(model, name, value)
        if given != value:
            raise ValueError(
                f"{name}={given!r} needs all outputs at once, and they are in partitions; use "
                f"{name}={value!r}."
            )


def _reference(
    rows: PartitionedRows, client: Any, outputs: OutputMap, labels: Outputs | None
) -> Outputs:
    """Return as many outputs as there are explicit features, or a few."""
    n = int(rows.n_rows.sum())
    some = rows.outputs_at(client, outputs.kernel, np.arange(min(n, 2)))
    dim = outputs.kernel.feature_dim(some) or 0
    if labels is not None:
        return labels
    spread = np.linspace(0, n - 1, min(n, max(512, dim))).astype(np.intp)
    return rows.outputs_at(client, outputs.kernel, spread)


def trees_at_a_time(client: Any, sample_bytes: int) -> int:
    """Return how many trees may be grown at the same time, so that samples fit in memory.

    A worker holds the sample of the tree that it grows, and its share of the rows for others, until
    they are sent.
    """
    limits = WorkerLimits(client)
    advice = "Lower max_samples, or give workers more memory."
    limits.check(sample_bytes, "the sample of a tree", advice, SAMPLE_SHARE)
    if limits.memory is None:
        return limits.n_threads
    n_samples = SAMPLE_SHARE * limits.memory / sample_bytes
    return max(1, min(limits.n_threads, int((n_samples - 1) * limits.n_workers)))


def grow_parts(
    client: Any, plan: RowPlan, n_trees: int, progress: Callable[[int], None]
) -> list[Any]:
    """Grow trees, a few at a time; return them as parts that stay on the workers."""
    distributed = require("distributed")
    # A task, and not scattered data: a worker that dies does not lose it.
    recipe = client.submit(_same, plan.recipe, pure=False)
    width = plan.recipe.dtype.itemsize * plan.recipe.shell.n_features_in_
    sample_bytes = min(plan.n_draws, len(plan.weight)) * (width + plan.reference[:1].nbytes)
    at_a_time = trees_at_a_time(client, sample_bytes)
    log.info(
        "growing %d trees, %d at a time, each on at most %s of rows sent to its worker",
        n_trees,
        at_a_time,
        mebibytes(sample_bytes),
    )
    parts: list[Any] = []
    done = False
    try:
        for first in range(0, n_trees, at_a_time):
            wave = range(first, min(first + at_a_time, n_trees))
            drawn = draw(plan.weight, plan.n_draws, plan.recipe.seed, wave)
            futures = _submit(client, plan, recipe, wave, drawn)
            parts += futures
            with cancelling(client, []):
                for n_more, future in enumerate(distributed.as_completed(futures), start=1):
                    if future.status != "finished":
                        future.result()
                    progress(first + n_more)
        done = True
        return parts
    finally:
        recipe.release()
        if not done:
            client.cancel(parts, force=True, reason="okforest failed", msg=False)


def _submit(client: Any, plan: RowPlan, recipe: Any, wave: range, drawn: Trees) -> list[Any]:
    """Submit the trees of a wave: rows taken from partitions, joined and grown on.

    A partition is read once for all trees of a wave.
    """
    rows_of_tree = [drawn[k].members.astype(np.intp) for k in range(len(wave))]
    requests: dict[int, list[tuple[int, Positions]]] = {}  # of trees, by partition
    for k, rows in enumerate(rows_of_tree):
        for p, own in plan.rows.split(rows):
            requests.setdefault(p, []).append((k, own))
    takes = client.compute(
        [
            with_blocks(
                take_for_trees,
                (plan.rows.X[p], plan.rows.y[p]),
                recipe,
                [rows for _, rows in asked],
            )
            for p, asked in requests.items()
        ]
    )
    pieces: list[list[Any]] = [[] for _ in wave]
    for asked, take in zip(requests.values(), takes, strict=True):
        for place, (k, _) in enumerate(asked):
            pieces[k].append(client.submit(getitem, take, place, pure=False))
    workers = list(client.scheduler_info(n_workers=-1)["workers"])
    futures = []
    for k, t in enumerate(wave):
        # A worker for each, or the samples of several trees may meet on one.
        where = {"workers": [workers[t % len(workers)]], "allow_other_workers": True}
        # Piece by piece, so that they are not there twice.
        sample, begin = None, 0
        for (_, own), piece in zip(plan.rows.split(rows_of_tree[k]), pieces[k], strict=True):
            shape = (len(rows_of_tree[k]), begin)
            sample = client.submit(add_piece, recipe, sample, shape, piece, pure=False, **where)
            begin += len(own)
        times = drawn[k].times
        grown = client.submit(
            grow_part, recipe, sample, rows_of_tree[k], times, t, pure=False, **where
        )
        futures.append(grown)
    log.info(
        "trees %d to %d: sending %s of row numbers, and the rows",
        wave[0],
        wave[-1],
        mebibytes(sum(rows.nbytes for rows in rows_of_tree)),
    )
    return futures


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
    plan = GrowthPlan(
        X=X,
        outputs=recipe.outputs.centred(y),
        gram=False,
        rules=recipe.rules,
        row_weight=weight,
        n_categories=category_counts(recipe.shell.categories_),
        seed=recipe.seed,
    )
    grown = grow_range(plan, range(tree, tree + 1))
    # A row that was drawn k times has weight k: the same tree as with k as its number of times.
    grown = replace(grown, times=times[grown.members], row_weight=np.ones(len(rows)))
    if recipe.shell.ccp_alpha > 0:
        grown = prune(grown, recipe.shell.ccp_alpha)
    return Part(grown, recipe.outputs.kernel, y, rows)
