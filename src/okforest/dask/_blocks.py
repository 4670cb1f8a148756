"""The partitions of Dask collections as lazy blocks, and tasks that compute and use them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from okforest.dask._cluster import is_collection, require

INLINE = 64  # tasks of a block that are done within one


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
    core, layer_of = require("dask.array.core"), require("dask.highlevelgraph").MaterializedLayer
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
            blocks = require("dask.local").get_sync({**tasks, **whole}, list(tasks))
            layers[name] = layer_of(dict(zip(tasks, blocks, strict=True)))
            dependencies[name] = set()
    graph = require("dask.highlevelgraph").HighLevelGraph(layers, dependencies)
    return core.Array(graph, values.name, values.chunks, meta=values._meta)


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
        self.__name__ = function.__name__  # of the task, as dashboards and logs show it

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
