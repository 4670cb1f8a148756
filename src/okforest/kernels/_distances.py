"""Distances between vectors, their median, and their limits in float64."""

from typing import Any

import numpy as np
from sklearn.metrics.pairwise import manhattan_distances

from okforest._namespace import namespace, on_gpu
from okforest._typing import Floats, Outputs

MEDIAN_SAMPLE = 1000  # sigma="median" is computed from at most this number of outputs
# Beyond these limits, distances or their squares overflow, or lose digits near the smallest number.
SMALLEST, LARGEST = 1e-290, 1e290
# Below this share of the largest norm, sigma is comparable to the rounding errors of distances that
# are computed from inner products, and differences are used instead.
NARROW = 1e-5


def as_rows(y: Outputs) -> Floats:
    """Return outputs as a float64 matrix; numbers, of shape (n,), become one column."""
    return namespace(y).asarray(y, dtype=np.float64).reshape(len(y), -1)


def evenly_spaced(y: Outputs) -> Outputs:
    """Return the outputs from which a median distance is computed."""
    return y[np.linspace(0, len(y) - 1, min(len(y), MEDIAN_SAMPLE)).astype(int)]


def is_median(sigma: Any) -> bool:
    """Return whether sigma is the word "median"."""
    return isinstance(sigma, str) and sigma == "median"


def median_distance(distances: Floats) -> float:
    """Return the median of the positive distances between outputs, or 1 if all are zero."""
    between = distances[np.triu_indices_from(distances, k=1)]
    between = between[between > 0]
    return float(np.median(between)) if len(between) else 1.0


def manhattan(a: Floats, b: Floats | None = None) -> Floats:
    """Return the sums of absolute differences between rows."""
    b = a if b is None else b
    if not on_gpu(a):
        distances: Floats = manhattan_distances(a, b)
        return distances
    total = namespace(a).zeros((len(a), len(b)))
    for j in range(a.shape[1]):
        total += abs(a[:, j, None] - b[None, :, j])
    return total


def needs_differences(sigma: float, squares: Floats, other_squares: Floats) -> bool:
    """Return whether sigma is comparable to the rounding errors of distances between centred rows.

    They are given by their squared norms. This is never so on a GPU, where distances are computed
    from inner products only.
    """
    if on_gpu(squares):
        return False
    largest = max(squares.max(initial=0.0), other_squares.max(initial=0.0))
    return bool(sigma < NARROW * np.sqrt(largest))


def check_spread(name: str, y: Outputs, power: int, *, may_be_zero: bool) -> None:
    """Raise a ValueError if distances, raised to a power, overflow or underflow in float64.

    With ``may_be_zero``, sigma is so much larger than outputs that underflow does not matter.
    """
    rows = as_rows(y)
    if len(rows) == 0:
        return
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        spread = float((abs(rows - rows[0]) ** power).sum(axis=1).max())
    what = "squared distances" if power == 2 else "distances"
    check_limits(name, what, spread, is_zero=may_be_zero or not (rows != rows[0]).any())


def check_limits(name: str, what: str, largest: float, *, is_zero: bool) -> None:
    """Raise a ValueError if the largest distance is not a safe float64, zero excepted."""
    if SMALLEST <= largest <= LARGEST or (is_zero and largest < SMALLEST):
        return
    raise ValueError(
        f"{name} got outputs with {what} of up to {largest:.3g}, at the limit of float64; rescale "
        f"them, so that the largest is between {SMALLEST:g} and {LARGEST:g}."
    )
