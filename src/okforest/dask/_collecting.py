"""Dask collections that are brought to this process, for fits that send them to every worker."""

from collections.abc import Iterator
from typing import Any

from okforest.dask._cluster import computed, is_collection


def collected(client: Any, X: Any, y: Any, sample_weight: Any) -> Iterator[Any]:
    """Return inputs, outputs and weights, computed if they are Dask collections."""
    for values, name in ((X, "X"), (y, "y"), (sample_weight, "sample_weight")):
        if not is_collection(values):
            yield values
            continue
        lazy = values
        if hasattr(values, "columns"):
            lazy = values.map_partitions(
                with_columns, list(values.columns), name, meta=values._meta, enforce_metadata=False
            )
        yield computed(client, [lazy])[0]


def with_columns(part: Any, columns: list[Any], name: str) -> Any:
    """Return a partition of a frame, on a worker, after checking that it has these columns.

    Joining partitions would fill those that one of them does not have with missing values.
    """
    if set(part.columns) != set(columns):
        raise ValueError(
            f"a partition of {name} has columns {list(part.columns)} and {name} has {columns}; all "
            "partitions must have the same columns."
        )
    return part if list(part.columns) == columns else part[columns]
