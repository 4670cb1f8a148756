"""Kernels on curves, and on distributions of numbers."""

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.compat import Interval
from okforest._utils.distinct import refuse_masked
from okforest._utils.parameters import COUNT, NOT_NEGATIVE, POSITIVE, check_parameters
from okforest.kernels.base import OutputKernel
from okforest.kernels.outputs import array_of_objects, check_collection
from okforest.kernels.sequences import log_alignments, log_own_alignments


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


def trapezoid_weights(points: Floats) -> Floats:
    """Return weights ω with Σ ω_t f(t) = ∫ f by the trapezoidal rule."""
    if len(points) == 1:
        return np.ones(1)
    gaps = np.diff(points)
    return (np.append(gaps, 0.0) + np.append(0.0, gaps)) / 2.0


class Curves(OutputKernel):
    """The integral of the product of two curves, by the trapezoidal rule.

    Parameters
    ----------
    points : array-like of shape (m,), optional
        Where the curves are sampled, ascending; evenly spaced on [0, 1] by default. With
        ``n_points``, where the resampled curves are.
    n_points : int, optional
        Curves of other lengths are resampled to this number of evenly spaced points, by linear
        interpolation from their begin to their end. By default curves of different lengths are an
        error.
    slope : float, default=0.0
        The weight of the integral of the product of the curves' derivatives, which is added (a
        Sobolev kernel): curves are then similar if they also rise and fall alike.

    Examples
    --------
    >>> from okforest.kernels import Curves
    >>> kernel = Curves()
    >>> kernel(kernel.check([[0.0, 1.0, 0.0], [2.0, 2.0, 2.0]]))
    array([[0.5, 1. ],
           [1. , 4. ]])
    """

    known_psd = True
    numeric = True
    default_decoder = "mean"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_points": [Interval(Integral, 2, None, closed="left"), None],
        "slope": [NOT_NEGATIVE],
    }

    def __init__(self, points: Any = None, n_points: int | None = None, slope: float = 0.0):
        self.points = points
        self.n_points = n_points
        self.slope = slope

    def check(self, y: Any) -> Outputs:
        """Return curves as a matrix, one per row."""
        check_parameters(self)
        curves = read_curves(
            y, self.n_points, "pass Curves(n_points=100) to resample them, or curves of one length."
        )
        self._grid(curves.shape[1])
        return curves

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        first = self.features(y)
        return first @ (first if z is None else self.features(z)).T

    def pairs(self, y: Outputs, z: Outputs) -> Floats:
        """Return k(y_i, z_i)."""
        return np.einsum("ij,ij->i", self.features(y), self.features(z))

    def feature_dim(self, y: Outputs) -> int:
        """Return the number of points, and of intervals between them if slopes count."""
        m = int(y.shape[1])
        return m + (m - 1 if self.slope else 0)

    def features(self, y: Outputs) -> Floats:
        """Return the values, and the slopes, times the square roots of quadrature weights."""
        points = self._grid(y.shape[1])
        values = y * np.sqrt(trapezoid_weights(points))
        if not self.slope:
            return values
        slopes = np.diff(y, axis=1) * np.sqrt(self.slope / np.diff(points))
        return np.hstack([values, slopes])

    def _grid(self, m: int) -> Floats:
        if self.points is None:
            return np.linspace(0.0, 1.0, m)
        points = np.asarray(self.points, dtype=np.float64)
        if points.shape != (m,):
            resampled = "" if self.n_points is None else ", after they are resampled to n_points"
            raise ValueError(
                f"points has shape {points.shape}, and curves have {m} values{resampled}; pass one "
                "point per value."
            )
        if m > 1 and not (np.diff(points) > 0).all():
            raise ValueError("points must be ascending, without repetitions.")
        return points


