"""Random subseries of time series."""

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from okforest._utils.arrays import Floats, Ints, check_sparse
from okforest._utils.compat import Interval
from okforest._utils.parameters import COUNT, check_parameters
from okforest._utils.plotting import LINE
from okforest.segments.base import (
    MEANS,
    Objects,
    Segmenter,
    Segments,
    below,
    check_range,
    content_seed,
    listed,
    mean_of,
    uniforms,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The rounding error of a point, per step and unit of size.
ROUNDING = 4 * float(np.finfo(np.float64).eps)
LARGEST = float(np.finfo(np.float32).max) / 2  # differences of two values stay finite


class RandomSubseries(Segmenter):
    """Random intervals of time series at several scales, resampled to a few points.

    Lengths and positions are drawn uniformly. An interval is resampled by linear interpolation. Its
    features are the values and derivatives of every variable at these points, standardised within
    the interval; their mean and standard deviation; and where the interval begins and how long it
    is. Series are rows of an array of shape (n, length), an array
    of shape (n, n_variables, length), or a list of arrays of different lengths, (length,) or
    (n_variables, length).

    Parameters
    ----------
    n_segments : int, default=100
        Number of intervals per series.
    length_range : tuple of two floats, default=(0.3, 1.0)
        The least and the largest length, as fractions of the length of the series. Both are rounded
        to whole steps, within the range if possible; an interval has at least two points.
    n_points : int, default=16
        Number of points of a resampled interval.
    normalize : bool, default=True
        Whether the values of a variable are shifted and scaled to mean zero and standard deviation
        one within the interval, and its derivatives scaled alike, so that intervals of the same
        shape are close. The mean and the standard deviation are then features.
    derivatives : bool, default=True
        Whether derivatives (central differences per step of the series) are features.
    position : bool, default=True
        Whether the beginning and the length of the interval, as fractions of the series, are
        features. Without them the model does not know where in the series an interval is.

    Attributes
    ----------
    n_variables_ : int
        Number of variables of the training series; set when a model is fitted.

    See Also
    --------
    SegmentClassifier : Classifies series by their intervals.

    Notes
    -----
    The columns of ``places`` are the first step of the interval and its number of steps.

    References
    ----------
    P. Geurts, L. Wehenkel, "Segment and combine approach for non-parametric time-series
    classification", PKDD 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.segments import RandomSubseries
    >>> segmenter = RandomSubseries(n_segments=5, n_points=4)
    >>> series = segmenter.check([np.arange(10.0), np.arange(25.0)])
    >>> segmenter.cut(series).values.shape
    (10, 12)
    """

    tabular = True
    n_variables_: int

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_segments": [COUNT],
        "n_points": [Interval(Integral, 2, None, closed="left")],
        "normalize": ["boolean"],
        "derivatives": ["boolean"],
        "position": ["boolean"],
    }

    def __init__(
        self,
        n_segments: int = 100,
        *,
        length_range: tuple[float, float] = (0.3, 1.0),
        n_points: int = 16,
        normalize: bool = True,
        derivatives: bool = True,
        position: bool = True,
    ):
        self.n_segments = n_segments
        self.length_range = length_range
        self.n_points = n_points
        self.normalize = normalize
        self.derivatives = derivatives
        self.position = position

    def check(self, X: Any) -> Objects:
        """Return series in canonical form: (n_variables, length), float64.

        Parameters
        ----------
        X : array-like or list
            Series.

        Returns
        -------
        series : list of ndarray
            One array per series.
        """
        check_sparse(X, "X")
        check_parameters(self)
        check_range(self, "length_range")
        if hasattr(X, "shape") and len(X.shape) not in (1, 2, 3):
            raise ValueError(
                f"X has shape {X.shape}; expected (n, length), (n, n_variables, length), or a list "
                "of series."
            )
        items = listed(X, "series")
        series = [_checked(item, f"series {i}") for i, item in enumerate(items)]
        fitted = hasattr(self, "n_variables_")
        expected = self.n_variables_ if fitted else len(series[0]) if series else 1
        others = "the training series" if fitted else "others"
        for i, item in enumerate(series):
            if len(item) != expected:
                raise ValueError(
                    f"series {i} has {len(item)} variables and {others} have {expected}; a series "
                    "has shape (n_variables, length). If the variables are in columns, pass "
                    "series.T."
                )
        return series

    def resolve(self, objects: Objects) -> "RandomSubseries":
        """Return a copy that has learnt the number of variables.

        Parameters
        ----------
        objects : list of ndarray
            The training series, in canonical form.

        Returns
        -------
        segmenter : RandomSubseries
            The copy.
        """
        resolved: RandomSubseries = clone(self)
        resolved.n_variables_ = len(objects[0])
        return resolved

    def cut(self, objects: Objects, seed: int = 0, n_threads: int = 1) -> Segments:
        """Cut series into intervals.

        Parameters
        ----------
        objects : list of ndarray
            Series in canonical form.
        seed : int, default=0
            The seed. The intervals of a series depend on it and on its values alone.
        n_threads : int, default=1
            Not used: this takes little time.

        Returns
        -------
        segments : Segments
            The intervals, series by series.
        """
        series = list(objects)
        total = np.array([item.shape[1] for item in series])[:, None]
        begin, length = self._draw(series, total, seed)
        # Positions of the points from the beginning of their interval: where the series lies in the
        # batch does not change their rounding errors.
        steps = np.linspace(0.0, 1.0, self.n_points)
        x = ((length[..., None] - 1) * steps).reshape(-1, self.n_points)
        offset = np.cumsum(total) - total.ravel()  # position of each series in the batch
        first = (offset[:, None] + begin).reshape(-1, 1)
        last = np.repeat(offset + total.ravel() - 1, self.n_segments)[:, None]
        points, size = _interpolate(np.concatenate(series, axis=1), first, x, last)
        parts = [points]
        if self.derivatives:
            slopes = np.concatenate([_slopes(item) for item in series], axis=1)
            parts.append(_interpolate(slopes, first, x, last)[0])
        if self.normalize:
            rounding = ROUNDING * np.maximum(length, self.n_points).reshape(-1, 1, 1) * size
            parts = _standardised(parts, rounding)
        if self.position:
            relative = np.stack([begin / total, length / total], axis=2)
            parts.append(relative.reshape(-1, 1, 2))
        values = np.hstack([part.reshape(len(x), -1) for part in parts]).astype(np.float32)
        places = np.stack([begin, length], axis=2).reshape(-1, 2).astype(np.int32)
        return Segments(values, np.arange(len(series) + 1) * self.n_segments, places)

    def _draw(
        self, series: list[Floats], total: npt.NDArray[np.intp], seed: int
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Draw the beginnings and lengths of the intervals, shape (n_series, n_segments)."""
        seeds = np.array([content_seed(seed, [item]) for item in series], dtype=np.uint64)
        u = uniforms(seeds, self.n_segments, 2)
        low, high = self.length_range
        shortest = np.minimum(2, total)
        least = np.clip(np.ceil(low * total - 1e-9), shortest, total).astype(np.intp)
        most = np.maximum(least, np.floor(high * total + 1e-9).astype(np.intp))
        length = least + below(u[:, :, 0], most - least + 1)
        return below(u[:, :, 1], total - length + 1), length

    def spread(self, item: Floats, places: Ints, values: Floats) -> Floats:
        """Return the mean over the intervals that cover each time.

        Parameters
        ----------
        item : ndarray of shape (n_variables, length)
            A series.
        places : ndarray of shape (n, 2), int32
            Its intervals.
        values : ndarray of shape (n, q)
            Values of the intervals.

        Returns
        -------
        means : ndarray of shape (length, q)
            NaN where no interval is.
        """
        return spread_intervals(item.shape[1], places, values)

    def plot(self, item: Floats, means: Floats, ax: "Axes") -> None:
        """Draw the series on a coloured band.

        Parameters
        ----------
        item : ndarray of shape (n_variables, length)
            A series.
        means : ndarray of shape (length,)
            A value for each time.
        ax : matplotlib Axes
            Where to draw.
        """
        low, high = item.min(), item.max()
        margin = 0.05 * (high - low) or 0.5
        extent = (-0.5, item.shape[1] - 0.5, low - margin, high + margin)
        band = ax.imshow(means[None, :], aspect="auto", cmap="YlOrBr", extent=extent)
        ax.figure.colorbar(band, ax=ax, label=MEANS)
        ax.plot(item.T, color=LINE)
        ax.set(xlabel="step", ylabel="value")


def spread_intervals(n: int, places: Ints, values: Floats) -> Floats:
    """Return the mean over the intervals (begin, length) that cover each of n positions."""
    ends = np.zeros((n + 1, values.shape[1] + 1))  # values and a count
    counted = np.hstack([values, np.ones((len(values), 1))])
    begin, length = places.T
    np.add.at(ends, begin, counted)
    np.subtract.at(ends, begin + length, counted)
    sums = ends.cumsum(axis=0)[:n]
    return mean_of(sums[:, :-1], np.round(sums[:, -1]))


def _checked(item: Any, name: str) -> Floats:
    try:
        series = np.asarray(item, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} cannot be read as numbers ({error}); expected an array of shape (length,) or "
            "(n_variables, length)."
        ) from error
    series = np.atleast_2d(series) if series.ndim == 1 else series
    if series.ndim != 2:
        raise ValueError(
            f"{name} has shape {series.shape}; expected (length,) or (n_variables, length). Pass a "
            "list of series, not a list of lists of them."
        )
    if series.size == 0:
        raise ValueError(f"{name} has length zero; leave it out.")
    if not np.isfinite(series).all():
        raise ValueError(
            f"{name} has NaN or infinite values; interpolate them, for example with np.interp, or "
            "leave the series out."
        )
    if np.abs(series).max() > LARGEST:
        raise ValueError(
            f"{name} has values beyond the range of float32, such as {np.abs(series).max():.3g}; "
            "rescale it."
        )
    return np.ascontiguousarray(series)


def _slopes(series: Floats) -> Floats:
    """Return central differences, and one-sided ones at the ends."""
    if series.shape[1] == 1:
        return np.zeros_like(series)
    return np.asarray(np.gradient(series, axis=1))


def _interpolate(
    joined: Floats, first: npt.NDArray[np.intp], x: Floats, last: npt.NDArray[np.intp]
) -> tuple[Floats, Floats]:
    """Return all variables at the points first + x, shape (n, n_variables, n_points).

    Also return the largest absolute value that they are interpolated from, one for each interval
    and variable: rounding errors are proportional to it.
    """
    whole = x.astype(np.intp)
    left = np.minimum(first + whole, last)
    right = np.minimum(left + 1, last)
    low, high = joined[:, left], joined[:, right]
    values = low + (x - whole) * (high - low)
    size = np.maximum(np.abs(low), np.abs(high)).max(axis=2, keepdims=True)
    return np.moveaxis(values, 0, 1), np.moveaxis(size, 0, 1)


def _standardised(parts: list[Floats], rounding: Floats) -> list[Floats]:
    """Return values (and derivatives) in units of their deviation, the means and the deviations.

    A deviation within the rounding errors is zero, and so are the values; derivatives keep their
    unit.
    """
    points, *slopes = parts
    mean, deviation = points.mean(axis=2, keepdims=True), points.std(axis=2, keepdims=True)
    constant = deviation <= rounding
    scale = np.where(constant, 1.0, deviation)
    values = np.where(constant, 0.0, (points - mean) / scale)
    slopes = [
        np.where(constant & (np.abs(slope) <= rounding), 0.0, slope / scale) for slope in slopes
    ]
    return [values, *slopes, mean, np.where(constant, 0.0, deviation)]
