"""Prior knowledge about predictions, as linear constraints at points.

Each prior lists points (training rows, or points derived from them or given by the user) and linear
constraints on the predictions at these points. The refits solve their programme subject to them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone

from okforest._utils.arrays import Floats, check_sparse
from okforest._utils.compat import Interval, rows_of
from okforest._utils.frames import as_floats, column, frame_of, is_frame, label, library_of
from okforest._utils.parameters import as_integer

MOST_POINTS = 100  # largest number of training rows, evenly spaced, of a prior without points

ScaleFunction = Callable[[Floats], Floats]


class PointConstraints(NamedTuple):
    """Points, and constraints lower ≤ E f ≤ upper on their predictions.

    The column of output k at point i is i·q + k. If ``points`` is None, they are the training rows.
    """

    points: Any
    matrix: sp.csr_array
    lower: Floats
    upper: Floats


class Prior(ABC, BaseEstimator):
    """A property that predictions must have at points.

    To add a prior, subclass it and write :meth:`constraints`.

    Examples
    --------
    >>> from okforest.refit import Bounds, Monotone, Prior
    >>> issubclass(Bounds, Prior), issubclass(Monotone, Prior)
    (True, True)
    """

    points: Any = None
    _parameter_constraints: ClassVar[dict[str, Any]] = {}

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
            Converts values of outputs to the scale on which the model is fitted. Values beyond all
            possible predictions become infinite.
        """

    def _points(self, X: Any) -> Any:
        """Return the given points, or some training rows."""
        if self.points is not None:
            return self.points
        check_sparse(X, "X")
        chosen = np.unique(np.linspace(0, n_rows(X) - 1, MOST_POINTS).astype(int))
        return rows_of(X, chosen)

    def _n_points(self, X: Any) -> int:
        """Return the number of given points, or of all training rows."""
        check_sparse(X, "X")
        return n_rows(X if self.points is None else self.points)

    def __str__(self) -> str:
        """Return the parameters, without the values of points."""
        if self.points is None:
            return repr(self)
        return repr(clone(self).set_params(points=f"{n_rows(self.points)} points"))


