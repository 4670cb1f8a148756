"""Conformal intervals of numbers, and bands of curves."""

from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np
from sklearn.utils.validation import check_is_fitted

from okforest._utils.arrays import Floats
from okforest._utils.compat import StrOptions, fit_context
from okforest.uncertainty.conformal import (
    FLOOR,
    Conformal,
    Method,
    rank_of,
    row_blocks,
    warn_if_few_rows,
)
from okforest.uncertainty.distributions import (
    Predictions,
    check_coverage,
    moments,
    predictions,
    quantiles_of,
    spread_around,
)

IntervalScore = Literal["absolute", "normalized", "quantiles"]


class Bounds(NamedTuple):
    """Uncalibrated bounds, and the unit in which they are moved; all of shape (n, q)."""

    lower: Floats
    upper: Floats
    scale: Floats

    def scores(self, y: Floats) -> Floats:
        """Return by how many units bounds must be moved to contain y, in all coordinates."""
        outside = np.maximum(self.lower - y, y - self.upper)
        return np.asarray((outside / self.scale).max(axis=1))

    def moved(self, scores: Any) -> tuple[Floats, Floats]:
        """Return bounds moved apart by this number of units."""
        return self.lower - scores * self.scale, self.upper + scores * self.scale


class ConformalIntervals(Conformal):
    """Intervals that contain the true number with a given probability; bands, for curves.

    Intervals are made from the weights of a prediction, and widened or narrowed until they contain
    the true outputs of calibration rows, which the model was not fitted to. If rows are
    exchangeable, the interval of a new row contains its output with at least the given probability
    ("split"; at least 1 − 2α for a coverage of 1 − α, and about 1 − α in practice, with "cross";
    without a proof with "oob"). The band of a vector or curve contains all of it.

    Parameters
    ----------
    estimator : estimator
        A model of okforest on numbers or vectors, or a pipeline that ends with one.
    method : {"split", "cross", "oob", "prefit"}, default="split"
        Which rows calibrate: a random share that no model is fitted to; every row, by the models of
        cross-validation (CV+); every row, by the trees of a bootstrapped forest that were not grown
        on it; or all rows passed to ``fit``, for a model that is already fitted to others.
    conformity_score : {"normalized", "absolute", "quantiles"}, default="normalized"
        "absolute" gives every interval the same width; "normalized" widths proportional to the
        standard deviation of the predicted distribution; "quantiles" moves the quantiles of the
        predicted distribution (conformalised quantile regression). With negative weights, as of
        ridge regression and boosting, the standard deviation uses the absolute weights, and
        the band of a curve has one width at all places.
    levels : tuple of two floats, default=(0.05, 0.95)
        The quantiles of ``conformity_score="quantiles"``.
    calibration_size : float, default=0.25
        The share of the rows that calibrates with ``method="split"``.
    cv : int or splitter, default=5
        The folds of ``method="cross"``.
    random_state : int, RandomState instance or None, default=None
        The seed of random splits.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model, of point predictions.
    estimators_ : list of estimators
        The models that are calibrated; one unless ``method="cross"``.
    scores_ : list of ndarray
        The calibration scores of each model, ascending.
    n_calibration_ : int
        Number of calibration rows.

    References
    ----------
    J. Lei et al., "Distribution-free predictive inference for regression", JASA 113, 2018.
    Y. Romano, E. Patterson, E. Candès, "Conformalized quantile regression", NeurIPS 2019. R. Barber
    et al., "Predictive inference with the jackknife+", Annals of Statistics 49, 2021 (CV+).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from okforest import OKRandomForest
    >>> from okforest.uncertainty import ConformalIntervals
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = OKRandomForest(min_samples_leaf=5, random_state=0)
    >>> model = ConformalIntervals(forest, method="oob").fit(X[:300], y[:300])
    >>> lower, upper = model.predict_interval(X[300:], coverage=0.8).T
    >>> bool(0.75 < ((lower <= y[300:]) & (y[300:] <= upper)).mean() < 0.85)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Conformal._parameter_constraints,
        "conformity_score": [StrOptions(set(get_args(IntervalScore)))],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        method: Method = "split",
        conformity_score: IntervalScore = "normalized",
        levels: tuple[float, float] = (0.05, 0.95),
        calibration_size: float = 0.25,
        cv: Any = 5,
        random_state: Any = None,
    ):
        self.estimator = estimator
        self.method = method
        self.conformity_score = conformity_score
        self.levels = levels
        self.calibration_size = calibration_size
        self.cv = cv
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the models, and compute the scores of the rows they were not fitted to.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.
        y : array-like of shape (n,) or (n, q)
            Outputs.

        Returns
        -------
        self : object
            The calibrated model.
        """
        low, high = self.levels
        if not 0 < low < high < 1:
            raise ValueError(f"levels={self.levels!r}; use two ascending numbers between 0 and 1.")
        parts = self._calibrate(X, y)
        outputs = parts[0].predicted.span.kernel.check(y)
        vectors = outputs.reshape(len(outputs), -1)
        scores = [self._bounds(part.predicted).scores(vectors[part.rows]) for part in parts]
        self.scores_ = [np.sort(part) for part in scores]
        self.n_calibration_ = sum(map(len, scores))
        return self

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Predict intervals that contain the true output with a given probability.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.
        coverage : float, default=0.9
            The probability.

        Returns
        -------
        intervals : ndarray of shape (n, 2), or (n, q, 2) for vectors
            Lower and upper bounds. Those of a vector contain all its values with the given
            probability.
        """
        coverage = check_coverage(coverage)
        check_is_fitted(self)
        warn_if_few_rows(coverage, self.n_calibration_, self.method, "intervals are infinite")
        predicted = [predictions(model, X) for model in self.estimators_]
        n, width = predicted[0].W.shape[0], predicted[0].vectors().shape[1]
        rank = rank_of(coverage, self.n_calibration_)
        result = np.empty((n, width, 2))
        for rows in row_blocks(n, width * self.n_calibration_):
            parts = [self._bounds(Predictions(p.span, p.W[rows])) for p in predicted]
            if rank > self.n_calibration_:
                result[rows] = -np.inf, np.inf
            elif len(parts) == 1:
                result[rows] = np.stack(parts[0].moved(self.scores_[0][rank - 1]), axis=-1)
            else:
                result[rows] = self._cross(parts, rank)
        crossed = result[..., 0] > result[..., 1]
        result[crossed] = result[crossed].mean(axis=-1, keepdims=True)
        return result[:, 0] if predicted[0].span.outputs.ndim == 1 else result

    def _cross(self, parts: list[Bounds], rank: int) -> Floats:
        """Return the bounds of CV+: order statistics of those that each score gives."""
        moved = [
            bounds.moved(scores[:, None, None])
            for bounds, scores in zip(parts, self.scores_, strict=True)
        ]
        lower = np.concatenate([low for low, _ in moved])
        upper = np.concatenate([high for _, high in moved])
        return np.stack(
            [
                np.partition(lower, len(lower) - rank, axis=0)[len(lower) - rank],
                np.partition(upper, rank - 1, axis=0)[rank - 1],
            ],
            axis=-1,
        )

    def _bounds(self, predicted: Predictions) -> Bounds:
        vectors = predicted.vectors()
        if self.conformity_score == "quantiles":
            low, high = np.moveaxis(quantiles_of(predicted, np.asarray(self.levels)), 2, 0)
            return Bounds(low, high, np.ones_like(low))
        means, _ = moments(predicted.W, vectors)
        if self.conformity_score == "absolute":
            return Bounds(means, means, np.ones_like(means))
        total = vectors.var(axis=0)
        variances = spread_around(means, predicted)
        scale = np.sqrt(variances + FLOOR * np.where(total > 0, total, 1.0))
        return Bounds(means, means, scale)
