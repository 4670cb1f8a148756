"""Inputs read column by column: arrays, lists, and frames of pandas and polars."""

from collections import Counter
from datetime import date, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._namespace import on_gpu, to_host
from okforest._sparse import check_sparse
from okforest._typing import Booleans, Floats

# Types that scikit-learn's check of arrays converts, or refuses with a clear error.
NUMERIC_TYPES = ("int", "uint", "float", "double", "bool", "sparse", "complex")
TIME_TYPES = ("datetime", "timestamp", "timedelta", "date", "duration", "time", "period")


def as_columns(X: Any) -> Any:
    """Return X as an array, a sparse matrix or a frame whose columns can be read.

    Masked entries become NaN, the missing value. Lists become arrays; what is not a table is
    returned as it is, for the general check of inputs to explain.
    """
    if isinstance(X, np.ma.MaskedArray):
        X = _unmasked(X)
    if hasattr(X, "collect") and not hasattr(X, "shape"):
        raise ValueError(
            f"X is a {type(X).__name__}, which holds no values yet; pass X.collect() instead."
        )
    if not hasattr(X, "shape"):
        X = _as_array(X)
    check_sparse(X, "X")
    if len(X.shape) == 2:
        _check_names(X)
        _check_times(X)
    return X


def is_frame(X: Any) -> bool:
    """Return whether X is a frame of pandas or polars, or similar."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def type_of(X: Any, j: int) -> str:
    """Return the name of the type of a column."""
    return str(getattr(X.dtypes, "iloc", X.dtypes)[j] if is_frame(X) else X.dtype)


def label(X: Any, j: int) -> str:
    """Return a column's name as in Python, or its position."""
    return repr(str(X.columns[j])) if is_frame(X) else str(j)


def column(X: Any, j: int) -> npt.NDArray[Any]:
    """Return the values of a column."""
    if not is_frame(X):
        return np.asarray(to_host(X[:, j]) if on_gpu(X) else np.asarray(X)[:, j])
    series = X.iloc[:, j] if hasattr(X, "iloc") else X.to_series(j)
    return np.asarray(series.to_numpy())


def needs_conversion(X: Any) -> bool:
    """Return whether some columns of X hold objects or text, which may be numbers or missing."""
    if sp.issparse(X) or len(X.shape) != 2:
        return False
    if not is_frame(X):
        return X.dtype.kind in "OUST"
    return not all(type_of(X, j).lower().startswith(NUMERIC_TYPES) for j in range(X.shape[1]))


def as_floats(values: npt.NDArray[Any]) -> Floats:
    """Return a column as float64; missing values are NaN."""
    if values.dtype.kind == "O":
        values = np.where(missing(values), np.nan, values)
    return values.astype(np.float64)


def missing(values: npt.NDArray[Any]) -> Booleans:
    """Return which values of a column are missing."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "O":
        return np.fromiter(map(_is_missing, values), dtype=bool, count=len(values))
    return np.zeros(len(values), dtype=bool)


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)  # only NaN differs from itself
    except TypeError:
        return True  # comparing pandas.NA gives pandas.NA, which has no truth value


def _unmasked(X: np.ma.MaskedArray[Any, Any]) -> npt.NDArray[Any]:
    if X.dtype.kind not in "fiub":
        raise ValueError(
            f"X is a masked array of type {X.dtype}; only masked numbers become missing values. "
            "Pass an array of floats with NaN, or a frame."
        )
    if not np.ma.is_masked(X):
        return np.asarray(X.data)
    return np.ma.filled(X.astype(np.result_type(X.dtype, np.float32)), np.nan)


def _as_array(X: Any) -> npt.NDArray[Any]:
    if not hasattr(X, "__array__"):
        try:
            array = np.asarray(X)
        except ValueError:  # rows of different lengths
            return np.array(X, dtype=object)
        # Objects stay as they are: in one array, numbers beside text would become text.
        return array if array.dtype.kind in "fiub" else np.array(X, dtype=object)
    return np.asarray(X)


def _check_names(X: Any) -> None:
    if not is_frame(X):
        return
    repeated = [repr(name) for name, count in Counter(X.columns).items() if count > 1]
    if repeated:
        raise ValueError(
            f"X has several columns named {', '.join(repeated)}; column names must be unique. "
            "Rename them, or pass X.to_numpy()."
        )


def _check_times(X: Any) -> None:
    for j in range(X.shape[1] if is_frame(X) else 1):
        kind = type_of(X, j)
        if kind == "object" and is_frame(X):
            values = column(X, j)
            present = values[~missing(values)][:1]
            if len(present) and isinstance(present[0], date | timedelta):
                kind = type(present[0]).__name__
        if kind.lower().startswith(TIME_TYPES):
            where = f"column {label(X, j)} of X" if is_frame(X) else "X"
            raise ValueError(
                f"{where} has type {kind}; convert times to numbers first, for example to days "
                "since a date."
            )