class Monotone(Prior):
    """Predictions increase, or decrease, with a feature.

    At every point, the feature takes a range of values while the others stay as they are. Between
    two values, predictions may still vary. The cost grows with points × values: for a model of one
    or two features many values at few points are best.

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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "increasing": ["boolean"],
        "output": [Integral],
        "n_values": [Interval(Integral, 2, None, closed="left")],
    }

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
        check_sparse(X, "X")
        j = position_of(self.feature, X)
        levels = np.linspace(0.0, 1.0, self.n_values)
        values = np.unique(np.nanquantile(numbers_of(X, j), levels))
        points = self._points(X)
        n, m = n_rows(points), len(values)
        varied = repeated(points, m, j, np.tile(values, n))
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
        The bounds, in the unit of y, whatever the ``scale`` of a :class:`CensoredForest`; None for
        no bound.
    output : int, default=0
        The position of the value of an output that the prior is about.
    points : array-like of shape (m, p), optional
        Points; by default all training rows. Predictions of other inputs may leave the bounds a
        little.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest import OKExtraTrees
    >>> from okforest.refit import Bounds, SemiSupervisedForest
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(60, 1))
    >>> y = X[:, 0] + rng.normal(0.0, 0.3, size=60)
    >>> forest = OKExtraTrees(20, min_samples_leaf=5, random_state=0)
    >>> model = SemiSupervisedForest(forest, laplacian=None, priors=[Bounds(0.2, 0.8)]).fit(X, y)
    >>> f = model.predict(X)
    >>> bool(f.min() > 0.2 - 1e-6 and f.max() < 0.8 + 1e-6)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "lower": [Real, None],
        "upper": [Real, None],
        "output": [Integral],
    }

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
        lower, upper = self._scaled(scale)
        n = self._n_points(X)
        columns = np.arange(n)[:, None] * n_outputs + _position(self.output, n_outputs)
        matrix = _rows(columns, np.ones((n, 1)), n * n_outputs)
        return PointConstraints(self.points, matrix, np.full(n, lower), np.full(n, upper))

    def _scaled(self, scale: ScaleFunction) -> tuple[float, float]:
        """Return the bounds on the scale of the fit; raise a ValueError if none are possible."""
        lower, upper = _bounds(self)
        low, high = (float(value) for value in scale(np.array([lower, upper])))
        if low == np.inf or high == -np.inf:
            raise ValueError(
                f"{self} cannot hold: predictions of times lie between 0 and the last time of the "
                "scale. With scale=None they may be any numbers."
            )
        return low, high


class LinearRelation(Prior):
    """A known linear relation between the values of an output, such as y₁ = y₂ + y₃.

    Parameters
    ----------
    coefficients : array-like of shape (q,)
        The coefficients a of aᵀy: ``[1, -1, -1]`` for y₁ − y₂ − y₃.
    lower, upper : float or None, default=0.0
        Bounds of aᵀy, None for no bound; equal ones make it an equation. ``[-1, 1]`` with
        ``upper=None`` is the order y₁ ≤ y₂.
    points : array-like of shape (m, p), optional
        Points; by default all training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest import OKExtraTrees
    >>> from okforest.refit import LinearRelation, SemiSupervisedForest
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(60, 1))
    >>> parts = np.column_stack([X[:, 0], 1 - X[:, 0]])
    >>> Y = np.column_stack([parts.sum(axis=1), parts]) + rng.normal(0.0, 0.1, size=(60, 3))
    >>> forest = OKExtraTrees(20, min_samples_leaf=5, random_state=0)
    >>> prior = LinearRelation([1, -1, -1])  # the first is the sum of the others
    >>> model = SemiSupervisedForest(forest, laplacian=None, priors=[prior]).fit(X, Y)
    >>> bool(np.abs(model.predict(X) @ [1, -1, -1]).max() < 1e-5)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "lower": [Real, None],
        "upper": [Real, None],
    }

    def __init__(
        self,
        coefficients: Any,
        lower: float | None = 0.0,
        upper: float | None = 0.0,
        points: Any = None,
    ):
        self.coefficients = coefficients
        self.lower = lower
        self.upper = upper
        self.points = points

    def constraints(self, X: Any, n_outputs: int, scale: ScaleFunction) -> PointConstraints:
        """Return lower ≤ aᵀf ≤ upper at every point."""
        try:
            a = np.asarray(self.coefficients, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{self}; pass coefficients that are numbers.") from None
        if a.shape != (n_outputs,):
            raise ValueError(
                f"LinearRelation has coefficients of shape {a.shape}; outputs with {n_outputs} "
                f"values need ({n_outputs},)."
            )
        if not np.isfinite(a).all() or not a.any():
            raise ValueError(f"{self}; pass finite coefficients that are not all 0.")
        lower, upper = _bounds(self)
        if n_outputs == 1:  # bounds of a single number, which may have a scale
            low, high = sorted([lower / a[0], upper / a[0]])
            return Bounds(low, high, points=self.points).constraints(X, 1, scale)
        n = self._n_points(X)
        columns = np.arange(n * n_outputs).reshape(n, n_outputs)
        matrix = _rows(columns, np.tile(a, (n, 1)), n * n_outputs)
        return PointConstraints(self.points, matrix, np.full(n, lower), np.full(n, upper))


class Order(Prior):
    """One value of the outputs is never larger than another.

    Parameters
    ----------
    smaller, larger : int
        Positions of the two values.
    points : array-like of shape (m, p), optional
        Points; by default all training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest import OKExtraTrees
    >>> from okforest.refit import Order, SemiSupervisedForest
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(60, 1))
    >>> Y = np.column_stack([X[:, 0], X[:, 0] + 0.1]) + rng.normal(0.0, 0.2, size=(60, 2))
    >>> forest = OKExtraTrees(20, min_samples_leaf=5, random_state=0)
    >>> model = SemiSupervisedForest(forest, laplacian=None, priors=[Order(0, 1)]).fit(X, Y)
    >>> bool((np.diff(model.predict(X)) > -1e-6).all())
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "smaller": [Integral],
        "larger": [Integral],
    }

    def __init__(self, smaller: int, larger: int, points: Any = None):
        self.smaller = smaller
        self.larger = larger
        self.points = points

    def constraints(self, X: Any, n_outputs: int, scale: ScaleFunction) -> PointConstraints:
        """Return f_larger − f_smaller ≥ 0 at every point."""
        if self.smaller == self.larger:
            raise ValueError(f"{self} compares a value with itself; pass two positions.")
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

    Examples
    --------
    >>> import numpy as np
    >>> from okforest import OKExtraTrees
    >>> from okforest.refit import SemiSupervisedForest, Symmetry
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(60, 1))
    >>> forest = OKExtraTrees(20, min_samples_leaf=5, random_state=0)
    >>> prior = Symmetry(lambda X: -X)  # f(−x) = f(x)
    >>> model = SemiSupervisedForest(forest, laplacian=None, priors=[prior]).fit(X, X[:, 0] ** 2)
    >>> bool(np.abs(model.predict(X) - model.predict(-X)).max() < 1e-5)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"transform": [callable]}

    def __init__(self, transform: Callable[[Any], Any], points: Any = None):
        self.transform = transform
        self.points = points

    def constraints(self, X: Any, n_outputs: int, scale: ScaleFunction) -> PointConstraints:
        """Return f(x) − f(transform(x)) = 0 at every point."""
        points = self._points(X)
        n = n_rows(points)
        images = self.transform(points)
        check_points(images, X, "the transform of Symmetry returned points of")
        if n_rows(images) != n:
            raise ValueError(
                f"the transform of Symmetry returned {n_rows(images)} rows for {n} points; it "
                "must return one row for each."
            )
        size = n * n_outputs
        columns = np.column_stack([np.arange(size), np.arange(size) + size])
        matrix = _rows(columns, np.tile([1.0, -1.0], (size, 1)), 2 * size)
        return PointConstraints(stacked(points, images), matrix, np.zeros(size), np.zeros(size))


def _bounds(prior: Any) -> tuple[float, float]:
    """Return the bounds of a prior, infinite for None; raise a ValueError if no value fits."""
    lower = -np.inf if prior.lower is None else float(prior.lower)
    upper = np.inf if prior.upper is None else float(prior.upper)
    if not lower <= upper or lower == np.inf or upper == -np.inf:
        raise ValueError(f"{prior} allows no value; pass numbers with lower ≤ upper.")
    if np.isinf(lower) and np.isinf(upper):
        raise ValueError(f"{prior} has no bound; pass lower=, upper= or both.")
    return lower, upper


def _position(output: int, n_outputs: int) -> int:
    if not 0 <= output < n_outputs:
        raise ValueError(
            f"a prior is about the value {output} of the outputs, which have {n_outputs}; "
            f"positions go from 0 to {n_outputs - 1}."
        )
    return int(output)


def _rows(columns: Any, values: Floats, width: int) -> sp.csr_array:
    n, k = columns.shape
    parts = (values.ravel(), columns.ravel(), np.arange(0, n * k + 1, k))
    return sp.csr_array(parts, shape=(n, width))


def n_rows(X: Any) -> int:
    """Return the number of points."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def check_points(points: Any, X: Any, what: str) -> None:
    """Raise a ValueError unless points are rows with the features of X."""
    check_sparse(points, "points")
    shape = points.shape if hasattr(points, "shape") else np.shape(points)
    if len(shape) != 2 or shape[0] == 0 or shape[1] != X.shape[1]:
        raise ValueError(
            f"{what} shape {tuple(shape)}; expected (m, {X.shape[1]}): one or more rows with the "
            "features of X."
        )


def position_of(feature: Any, X: Any) -> int:
    """Return the position of a feature, given as a position or as a name."""
    names = [str(name) for name in X.columns] if is_frame(X) else None
    if isinstance(feature, str):
        if names is None:
            raise ValueError(f"feature={feature!r} is a name, and X has none; pass a position.")
        if feature not in names:
            raise ValueError(f"feature={feature!r} is not a column of X, which has {names}.")
        return names.index(feature)
    n_features = X.shape[1]
    reason = f"X has {n_features} features"
    return as_integer("feature", feature, 0, n_features - 1, reason=reason)


def numbers_of(X: Any, j: int) -> Floats:
    """Return a feature as numbers; categories, which have no order, raise a ValueError."""
    if sp.issparse(X):
        matrix: Any = X
        return np.asarray(matrix.tocsc()[:, [j]].toarray(), dtype=np.float64).ravel()
    try:
        return as_floats(column(X, j))
    except (TypeError, ValueError):
        raise ValueError(
            f"the feature {label(X, j)} holds {column(X, j)[0]!r}; Monotone needs a feature with "
            "numbers."
        ) from None


def repeated(points: Any, times: int, j: int, values: Floats) -> Any:
    """Return every point several times, with new values of a feature."""
    many: Any = rows_of(points, np.repeat(np.arange(n_rows(points)), times))
    if hasattr(many, "tolil"):
        columns = many.tolil()
        columns[:, [j]] = values[:, None]
        return sp.csr_array(columns)
    if not is_frame(many):
        many = np.array(many, dtype=np.float64)
        many[:, j] = values
        return many
    if library_of(many) == "polars":
        import polars as pl

        return many.with_columns(pl.Series(many.columns[j], values))
    many = many.copy()
    many.isetitem(j, values)
    return many


def stacked(a: Any, b: Any) -> Any:
    """Return the points a, then b; b becomes a frame if a is one."""
    if sp.issparse(a) or sp.issparse(b):
        return sp.csr_array(sp.vstack([sp.csr_array(a), sp.csr_array(b)]))
    if not is_frame(a):
        return np.concatenate([np.asarray(a), np.asarray(b)])
    if not is_frame(b):
        b = frame_of(np.asarray(b), a.columns, library_of(a))
    if library_of(a) == "polars":
        import polars as pl

        return pl.concat([a, b], how="vertical_relaxed")
    import pandas as pd

    return pd.concat([a, b], ignore_index=True)
