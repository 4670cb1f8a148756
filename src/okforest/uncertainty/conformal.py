"""Conformal prediction: models, the rows they were not fitted to, and the scores of these rows.

A conformity score measures how strange an output is for a prediction; high is strange.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import KFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, check_random_state, get_tags, indexable
from sklearn.utils.validation import check_is_fitted

from okforest._utils.arrays import Floats, Outputs, check_sparse
from okforest._utils.compat import Interval, StrOptions, rows_of
from okforest._utils.distinct import distinct
from okforest._utils.errors import warn
from okforest._utils.parameters import is_integer
from okforest.models.wrapping import Wrapper
from okforest.uncertainty.distributions import Predictions, merged, predictions, spread_of
from okforest.weights import OutputSet, SparseWeights

Method = Literal["split", "cross", "oob", "prefit"]
Rows = npt.NDArray[np.intp]


class Part(NamedTuple):
    """A fitted model, with its predictions for rows that it was not fitted to."""

    model: Any
    rows: Rows
    predicted: Predictions


def warn_if_few_rows(coverage: float, n: int, method: Method, what: str) -> None:
    """Warn that there are too few calibration rows for a coverage."""
    needed = math.ceil(coverage / (1 - coverage) - 1e-9)
    if n < needed:
        remedy = "more rows, method='cross' or 'oob'" if method == "split" else "more rows"
        warn(
            f"coverage={coverage:g} needs at least {needed} calibration rows, and there are {n}: "
            f"{what}. Use {remedy}, or a lower coverage.",
            UserWarning,
        )


def rank_of(coverage: float, n: int) -> int:
    """Return which of n ordered scores covers a new one with this probability; n + 1 if none."""
    return math.ceil(coverage * (n + 1) - 1e-9)


def _fitted(estimator: Any, X: Any, y: Any, rows: Rows) -> Any:
    return clone(estimator).fit(rows_of(X, rows), rows_of(y, rows))


def _part(model: Any, X: Any, rows: Rows) -> Part:
    return Part(model, rows, predictions(model, rows_of(X, rows)))


def _out_of_bag(estimator: Any, X: Any, y: Any) -> Part:
    """Fit a bootstrapped forest, and predict each row by the trees that were not grown on it."""
    if isinstance(estimator, Pipeline) or not hasattr(estimator, "oob_score"):
        raise ValueError(
            f"method='oob' needs a bootstrapped forest of okforest, such as OKRandomForest; got "
            f"{type(estimator).__name__}. Use method='cross'."
        )
    if not getattr(estimator, "bootstrap", True):
        raise ValueError(
            f"method='oob' needs trees grown on samples of the rows, and this "
            f"{type(estimator).__name__} has bootstrap=False; set bootstrap=True, or use "
            "method='cross'."
        )
    model = clone(estimator).set_params(oob_score=True).fit(X, y)
    known = np.flatnonzero(np.diff(model.oob_weights_.indptr))
    W = SparseWeights(model.oob_weights_[known])
    return Part(model, known, Predictions(model.span_, W))


class Conformal(Wrapper):
    """A model that is calibrated on rows it was not fitted to."""

    method: Method
    calibration_size: float
    cv: Any
    random_state: Any

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "method": [StrOptions(set(get_args(Method)))],
        "calibration_size": [Interval(Real, 0, 1, closed="neither")],
        "cv": ["cv_object"],
        "random_state": ["random_state"],
    }

    estimator_: Any
    estimators_: list[Any]
    scores_: list[Floats]
    n_calibration_: int

    def _calibrate(self, X: Any, y: Any) -> list[Part]:
        """Fit the models and store them; return their predictions for the rows left out."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        _check_rows(X)
        check_sparse(X, "X")
        X, y = indexable(X, y)
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        estimator = self.estimator
        if self.method == "prefit":
            check_is_fitted(estimator)
            parts = [_part(estimator, X, np.arange(n))]
        elif self.method == "oob":
            parts = [_out_of_bag(estimator, X, y)]
        elif self.method == "split":
            order = check_random_state(self.random_state).permutation(n)
            n_left = min(max(1, round(self.calibration_size * n)), n - 1)
            left, train = np.sort(order[:n_left]), np.sort(order[n_left:])
            parts = [_part(_fitted(estimator, X, y, train), X, left)]
        else:
            seed = check_random_state(self.random_state).randint(2**31)
            whole = is_integer(self.cv)
            folds = KFold(self.cv, shuffle=True, random_state=seed) if whole else check_cv(self.cv)
            parts = [
                _part(_fitted(estimator, X, y, train), X, left) for train, left in folds.split(X, y)
            ]
        crossed = self.method == "cross"
        self._keep(clone(estimator).fit(X, y) if crossed else parts[0].model)
        self.estimators_ = [part.model for part in parts]
        return parts

    def predict(self, X: Any) -> Outputs:
        """Predict outputs, as ``estimator_`` does.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.

        Returns
        -------
        y : ndarray of n outputs
            The predictions.
        """
        check_is_fitted(self)
        _check_rows(X)
        check_sparse(X, "X")
        outputs: Outputs = self.estimator_.predict(X)
        return outputs

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = get_tags(self.estimator).target_tags.multi_output
        return tags


def _check_rows(X: Any) -> None:
    """Raise a ValueError unless X may have rows."""
    if X is None or np.isscalar(X):
        raise ValueError(f"X is {X!r}; pass inputs, with a row for each output.")
    if isinstance(X, Mapping) and not sp.issparse(X):  # SciPy's dok_array is a mapping
        raise ValueError(
            f"X is a {type(X).__name__}, whose rows are not known; pass a frame or an array: "
            "pandas.DataFrame(X)."
        )


