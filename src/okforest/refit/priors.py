"""Prior knowledge about predictions, as linear constraints at points.

Each prior lists points (training rows, or points derived from them or given by the user) and linear
constraints on the predictions at these points. The refits solve their programme subject to them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from okforest._compat import rows_of
from okforest._typing import Floats

MOST_POINTS = 100  # training rows that a prior takes by default, evenly spaced

ScaleFunction = Callable[[Floats], Floats]


class PointConstraints(NamedTuple):
    """Points, and constraints lower ≤ E f ≤ upper on their predictions.

    The column of output k at point i is i·q + k.
    """

    points: Any
    matrix: sp.csr_array
    lower: Floats
    upper: Floats


class Prior(ABC, BaseEstimator):
    """A property that predictions must have at points.

    To add a prior, subclass it and write :meth:`constraints`.
    """

    points: Any = None

    @abstractmethod
    def constraints(self, X: Any, n_outputs: int, scale: ScaleFunction) -> PointConstraints:
        """Return the constraints.

        Parameters
        ----------
        X : array or frame of shape (n, p)
            The training inputs.
        n_outputs : int
            Number q of values of an output.
        scale : callable
            Converts values of outputs to the scale on which the model is fitted.
        """

    def _points(self, X: Any) -> Any:
        if self.points is not None:
            return self.points
        some = np.unique(np.linspace(0, _length(X) - 1, MOST_POINTS).astype(int))
        return rows_of(X, some)


class Monotone(Prior):
    """Predictions increase, or decrease, with a feature.

    At every point, the feature takes a range of values while the others stay as they are. Between
    two values, predictions may still vary.

    Parameters
    ----------
    feature : int or str
        The position of the feature, or its name in a frame.
    increasing : bool, default=True
        Whether predictions increase.
    output : int, default=0
        The position of the value of an output that the prior is about.
    n_values : int, default=10
        Number of values, quantiles of the feature in the training rows.
    points : array-like of shape (m, p), optional
        Points; by default at most 100 of the training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest import OKExtraTrees
    >>> from okforest.refit import Monotone, SemiSupervisedForest
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(60, 1))
    >>> y = X[:, 0] + rng.normal(0.0, 0.3, size=60)
    >>> forest = OKExtraTrees(20, min_samples_leaf=5, random_state=0)
    >>> model = SemiSupervisedForest(forest, laplacian=None, priors=[Monotone(0)]).fit(X, y)
    >>> f = model.predict(np.quantile(X, np.linspace(0, 1, 10))[:, None])
    >>> bool((np.diff(f) >= -1e-6).all())
    True
    """

    def __init__(
        self,
        feature: Any,
        increasing: bool = True,
        output: int = 0,
        n_values: int = 10,
        points: Any = None,
    ):
        self.feature = feature
        self.increasing = increasing
        self.output = output
        self.n_values = n_values
        self.points = points

    def constraints(self, X: Any, n_outputs: int, scale: ScaleFunction) -> PointConstraints:
        """Return f(next value) − f(value) ≥ 0 at every point."""
        column = np.asarray(_column(X, self.feature), dtype=np.float64)
        values = np.unique(np.nanquantile(column, np.linspace(0.0, 1.0, self.n_values)))
        points = self._points(X)
        n, m = _length(points), len(values)
        varied = _repeated(points, m, {self.feature: np.tile(values, n)})
        steps = np.arange(n * m).reshape(n, m)
        first, second = steps[:, :-1].ravel(), steps[:, 1:].ravel()
        sign = 1.0 if self.increasing else -1.0
        columns = np.column_stack([second, first]) * n_outputs + _position(self.output, n_outputs)
        matrix = _rows(columns, np.tile([sign, -sign], (len(first), 1)), n * m * n_outputs)
        return PointConstraints(varied, matrix, np.zeros(len(first)), np.full(len(first), np.inf))


class Bounds(Prior):
    """Predictions lie between two bounds.

    Parameters
    ----------
    lower, upper : float or None, default=None
        The bounds; None for no bound.
    output : int, default=0
        The position of the value of an output that the prior is about.
    points : array-like of shape (m, p), optional
        Points; by default at most 100 of the training rows.
    """

    def __init__(
        self,
        lower: float | None = None,
        upper: float | None = None,
        output: int = 0,
        points: Any = None,
    ):
        self.lower = lower
        self.upper = upper
        self.output = output
        self.points = points

    def constraints(self, X: Any, n_outputs: int, scale: ScaleFunction) -> PointConstraints:
        """Return lower ≤ f ≤ upper at every point."""
        points = self._points(X)
        n = _length(points)
        columns = np.arange(n)[:, None] * n_outputs + _position(self.output, n_outputs)
        lower = -np.inf if self.lower is None else float(scale(np.array([self.lower]))[0])
        upper = np.inf if self.upper is None else float(scale(np.array([self.upper]))[0])
        matrix = _rows(columns, np.ones((n, 1)), n * n_outputs)
        return PointConstraints(points, matrix, np.full(n, lower), np.full(n, upper))


class LinearRelation(Prior):
    """A known linear relation between the values of an output, such as y₁ = y₂ + y₃.

    Parameters
    ----------
    coefficients : array-like of shape (q,)
        The coefficients a of aᵀy: ``[1, -1, -1]`` for y₁ − y₂ − y₃.
    lower, upper : float, default=0.0
        Bounds of aᵀy; equal ones make it an equation. ``[-1, 1]`` with ``upper=np.inf`` is the
        order y₁ ≤ y₂.
    points : array-like of shape (m, p), optional
        Points; by default at most 100 of the training rows.
    """

    def __init__(
        self, coefficients: Any, lower: float = 0.0, upper: float = 0.0, points: Any = None
    ):
        self.coefficients = coefficients
        self.lower = lower
        self.upper = upper
        self.points = points

    def constraints(self, X: Any, n_outputs: int, scale: ScaleFunction) -> PointConstraints:
        """Return lower ≤ aᵀf ≤ upper at every point."""
        a = np.asarray(self.coefficients, dtype=np.float64)
        if a.shape != (n_outputs,):
            raise ValueError(
                f"LinearRelation has coefficients of shape {a.shape}; outputs with {n_outputs} "
                f"values need ({n_outputs},)."
            )
        points = self._points(X)
        n = _length(points)
        columns = np.arange(n * n_outputs).reshape(n, n_outputs)
        matrix = _rows(columns, np.tile(a, (n, 1)), n * n_outputs)
        lower, upper = np.full(n, float(self.lower)), np.full(n, float(self.upper))
        return PointConstraints(points, matrix, lower, upper)


class Order(Prior):
    """One value of the outputs is never larger than another.

    Parameters
    ----------
    smaller, larger : int
        Positions of the two values.
    points : array-like of shape (m, p), optional
        Points; by default at most 100 of the training rows.
    """

    def __init__(self, smaller: int, larger: int, points: Any = None):
        self.smaller = smaller
        self.larger = larger
        self.points = points

    def constraints(self, X: Any, n_outputs: int, scale: ScaleFunction) -> PointConstraints:
        """Return f_larger − f_smaller ≥ 0 at every point."""
        a = np.zeros(n_outputs)
        a[_position(self.larger, n_outputs)] += 1.0
        a[_position(self.smaller, n_outputs)] -= 1.0
        return LinearRelation(a, 0.0, np.inf, self.points).constraints(X, n_outputs, scale)


class Symmetry(Prior):
    """Predictions do not change under a transformation of the inputs.

    Parameters
    ----------
    transform : callable
        ``transform(X)`` returns the transformed points, in the same order.
    points : array-like of shape (m, p), optional
        Points; by default at most 100 of the training rows.
    """

    def __init__(self, transform: Callable[[Any], Any], points: Any = None):
        self.transform = transform
        self.points = points

    def constraints(self, X: Any, n_outputs: int, scale: ScaleFunction) -> PointConstraints:
        """Return f(x) − f(transform(x)) = 0 at every point."""
        points = self._points(X)
        n = _length(points)
        images = self.transform(points)
        if _length(images) != n:
            raise ValueError(
                f"the transform of Symmetry returned {_length(images)} rows for {n} points; it "
                "must return one row for each."
            )
        size = n * n_outputs
        columns = np.column_stack([np.arange(size), np.arange(size) + size])
        matrix = _rows(columns, np.tile([1.0, -1.0], (size, 1)), 2 * size)
        return PointConstraints(_stack(points, images), matrix, np.zeros(size), np.zeros(size))


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _column(X: Any, feature: Any) -> Any:
    if hasattr(X, "columns"):
        return X[feature] if isinstance(feature, str) else X[list(X.columns)[feature]]
    if isinstance(feature, str):
        raise ValueError(f"feature={feature!r} is a name, and X has none; pass a position.")
    return np.asarray(X)[:, feature]


def _repeated(points: Any, times: int, values: dict[Any, Floats]) -> Any:
    """Return every point several times, with new values of a feature."""
    repeated = rows_of(points, np.repeat(np.arange(_length(points)), times))
    for feature, column in values.items():
        if hasattr(repeated, "columns"):
            name = feature if isinstance(feature, str) else list(repeated.columns)[feature]
            repeated = repeated.assign(**{str(name): column})
        else:
            repeated = np.array(repeated, dtype=np.float64)
            repeated[:, feature] = column
    return repeated


def _stack(a: Any, b: Any) -> Any:
    if hasattr(a, "columns"):
        return rows_of(_concatenated(a, b), np.arange(_length(a) + _length(b)))
    return np.concatenate([np.asarray(a), np.asarray(b)])


def _concatenated(a: Any, b: Any) -> Any:
    import pandas as pd

    return pd.concat([a, b], ignore_index=True)


def _position(output: int, n_outputs: int) -> int:
    if not 0 <= output < n_outputs:
        raise ValueError(
            f"a prior is about the value {output} of the outputs, which have {n_outputs}; "
            f"positions go from 0 to {n_outputs - 1}."
        )
    return output


def _rows(columns: Any, values: Floats, width: int) -> sp.csr_array:
    n, k = columns.shape
    parts = (values.ravel(), columns.ravel(), np.arange(0, n * k + 1, k))
    return sp.csr_array(parts, shape=(n, width))
