"""Curves and distributions as users pass them, on one grid."""

from typing import Any

import numpy as np

from okforest._integers import is_integer
from okforest._outputs import refuse_masked
from okforest._typing import Floats
from okforest.kernels._outputs import check_collection


def read_curves(y: Any, n_points: int | None, advice: str) -> Floats:
    """Return curves as a matrix, resampled to n_points if that is given."""
    y = check_collection(y)
    if hasattr(y, "__array__") and np.asarray(y).dtype != object:
        matrix = np.asarray(y, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[1] < 1:
            raise ValueError(f"y has shape {matrix.shape}; curves are a matrix, one per row.")
        rows = [matrix]
    else:
        rows = [as_values(curve, i) for i, curve in enumerate(read_rows(y))]
        lengths = sorted({len(row) for row in rows})
        if len(lengths) > 1 and n_points is None:
            raise ValueError(
                f"y holds curves of different lengths ({lengths[0]} to {lengths[-1]} values); "
                f"{advice}"
            )
        if n_points is not None:
            rows = [resample(row, n_points) for row in rows]
        matrix = np.stack(rows)
    if not np.isfinite(matrix).all():
        raise ValueError("y holds NaN or infinite values; every value of a curve must be known.")
    if n_points is not None and matrix.shape[1] != n_points:
        matrix = np.stack([resample(row, n_points) for row in matrix])
    return matrix


def read_rows(y: Any) -> Any:
    """Return outputs such that iterating over them gives rows, as it does not for a frame."""
    y = check_collection(y)
    return np.asarray(y) if hasattr(y, "__array__") else y


def as_values(curve: Any, i: int) -> Floats:
    """Return the values of one curve or sample."""
    refuse_masked(curve, f"y[{i}]")
    try:
        values = np.asarray(curve, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"y[{i}] is {curve!r}; it must be a sequence of numbers.") from None
    if values.ndim == 2 and values.size:
        n = values.shape[1]
        if 1 in values.shape:
            raise ValueError(
                f"y[{i}] has shape {values.shape}, and a curve is a sequence of single numbers; "
                "pass [np.ravel(curve) for curve in y]."
            )
        raise ValueError(
            f"y[{i}] has shape {values.shape}, and a curve is a sequence of single numbers. For "
            f"{n} variables, pass [tuple(np.transpose(series)) for series in y], and kernel="
            f"Tuples([kernel] * {n}) of okforest.kernels."
        )
    if values.ndim != 1 or not len(values):
        raise ValueError(f"y[{i}] has shape {values.shape}; it must hold at least one number.")
    return values


def resample(values: Floats, n_points: int) -> Floats:
    """Return a curve at evenly spaced points from its begin to its end, by interpolation."""
    if len(values) == n_points:
        return values
    return np.interp(np.linspace(0.0, 1.0, n_points), np.linspace(0.0, 1.0, len(values)), values)


def check_count(name: str, value: Any, least: int) -> None:
    """Raise a ValueError unless a parameter is a large enough integer."""
    if not is_integer(value) or value < least:
        raise ValueError(f"{name}={value!r}; use an integer of at least {least}.")


def trapezoid_weights(points: Floats) -> Floats:
    """Return weights ω with Σ ω_t f(t) = ∫ f by the trapezoidal rule."""
    if len(points) == 1:
        return np.ones(1)
    gaps = np.diff(points)
    return (np.append(gaps, 0.0) + np.append(0.0, gaps)) / 2.0