class Wasserstein(OutputKernel):
    """The integral of the product of two quantile functions: distributions of one variable.

    The squared distance in feature space is the squared 2-Wasserstein distance. An output is a
    sample of numbers, of any size; it is represented by its quantiles at evenly spaced levels. The
    weighted mean of quantile functions, which models predict, is the Wasserstein barycentre.

    Parameters
    ----------
    n_levels : int, default=64
        The number of levels, (i + ½) / n_levels.

    Examples
    --------
    >>> from okforest.kernels import Wasserstein
    >>> kernel = Wasserstein(n_levels=4)
    >>> y = kernel.check([[0.0, 1.0], [3.0], [1.0, 2.0, 0.0, 3.0]])
    >>> y
    array([[0., 0., 1., 1.],
           [3., 3., 3., 3.],
           [0., 1., 2., 3.]])
    >>> K = kernel(y)
    >>> float(K[0, 0] + K[1, 1] - 2 * K[0, 1])  # the mean of 3², 3², 2² and 2²
    6.5
    """

    known_psd = True
    numeric = True
    default_decoder = "quantiles"

    _parameter_constraints: ClassVar[dict[str, Any]] = {"n_levels": [COUNT]}

    def __init__(self, n_levels: int = 64):
        self.n_levels = n_levels

    def check(self, y: Any) -> Outputs:
        """Return the quantiles of each sample, of shape (n, n_levels)."""
        check_parameters(self)
        samples = [as_values(sample, i) for i, sample in enumerate(read_rows(y))]
        for i, sample in enumerate(samples):
            if not np.isfinite(sample).all():
                raise ValueError(f"y[{i}] holds NaN or infinite values; remove them.")
        levels = (np.arange(self.n_levels) + 0.5) / self.n_levels
        return np.array([_quantiles(sample, levels) for sample in samples])

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        return y @ (y if z is None else z).T / y.shape[1]

    def pairs(self, y: Outputs, z: Outputs) -> Floats:
        """Return k(y_i, z_i)."""
        return np.einsum("ij,ij->i", y, z) / y.shape[1]

    def feature_dim(self, y: Outputs) -> int:
        """Return the number of levels."""
        return int(y.shape[1])

    def features(self, y: Outputs) -> Floats:
        """Return the quantiles, divided by the square root of their number."""
        return y / np.sqrt(y.shape[1])


def _quantiles(sample: Floats, levels: Floats) -> Floats:
    """Return the inverse of the empirical distribution function."""
    places = np.ceil(levels * len(sample) - 1e-9).astype(int) - 1
    return np.sort(sample)[np.clip(places, 0, len(sample) - 1)]


class GlobalAlignment(OutputKernel):
    """The global alignment kernel: curves are compared up to stretching, of any length.

    It sums over all monotone alignments of two curves the product of the similarities of aligned
    values, and is then normalised to k(y, y) = 1. The similarity is κ = g / (2 − g) with
    g = exp(−(u − v)² / 2σ²), for which the kernel is positive definite. The cost is the product of
    the lengths, for every pair of curves. Predicted curves are arrays.

    Parameters
    ----------
    sigma : float, default=1.0
        The width σ of the similarity of two values.

    References
    ----------
    M. Cuturi, "Fast global alignment kernels", ICML 2011.

    Examples
    --------
    >>> from okforest.kernels import GlobalAlignment
    >>> kernel = GlobalAlignment(sigma=0.5)
    >>> kernel(kernel.check([[0, 1, 0], [0, 0, 1, 0], [1, 1, 1]])).round(2)
    array([[1.  , 0.61, 0.01],
           [0.61, 1.  , 0.  ],
           [0.01, 0.  , 1.  ]])
    """

    known_psd = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {"sigma": [POSITIVE]}

    def __init__(self, sigma: float = 1.0):
        self.sigma = sigma

    def check(self, y: Any) -> Outputs:
        """Return curves as a matrix, or as an array of tuples if their lengths differ."""
        rows = [as_values(curve, i) for i, curve in enumerate(read_rows(y))]
        if not all(np.isfinite(row).all() for row in rows):
            raise ValueError("y holds NaN or infinite values; every value must be known.")
        if len({len(row) for row in rows}) == 1:
            return np.stack(rows)
        return array_of_objects([tuple(row.tolist()) for row in rows])

    def in_form(self, outputs: Outputs) -> Outputs:
        """Return predicted curves as arrays."""
        return self.as_given(outputs)

    def as_given(self, outputs: Outputs) -> Outputs:
        """Return a matrix as it is, and curves of different lengths as an array of arrays."""
        if outputs.dtype != object:
            return outputs
        return array_of_objects([np.array(curve) for curve in outputs])

    def resolve(self, y: Outputs) -> Self:
        """Check the width."""
        check_parameters(self)
        return self

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        logs = log_alignments(y, y if z is None else z, self.sigma)
        row_logs = np.diag(logs) if z is None else log_own_alignments(y, self.sigma)
        column_logs = row_logs if z is None else log_own_alignments(z, self.sigma)
        return np.exp(logs - 0.5 * (row_logs[:, None] + column_logs[None, :]))

    def diag(self, y: Outputs) -> Floats:
        """Return ones."""
        return np.ones(len(y))
