"""The partitions of Dask collections as lazy blocks, and tasks that compute and use them.

Rows stay in their partitions as :class:`PartitionedRows`; :func:`collected` brings them here.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone

from okforest._utils.arrays import Inputs, Outputs
from okforest._utils.codings import coded_columns
from okforest._utils.compat import rows_of
from okforest._utils.frames import Categories, category_counts
from okforest._utils.inputs import check_inputs
from okforest.dask.cluster import computed, is_collection, require
from okforest.kernels import OutputKernel
from okforest.models.tree_model import TreeModel

Positions = npt.NDArray[np.intp]

INLINE = 64  # up to this number, the tasks of a block are run as one


def blocks_of(values: Any, name: str) -> list[Any]:
    """Return the partitions of a collection as lazy values; every one has all columns."""
    if not is_collection(values):
        raise TypeError(
            f"{name} is a {type(values).__name__}; expected a Dask array or frame, as from "
            "dask.array.from_array."
        )
    if hasattr(values, "chunks"):
        values = cut(values)
    if hasattr(values, "chunks") and values.ndim > 1:
        values = values.rechunk(dict.fromkeys(range(1, values.ndim), -1))
    return list(np.ravel(values.to_delayed()))


def cut(values: Any) -> Any:
    """Return a Dask array that has blocks of the arrays in this process instead of all of them.

    Dask does so for NumPy arrays. A memory-mapped file or a sparse matrix would be sent whole with
    every block that is cut from it.
    """
    dask, array, core = require("dask"), require("dask.array"), require("dask.array.core")
    getters = (core.getter, core.getter_nofancy, core.getter_inline)
    layers, dependencies = dict(values.dask.layers), dict(values.dask.dependencies)
    whole = {
        name: layer[name]
        for name, layer in layers.items()
        if name in layer and (isinstance(layer[name], np.ndarray) or sp.issparse(layer[name]))
    }
    for name in [name for name, needed in dependencies.items() if needed and needed <= {*whole}]:
        tasks = dict(layers[name])
        if all(getattr(task, "func", None) in getters for task in tasks.values()):
            blocks = dask.get({**tasks, **whole}, list(tasks))
            layers[name] = dict(zip(tasks, blocks, strict=True))
            dependencies[name] = set()
    graph = dask.highlevelgraph.HighLevelGraph(layers, dependencies)
    return array.Array(graph, values.name, values.chunks, dtype=values.dtype)


def lazy(function: Callable[..., Any]) -> Any:
    """Return a function whose calls are lazy tasks."""
    return require("dask").delayed(function, pure=False)


def sent_once(value: Any) -> Any:
    """Return a lazy value for the arguments of many tasks, which is sent once."""
    return require("dask").delayed(value, traverse=False)


def n_rows_of(X: Any, n_blocks: int) -> Any:
    """Return the numbers of rows of partitions; NaN where they are unknown."""
    return X.chunks[0] if hasattr(X, "chunks") else [np.nan] * n_blocks


def input_blocks(X: Any) -> list[Any]:
    """Return the partitions of inputs, which have rows and columns."""
    blocks = blocks_of(X, "X")
    if X.ndim != 2:
        raise ValueError(
            f"X has ndim={X.ndim}; expected an array of shape (n, p), or a frame. For a single "
            "feature, pass X[:, None], or X.to_frame() of a series."
        )
    return blocks


class BlockTask:
    """A function of lazy blocks, as one task that computes them and keeps none of them.

    As separate tasks, blocks could wait in memory for the function, several at a time, or be
    sent to another worker. Blocks that are in the memory of workers are not moved, and long
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
        self.__name__ = function.__name__  # dashboards and logs show it

    def __call__(self, *arguments: Any) -> Any:
        """Call the function with arguments and then the blocks, computed."""
        blocks = require("dask").get(self.graph, self.keys)
        return self.function(*arguments, *blocks)


def with_blocks(function: Callable[..., Any], blocks: Sequence[Any], *arguments: Any) -> Any:
    """Return a lazy call of a function with arguments and then blocks."""
    if not require("distributed").futures_of(list(blocks)):
        task = BlockTask(function, blocks)
        if len(task.graph) <= INLINE:
            return require("dask").delayed(task, pure=False, traverse=False)(*arguments)
    return lazy(function)(*arguments, *blocks)