ScoreName = Literal["margin", "distance", "normalized", "votes"]

MAX_ENTRIES = 2**22  # matrices of scores are computed in blocks of at most this size
TIE = 1e-10  # relative difference of scores that are equal up to rounding
FLOOR = 0.01  # share of the mean variance that is added to every variance


class Score(ABC):
    """The score s(x, c) of an output c for a prediction at x."""

    @abstractmethod
    def of_candidates(self, predicted: Predictions, candidates: OutputSet) -> Floats:
        """Return the scores of all candidates (columns) for every prediction (row)."""

    @abstractmethod
    def of_truth(self, predicted: Predictions, y: Outputs, candidates: OutputSet) -> Floats:
        """Return the score of each prediction's own output."""


class Distance(Score):
    """The squared distance ‖φ(c) − F(x)‖² in feature space."""

    def of_candidates(self, predicted: Predictions, candidates: OutputSet) -> Floats:
        span, W = predicted
        scores = np.empty((W.shape[0], len(candidates)))
        for block, inner in span.inner_blocks(W, candidates):
            scores[:, block] = candidates.squares[block] - 2.0 * inner
        scores += span.squared_norms(W)[:, None]
        return np.maximum(scores, 0.0)

    def of_truth(self, predicted: Predictions, y: Outputs, candidates: OutputSet) -> Floats:
        return predicted.span.losses(predicted.W, y)


class Normalized(Distance):
    """The squared distance divided by the variance of the predicted distribution."""

    def of_candidates(self, predicted: Predictions, candidates: OutputSet) -> Floats:
        scores = super().of_candidates(predicted, candidates)
        return scores / self._scale(predicted)[:, None]

    def of_truth(self, predicted: Predictions, y: Outputs, candidates: OutputSet) -> Floats:
        return super().of_truth(predicted, y, candidates) / self._scale(predicted)

    def _scale(self, predicted: Predictions) -> Floats:
        n_train = len(predicted.span)
        total = predicted.span.spread(np.full(n_train, 1.0 / n_train))
        return spread_of(predicted) + FLOOR * total


class Margin(Distance):
    """The squared distance minus the squared distance of the nearest other candidate."""

    def of_candidates(self, predicted: Predictions, candidates: OutputSet) -> Floats:
        distances = super().of_candidates(predicted, candidates)
        return distances - _least_of_others(distances)

    def of_truth(self, predicted: Predictions, y: Outputs, candidates: OutputSet) -> Floats:
        to_truth = super().of_truth(predicted, y, candidates)
        places = positions_of(y, candidates)
        others = np.empty(len(y))
        for rows in row_blocks(len(y), len(candidates)):
            block = Predictions(predicted.span, predicted.W[rows])
            distances = super().of_candidates(block, candidates)
            known = np.flatnonzero(places[rows] >= 0)
            distances[known, places[rows][known]] = np.inf
            others[rows] = distances.min(axis=1)
        return to_truth - np.where(np.isfinite(others), others, 0.0)


class Votes(Score):
    """Minus the total weight of the training outputs that equal the output."""

    def of_candidates(self, predicted: Predictions, candidates: OutputSet) -> Floats:
        span, W = predicted
        # The last column is for training outputs that are not candidates.
        places = positions_of(span.training.outputs, candidates)[span.training.group]
        votes = merged(W.tocsr(), places % (len(candidates) + 1), len(candidates) + 1)
        return -votes.toarray()[:, :-1]

    def of_truth(self, predicted: Predictions, y: Outputs, candidates: OutputSet) -> Floats:
        span, W = predicted
        n_outputs = len(span.training)
        places = positions_of(y, span.training) % (n_outputs + 1)
        votes = merged(W.tocsr(), span.training.group, n_outputs + 1)
        return -np.asarray(votes[np.arange(len(y)), places]).ravel()


SCORES: dict[str, Score] = {
    "margin": Margin(),
    "distance": Distance(),
    "normalized": Normalized(),
    "votes": Votes(),
}


def positions_of(y: Outputs, candidates: OutputSet) -> Rows:
    """Return which of the different candidates each output equals, or -1."""
    n = len(candidates)
    group = distinct(np.concatenate([candidates.outputs, y])).group
    return np.where(group[n:] < n, group[n:], -1)


def count_at_least(known: Floats, values: Floats) -> Floats:
    """Return how many of the known scores, ascending, are at least as large as each value.

    Rows that reach the same leaves have equal scores, up to rounding; these count.
    """
    finite = known[np.isfinite(known)]
    rounding = TIE * np.abs(finite[[0, -1]]).max() if len(finite) else 0.0
    below = np.searchsorted(known, values.ravel() - rounding)
    return (len(known) - below).reshape(values.shape).astype(np.float64)


def row_blocks(n: int, width: int) -> list[slice]:
    """Divide n predictions into blocks whose scores of ``width`` candidates take bounded memory."""
    size = max(1, MAX_ENTRIES // max(1, width))
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


def _least_of_others(distances: Floats) -> Floats:
    """Return for each candidate (column) the least distance of the other candidates."""
    n, width = distances.shape
    if width == 1:
        return np.zeros_like(distances)
    nearest = distances.argmin(axis=1)
    two = np.partition(distances, 1, axis=1)[:, :2]
    least = np.repeat(two[:, :1], width, axis=1)
    least[np.arange(n), nearest] = two[:, 1]
    return least
