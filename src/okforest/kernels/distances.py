"""Distances between vectors, their median, and their limits in float64."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist, squareform

from okforest._utils.arrays import Floats, Outputs, namespace, on_gpu, to_host
from okforest._utils.resources import blocks_with_sums, row_blocks

InPlace = Callable[[Floats], object]  # a function that changes its argument

MEDIAN_SAMPLE = 1000  # sigma="median" is computed from at most this number of outputs
MIDDLE_SAMPLE = 4096  # values between whose percentiles the median is searched
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


def between(distances: Floats) -> Floats:
    """Return the distances between different outputs, each once, given those of all pairs."""
    pairs: Floats = squareform(to_host(distances), checks=False)
    return pairs


def median_distance(powers: Floats, power: int = 1) -> float:
    """Return the median of the positive distances between outputs, or 1 if all are zero.

    They are given raised to a power.
    """
    powers = powers[powers > 0]
    return float((_middle(powers) ** (1 / power)).mean()) if len(powers) else 1.0


def _middle(values: Floats) -> Floats:
    """Return the one or two middle values, of which the median is the mean.

    They are searched among the values near the median of a sample: faster than `np.median`.
    """
    n = len(values)
    sample = np.sort(values[:: max(1, n // MIDDLE_SAMPLE)])
    low, high = sample[int(0.45 * len(sample))], sample[int(0.55 * len(sample))]
    near = values[(values >= low) & (values <= high)]
    first = (n - 1) // 2 - int(np.count_nonzero(values < low))
    last = first + 1 - n % 2
    if not 0 <= first <= last < len(near):  # the sample is not like the values
        near, first, last = values, (n - 1) // 2, n // 2
    return np.partition(near, [first, last])[first : last + 1]


def manhattan(a: Floats, b: Floats | None = None) -> Floats:
    """Return the sums of absolute differences between rows."""
    if on_gpu(a):
        b = a if b is None else b
        total: Floats = namespace(a).zeros((len(a), len(b)))
        for j in range(a.shape[1]):
            total += abs(a[:, j, None] - b[None, :, j])
        return total
    if b is not None:
        distances: Floats = cdist(a, b, "cityblock")
        return distances
    distances = np.empty((len(a), len(a)))
    for rows in row_blocks(distances):
        distances[rows, : rows.stop] = cdist(a[rows], a[: rows.stop], "cityblock")
        distances[: rows.start, rows] = distances[rows, : rows.start].T  # above the diagonal
    return distances


def negative_halves(
    products: Floats, norms: Floats, other_norms: Floats, then: InPlace | None = None
) -> Floats:
    """Return −d² / 2 in place of inner products, given squared norms.

    ``then`` changes each block of rows in place, while it is in the cache.
    """
    for part, sums in blocks_with_sums(products, norms / 2.0, other_norms / 2.0):
        np.minimum(part, sums, out=part)
        part -= sums
        if then is not None:
            then(part)
    return products


def gaussian(halves: Floats, sigma: float) -> Floats:
    """Return exp(−d² / 2σ²) in place of −d² / 2."""
    # A subnormal sigma has no reciprocal; the smallest normal one gives the same zeros and ones.
    scale = 1.0 / max(sigma, sys.float_info.min)
    with np.errstate(over="ignore"):  # exp(−∞) is 0
        halves *= scale
        halves *= scale
        return np.exp(halves, out=halves)


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
    is_zero = may_be_zero or not (spread or (rows != rows[0]).any())
    check_limits(name, what, spread, is_zero=is_zero)


def check_limits(name: str, what: str, largest: float, *, is_zero: bool) -> None:
    """Raise a ValueError if the largest distance is not a safe float64, zero excepted."""
    if SMALLEST <= largest <= LARGEST or (is_zero and largest < SMALLEST):
        return
    raise ValueError(
        f"{name} got outputs with {what} of up to {largest:.3g}, at the limit of float64; rescale "
        f"them, so that the largest is between {SMALLEST:g} and {LARGEST:g}."
    )