@contextmanager
def naming_partition(number: int) -> Iterator[None]:
    """Let errors about the values of a partition begin with its number."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"partition {number}: {error}") from None


def aligned_blocks(values: Any, name: str, X: Any) -> list[Any]:
    """Return the partitions of a collection that has a row for each row of X."""
    n_blocks = len(blocks_of(X, "X"))
    if hasattr(values, "chunks") and hasattr(X, "chunks") and values.chunks[0] != X.chunks[0]:
        known = not np.isnan([*values.chunks[0], *X.chunks[0]]).any()
        if known and values.shape[0] != X.shape[0]:
            raise ValueError(f"{name} has {values.shape[0]} rows; X has {X.shape[0]}.")
        if known:
            values = values.rechunk({0: X.chunks[0]})
    found = blocks_of(values, name)
    if len(found) != n_blocks:
        raise ValueError(
            f"{name} has {len(found)} partitions and X has {n_blocks}; they must have the same "
            "rows in the same partitions. Repartition one of them like the other."
        )
    return found


def bare(model: TreeModel) -> TreeModel:
    """Return a model with the parts that workers need: parameters, and the form of inputs."""
    shell: TreeModel = clone(model)
    if hasattr(shell, "callback"):
        shell.callback = None  # it is called here, and may not be sent
    for name in ("n_features_in_", "feature_names_in_", "categories_", "codings_"):
        if hasattr(model, name):
            setattr(shell, name, getattr(model, name))
    return shell


def check_subsets(model: TreeModel, categories: Categories) -> None:
    """Raise a ValueError if categories are encoded by outputs, which are on the workers."""
    coded = coded_columns(categories, model.categorical_encoding)
    if coded:
        raise ValueError(
            f"column {coded[0]} of X has {category_counts(categories)[coded[0]]} categories, which "
            f"categorical_encoding={model.categorical_encoding!r} turns into coordinates; a forest "
            "that stays on workers splits categories into subsets only. Set "
            "categorical_encoding='subsets' (at most 1,024 categories), or use okforest.dask.fit."
        )


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
        """Bring the outputs of these rows to the client."""
        ascending, place = np.unique(rows, return_inverse=True)
        shared = sent_once(kernel)  # it may hold a large Gram matrix
        tasks = [
            with_blocks(take_outputs, [self.y[p]], shared, local)
            for p, local in self.split(ascending)
        ]
        return np.concatenate(computed(client, tasks))[place]


def take_outputs(kernel: OutputKernel, rows: Positions, y: Any) -> Outputs:
    """Return the outputs of these rows of a partition, in canonical form."""
    return kernel.check(rows_of(y, rows))


def take_rows(
    shell: TreeModel, kernel: OutputKernel, dtype: Any, rows: Positions, X: Any, y: Any
) -> tuple[Inputs, Outputs]:
    """Return these rows of a partition: inputs as numbers and outputs, as copies."""
    inputs = check_inputs(shell, rows_of(X, rows))
    return inputs.astype(dtype, copy=False), take_outputs(kernel, rows, y)


def collected(client: Any, X: Any, y: Any, sample_weight: Any) -> Iterator[Any]:
    """Return inputs, outputs and weights, computed if they are Dask collections."""
    for values, name in ((X, "X"), (y, "y"), (sample_weight, "sample_weight")):
        if not is_collection(values):
            yield values
            continue
        lazy = values
        if hasattr(values, "columns"):
            lazy = values.map_partitions(
                with_columns, list(values.columns), name, enforce_metadata=False
            )
        yield computed(client, [lazy])[0]


def with_columns(part: Any, columns: list[Any], name: str) -> Any:
    """Return a partition of a frame, on a worker, after checking that it has these columns.

    Joining partitions would fill missing columns with missing values.
    """
    if set(part.columns) != set(columns):
        raise ValueError(
            f"a partition of {name} has columns {list(part.columns)} and {name} has {columns}; all "
            "partitions must have the same columns."
        )
    return part if list(part.columns) == columns else part[columns]


def bytes_of(X: Any) -> int:
    """Return the size of inputs, dense or sparse."""
    parts = (X.data, X.indices, X.indptr) if hasattr(X, "indptr") else (X,)
    return sum(int(np.asarray(part).nbytes) for part in parts)
