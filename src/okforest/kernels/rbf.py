"""The radial basis function and Laplacian kernels, and distances with small rounding errors."""

import sys
from collections.abc import Callable
from math import sqrt
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.spatial.distance import cdist, squareform

from okforest._utils.arrays import Floats, Outputs, namespace, on_gpu, to_host
from okforest._utils.compat import StrOptions
from okforest._utils.parameters import POSITIVE, check_parameters
from okforest._utils.resources import blocks_with_sums, row_blocks
from okforest.kernels.as_kernel import as_kernel
from okforest.kernels.base import OutputKernel
from okforest.kernels.vectors import Linear, VectorKernel, as_rows

InPlace = Callable[[Floats], object]  # a function that changes its argument

MEDIAN_SAMPLE = 1000  # sigma="median" is computed from at most this number of outputs
MIDDLE_SAMPLE = 4096  # values between whose percentiles the median is searched
# Beyond these limits, distances or their squares overflow, or lose digits near the smallest number.
SMALLEST, LARGEST = 1e-290, 1e290
# Below this share of the largest norm, sigma is comparable to the rounding errors of distances that
# are computed from inner products, and differences are used instead.
NARROW = 1e-5
WIDTH = {"sigma": [POSITIVE, StrOptions({"median"})]}


class RBF(OutputKernel):
    """The radial basis function kernel exp(−‖y − y'‖² / 2σ²).

    Parameters
    ----------
    sigma : float or "median", default="median"
        The width σ; "median" is the median distance between training outputs (between 1,000
        evenly spaced ones if there are more).
    base : OutputKernel, optional
        A kernel whose distance ‖φ(y) − φ(y')‖ replaces the Euclidean distance.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import RBF, Precomputed
    >>> RBF(sigma=1.0)(np.array([0.0, 2.0])).round(3)
    array([[1.   , 0.135],
           [0.135, 1.   ]])

    With the distances of a given Gram matrix; outputs are positions in it:

    >>> RBF(sigma=1.0, base=Precomputed(np.eye(2)))(np.array([0, 1])).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = WIDTH

    def __init__(
        self, sigma: float | Literal["median"] = "median", base: OutputKernel | None = None
    ):
        self.sigma = sigma
        self.base = base

    @property
    def known_psd(self) -> bool:  # type: ignore[override]
        """Whether the base kernel is positive semi-definite by construction."""
        return self._base.known_psd

    @property
    def on_device(self) -> bool:  # type: ignore[override]
        """Whether the base kernel takes arrays on a GPU."""
        return self._base.on_device

    @property
    def _base(self) -> OutputKernel:
        return Linear() if self.base is None else as_kernel(self.base)

    @property
    def numeric(self) -> bool:  # type: ignore[override]
        """Whether outputs are numbers or vectors of numbers."""
        return self._base.numeric

    def check(self, y: Any) -> Outputs:
        """Return y in the canonical form of the base kernel."""
        return self._base.check(y)

    def resolve(self, y: Outputs) -> "RBF":
        """Fill in the median distance."""
        base = None if self.base is None else self._base.resolve(y)
        sigma = self.sigma
        median = is_median(sigma)
        check_parameters(self)
        if base is None:
            wide = not median and float(sigma) >= sqrt(SMALLEST)
            check_spread("RBF", y, 2, may_be_zero=wide)
        if median:
            squares = -2.0 * between(RBF(1.0, base)._negative_halves(evenly_spaced(y)))
            if base is not None:
                largest = float(squares.max(initial=0.0))
                check_limits("RBF", "squared distances", largest, is_zero=largest == 0)
            sigma = median_distance(squares, 2)
        return RBF(sigma, base)

    def restrict(self, y: Outputs) -> "RBF":
        """Restrict the base kernel; return this one if there is nothing to drop."""
        restricted = None if self.base is None else self._base.restrict(y)
        return self if restricted is self.base else RBF(self.sigma, restricted)

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        sigma = _known_width(self)
        K = self._negative_halves(y, z, sigma, lambda halves: gaussian(halves, sigma))
        if z is None:
            np.fill_diagonal(K, 1.0)
        return K

    def diag(self, y: Outputs) -> Floats:
        """Return ones."""
        return namespace(y).ones(len(y))

    def pairs(self, y: Outputs, z: Outputs) -> Floats:
        """Return k(y_i, z_i)."""
        sigma = _known_width(self)
        base = self._base
        if self.base is None:
            halves = ((as_rows(y) - as_rows(z)) ** 2).sum(axis=1) / -2.0
        else:
            halves = np.minimum(base.pairs(y, z) - (base.diag(y) + base.diag(z)) / 2.0, 0.0)
        return gaussian(halves, sigma)

    def phases(self, y: Outputs, n: int, rng: np.random.Generator) -> Floats:
        """Return the features of the base kernel times normal frequencies of variance 1 / σ²."""
        if self._base.feature_dim(y) is None:
            return super().phases(y, n, rng)
        features = self._base.features(y)
        frequencies = rng.standard_normal((features.shape[1], n)) / float(self.sigma)
        return features @ namespace(features).asarray(frequencies)

    def _negative_halves(
        self,
        y: Outputs,
        z: Outputs | None = None,
        sigma: float = np.inf,
        then: InPlace | None = None,
    ) -> Floats:
        """Return −d² / 2 for distances d that are exact enough for this sigma.

        The diagonal of a symmetric matrix has rounding errors. ``then`` changes blocks in place.
        """
        base, first, second = self._base, y, y if z is None else z
        if self.base is None:  # centring reduces rounding errors
            origin = as_rows(y).mean(axis=0)
            y, z = as_rows(y) - origin, None if z is None else as_rows(z) - origin
        norms = base.diag(y)
        other_norms = norms if z is None else base.diag(z)
        if self.base is None and needs_differences(sigma, norms, other_norms):
            exact: Floats = cdist(as_rows(first), as_rows(second), "sqeuclidean")
            exact /= -2.0
            if then is not None:
                then(exact)
            return exact
        return negative_halves(base(y, z), norms, other_norms, then)


class Laplacian(VectorKernel):
    """The Laplacian kernel exp(−‖y − y'‖₁ / σ).

    Parameters
    ----------
    sigma : float or "median", default="median"
        The width σ; "median" is the median distance between training outputs (between 1,000
        evenly spaced ones if there are more).

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import Laplacian
    >>> Laplacian(sigma=1.0)(np.array([0.0, 2.0])).round(3)
    array([[1.   , 0.135],
           [0.135, 1.   ]])
    """

    on_device = True

    _parameter_constraints: ClassVar[dict[str, Any]] = WIDTH

    def __init__(self, sigma: float | Literal["median"] = "median"):
        self.sigma = sigma

    def resolve(self, y: Outputs) -> "Laplacian":
        """Fill in the median distance."""
        sigma = self.sigma
        median = is_median(sigma)
        check_parameters(self)
        wide = not median and float(sigma) >= SMALLEST
        check_spread("Laplacian", y, 1, may_be_zero=wide)
        if median:
            sigma = median_distance(between(manhattan(as_rows(evenly_spaced(y)))))
        return Laplacian(sigma)

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        sigma = _known_width(self)
        K = manhattan(as_rows(y), None if z is None else as_rows(z))
        K /= -sigma
        return np.exp(K, out=K)

    def diag(self, y: Outputs) -> Floats:
        """Return ones."""
        return namespace(y).ones(len(y))

    def phases(self, y: Outputs, n: int, rng: np.random.Generator) -> Floats:
        """Return the outputs times Cauchy frequencies of scale 1 / σ."""
        rows = as_rows(y)
        frequencies = rng.standard_cauchy((rows.shape[1], n)) / float(self.sigma)
        return rows @ namespace(rows).asarray(frequencies)


def _known_width(kernel: Any) -> float:
    """Return sigma of a resolved kernel."""
    sigma = kernel.sigma
    if is_median(sigma):
        raise ValueError(
            f"{type(kernel).__name__}(sigma='median') computes sigma from the training outputs; "
            "fit a model with it, or call resolve(y) first."
        )
    if not (type(sigma) is float and 0 < sigma < np.inf):
        check_parameters(kernel)
    return float(sigma)


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
