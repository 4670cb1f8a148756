"""Which outputs are missing: -1, NaN, None, masked, or without any bound."""

from typing import Any

import numpy as np

from okforest._columns import is_frame
from okforest._typing import Booleans
from okforest.kernels import OutputKernel, Survival


def labelled_rows(y: Any, kernel: OutputKernel) -> Booleans:
    """Return which entries of y are outputs.

    Missing are -1 among integers, NaN (in every value of a vector), None among objects, masked
    entries, and for times intervals without bounds.
    """
    if isinstance(y, np.ma.MaskedArray):
        return ~_all_or_none(np.ma.getmaskarray(y).reshape(len(y), -1), "masked")
    array = np.asarray(y) if is_frame(y) or hasattr(y, "__array__") else _as_array(y)
    if isinstance(kernel, Survival) and array.dtype.names is None:
        bounds = np.asarray(array, dtype=np.float64).reshape(len(array), -1)
        return np.asarray(~np.isinf(bounds).all(axis=1))
    if array.dtype.kind == "f":
        return ~_all_or_none(np.isnan(array).reshape(len(array), -1), "NaN")
    if array.dtype.kind == "i" and array.ndim == 1:
        return np.asarray(array != -1)
    if array.dtype.kind == "O":
        return np.array([not _is_missing(entry) for entry in array], dtype=bool)
    return np.ones(len(array), dtype=bool)


def select(y: Any, rows: Any) -> Any:
    """Return some of the outputs, of any collection."""
    if is_frame(y):
        return y.iloc[rows] if hasattr(y, "iloc") else y[rows]
    if isinstance(y, np.ma.MaskedArray):
        return y.data[rows]
    if hasattr(y, "__array__"):
        return _narrowed(np.asarray(y)[rows])
    return [y[i] for i in rows]


def _narrowed(kept: Any) -> Any:
    """Return labels of an array of objects with their own type, if they all have one."""
    if kept.dtype.kind != "O" or not len(kept) or not all(isinstance(v, str) for v in kept):
        return kept
    return kept.astype(str)


def _all_or_none(missing: Booleans, what: str) -> Booleans:
    partly = missing.any(axis=1) & ~missing.all(axis=1)
    if partly.any():
        i = int(np.argmax(partly))
        raise ValueError(
            f"y[{i}] is partly {what}; an output is known or missing as a whole. Set all its "
            "values to NaN, or impute them."
        )
    return np.asarray(missing.all(axis=1))


def _as_array(y: Any) -> Any:
    objects = np.empty(len(y), dtype=object)
    for i, entry in enumerate(y):
        objects[i] = entry
    kinds = {type(entry) for entry in objects}
    if kinds <= {int, bool} or kinds <= {int, float}:
        return np.asarray(y)
    return objects


def _is_missing(entry: Any) -> bool:
    if entry is None or (isinstance(entry, float) and np.isnan(entry)):
        return True
    return isinstance(entry, np.ndarray) and entry.dtype.kind == "f" and bool(np.isnan(entry).all())
