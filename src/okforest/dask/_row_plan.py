"""A fit to rows in partitions before its trees are grown: what is learnt from all partitions."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.inputs import check_weights
from okforest.dask._blocks import aligned_blocks, input_blocks, with_blocks
from okforest.dask._cluster import computed, is_collection, require
from okforest.dask._decoding import check_decoder
from okforest.dask._outputs import OutputMap, output_map, resolve
from okforest.dask._partitions import PartitionedRows, bare
from okforest.dask._summary import Summary, merge, summarize
from okforest.engine import GrowthRules
from okforest.kernels import as_kernel
from okforest.models.tree_model import TreeModel
from okforest.weights import Span


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
        """What a worker holds to grow the tree."""
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
    dask = require("dask")
    kernel = as_kernel(model.kernel)
    blocks, targets = input_blocks(X), aligned_blocks(y, "y", X)
    weights = _weights(client, sample_weight, X, targets)
    shared = [dask.delayed(thing, traverse=False) for thing in (bare(model), kernel)]  # sent once
    tasks = [
        with_blocks(summarize, (x, y), *shared, p, own)
        for p, (x, y, own) in enumerate(zip(blocks, targets, weights, strict=True))
    ]
    summaries = computed(client, tasks)
    summary = merge(summaries)
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
    assert summary.dtype is not None
    recipe = Recipe(
        bare(model), outputs, model._rules(summary.n_features, n_draws), seed, summary.dtype
    )
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
