"""Rows in partitions: the blocks of Dask collections, and what a fit learns from all of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from okforest._categories import Categories
from okforest._compat import rows_of
from okforest._typing import Booleans, Outputs
from okforest._validation import check_inputs, learn_inputs, missing_features
from okforest.dask._cluster import is_collection, require
from okforest.engine.inputs import Inputs
from okforest.kernels import Dirac, OutputKernel
from okforest.models._tree_model import TreeModel

Positions = npt.NDArray[np.intp]

INLINE = 64  # tasks of a block that are done within one


def blocks_of(values: Any, name: str) -> list[Any]:
    """Return the partitions of a collection as lazy values; every one has all columns."""
    if not is_collection(values):
        raise TypeError(
            f"{name} is a {type(values).__name__}; expected a Dask array or frame, as from "
            "dask.array.from_array."
        )
    if hasattr(values, "chunks") and values.ndim > 1:
        values = values.rechunk(dict.fromkeys(range(1, values.ndim), -1))
    return list(np.ravel(values.to_delayed()))


def bare(model: TreeModel) -> TreeModel:
    """Return what workers need of a model: its parameters, and what it knows about inputs."""
    shell: TreeModel = clone(model)
    if hasattr(shell, "callback"):
        shell.callback = None  # it is called here, and may not be sent
    for name in ("n_features_in_", "feature_names_in_", "categories_"):
        if hasattr(model, name):
            setattr(shell, name, getattr(model, name))
    return shell


class BlockTask:
    """A function of some lazy blocks, as one task that computes them and keeps none of them.

    As tasks of their own, blocks could wait in memory for the function, several at a time, or be
    sent to another worker. Blocks that are in the memory of workers stay there, and long
    computations are left to Dask.
    """

    def __init__(self, function: Callable[..., Any], blocks: Sequence[Any]):
        dask = require("dask")
        graph = dask.utils.ensure_dict(
            dask.highlevelgraph.HighLevelGraph.merge(*(block.__dask_graph__() for block in blocks))
        )
        self.keys = [block.key for block in blocks]
        self.graph, _ = require("dask.optimization").cull(graph, self.keys)
        self.function = function

    def __call__(self, *arguments: Any) -> Any:
        blocks = require("dask.local").get_sync(self.graph, self.keys)
        return self.function(*arguments, *blocks)


def with_blocks(function: Callable[..., Any], blocks: Sequence[Any], *arguments: Any) -> Any:
    """Return a lazy call of a function with arguments and then blocks."""
    dask, distributed = require("dask"), require("distributed")
    if not distributed.futures_of(list(blocks)):
        task = BlockTask(function, blocks)
        if len(task.graph) <= INLINE:
            return dask.delayed(task, pure=False, traverse=False)(*arguments)
    return dask.delayed(function, pure=False)(*arguments, *blocks)


def aligned_blocks(values: Any, name: str, X: Any) -> list[Any]:
    """Return the partitions of a collection that has a row for each row of X."""
    blocks = X.to_delayed() if not hasattr(X, "chunks") else X.chunks[0]
    if hasattr(values, "chunks") and hasattr(X, "chunks") and values.chunks[0] != X.chunks[0]:
        known = not np.isnan([*values.chunks[0], *X.chunks[0]]).any()
        if known and values.shape[0] != X.shape[0]:
            raise ValueError(f"{name} has {values.shape[0]} rows; X has {X.shape[0]}.")
        if known:
            values = values.rechunk({0: X.chunks[0]})
    found = blocks_of(values, name)
    if len(found) != len(blocks):
        raise ValueError(
            f"{name} has {len(found)} partitions and X has {len(blocks)}; they must have the same "
            "rows in the same partitions. Repartition one of them like the other."
        )
    return found


@dataclass(frozen=True)
class Summary:
    """What a fit needs to know about one partition.

    Parameters
    ----------
    n_rows, n_features : int
        Its shape.
    dtype : dtype or None
        The type of its inputs as numbers; None without rows.
    names : ndarray or None
        Names of the columns.
    categories : list
        For each feature its categories, or None if it is numeric.
    has_missing : ndarray of shape (n_features,)
        Which features have missing values.
    output_shape : tuple
        The shape of one output.
    labels : ndarray or None
        The different outputs, if they are labels.
    """

    n_rows: int
    n_features: int
    dtype: np.dtype[Any] | None
    names: Outputs | None
    categories: Categories
    has_missing: Booleans
    output_shape: tuple[int, ...]
    labels: Outputs | None


def summarize(model: TreeModel, kernel: OutputKernel, number: int, X: Any, y: Any) -> Summary:
    """Check one partition, on a worker."""
    n_rows, n_features = X.shape
    if len(y) != n_rows:
        raise ValueError(f"partition {number} has {n_rows} rows of X and {len(y)} of y.")
    if n_rows == 0:
        nothing = np.zeros(n_features, dtype=bool)
        return Summary(0, n_features, None, None, [None] * n_features, nothing, (), None)
    try:
        inputs = learn_inputs(model, X, least_rows=1)
        outputs = kernel.check(y)
    except ValueError as error:
        raise ValueError(f"partition {number}: {error}") from None
    return Summary(
        n_rows,
        inputs.n_features,
        inputs.X.dtype,
        inputs.feature_names,
        inputs.categories,
        missing_features(inputs.X),
        outputs.shape[1:],
        np.unique(outputs) if isinstance(kernel, Dirac) else None,
    )


def merge(summaries: Sequence[Summary]) -> Summary:
    """Return the summary of all partitions, after checking that they fit each other."""
    used = [(number, part) for number, part in enumerate(summaries) if part.n_rows]
    if not used:
        raise ValueError(f"all {len(summaries)} partitions are empty; at least 2 rows are needed.")
    first_number, first = used[0]
    for number, part in enumerate(summaries):
        if part.n_features != first.n_features:
            raise ValueError(
                f"partition {number} of X has {part.n_features} columns and partition "
                f"{first_number} has {first.n_features}; all must have the same columns."
            )
    for number, part in used:
        if (part.names is None) != (first.names is None) or not np.array_equal(
            part.names if part.names is not None else [],
            first.names if first.names is not None else [],
        ):
            raise ValueError(
                f"partition {number} of X has columns {part.names} and partition {first_number} "
                f"has {first.names}; all must have the same columns in the same order."
            )
        if part.output_shape != first.output_shape:
            raise ValueError(
                f"partition {number} of y has outputs of shape {part.output_shape} and partition "
                f"{first_number} of shape {first.output_shape}."
            )
    parts = [part for _, part in used]
    labels = [part.labels for part in parts if part.labels is not None]
    return Summary(
        sum(part.n_rows for part in parts),
        first.n_features,
        np.result_type(*(part.dtype for part in parts if part.dtype is not None)),
        first.names,
        [_merged_categories(used, j) for j in range(first.n_features)],
        np.any([part.has_missing for part in parts], axis=0),
        first.output_shape,
        np.unique(np.concatenate(labels)) if labels else None,
    )


def _merged_categories(used: Sequence[tuple[int, Summary]], j: int) -> npt.NDArray[Any] | None:
    known = [(number, part.categories[j]) for number, part in used]
    categorical = [(number, values) for number, values in known if values is not None]
    if not categorical:
        return None
    if len(categorical) < len(known):
        numeric = next(number for number, values in known if values is None)
        raise ValueError(
            f"column {j} of X is categorical in partition {categorical[0][0]} and numeric in "
            f"partition {numeric}; give it one type in all, for example with astype('category')."
        )
    return np.unique(np.concatenate([values for _, values in categorical]))


@dataclass(frozen=True)
class PartitionedRows:
    """Training rows that stay in their partitions.

    Parameters
    ----------
    X, y : list of Delayed
        The partitions.
    n_rows : ndarray
        The number of rows of each.
    """

    X: list[Any]
    y: list[Any]
    n_rows: npt.NDArray[np.int64]

    @property
    def offsets(self) -> Positions:
        """Where the rows of each partition begin, among all rows."""
        return np.append(0, np.cumsum(self.n_rows)).astype(np.intp)

    def split(self, rows: Positions) -> list[tuple[int, Positions]]:
        """Divide ascending positions of rows by partition; positions then count from its start."""
        offsets = self.offsets
        cuts = np.searchsorted(rows, offsets)
        return [
            (p, rows[cuts[p] : cuts[p + 1]] - offsets[p])
            for p in range(len(self.n_rows))
            if cuts[p] < cuts[p + 1]
        ]

    def outputs_at(self, client: Any, kernel: OutputKernel, rows: Positions) -> Outputs:
        """Bring the outputs of some rows to the client."""
        dask = require("dask")
        ascending, place = np.unique(rows, return_inverse=True)
        shared = dask.delayed(kernel, traverse=False)  # sent once: it may hold a Gram matrix
        tasks = [
            with_blocks(take_outputs, [self.y[p]], shared, own) for p, own in self.split(ascending)
        ]
        return np.concatenate(client.compute(tasks, sync=True))[place]


def take_outputs(kernel: OutputKernel, rows: Positions, y: Any) -> Outputs:
    """Return some outputs of a partition, in canonical form."""
    return kernel.check(rows_of(y, rows))


def take_rows(
    shell: TreeModel, kernel: OutputKernel, dtype: Any, rows: Positions, X: Any, y: Any
) -> tuple[Inputs, Outputs]:
    """Return some rows of a partition: inputs as numbers and outputs, as copies."""
    inputs = check_inputs(shell, rows_of(X, rows))
    return inputs.astype(dtype, copy=False), take_outputs(kernel, rows, y)
