"""Models, and the rows they were not fitted to: what conformal prediction is calibrated on."""

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import KFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, check_random_state, get_tags, indexable
from sklearn.utils.validation import check_is_fitted

from okforest._utils.arrays import Floats, Outputs, check_sparse
from okforest._utils.compat import rows_of
from okforest._utils.errors import warn
from okforest._utils.parameters import is_integer
from okforest.models.wrapping import Wrapper
from okforest.uncertainty.predictions import Predictions, predictions
from okforest.weights import SparseWeights

Method = Literal["split", "cross", "oob", "prefit"]
Rows = npt.NDArray[np.intp]


class Part(NamedTuple):
    """A fitted model, with its predictions for rows that it was not fitted to."""

    model: Any
    rows: Rows
    predicted: Predictions


class Calibration(NamedTuple):
    """The model of point predictions, and the parts whose rows give the scores."""

    estimator: Any
    parts: list[Part]


def calibrate(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    method: Method,
    calibration_size: float,
    cv: Any,
    random_state: Any,
) -> Calibration:
    """Fit the models of a method, and predict the rows left out of each."""
    if method not in get_args(Method):
        names = ", ".join(map(repr, get_args(Method)))
        raise ValueError(f"method={method!r}; use one of {names}.")
    check_sparse(X, "X")
    X, y = indexable(X, y)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if method == "prefit":
        check_is_fitted(estimator)
        return Calibration(estimator, [_part(estimator, X, np.arange(n))])
    if method == "oob":
        return _out_of_bag(estimator, X, y)
    if method == "split":
        if not 0 < calibration_size < 1:
            raise ValueError(
                f"calibration_size={calibration_size!r}; use the share of the rows that is kept "
                "for calibration, such as 0.25."
            )
        order = check_random_state(random_state).permutation(n)
        n_left = min(max(1, round(calibration_size * n)), n - 1)
        left, train = np.sort(order[:n_left]), np.sort(order[n_left:])
        model = _fitted(estimator, X, y, train)
        return Calibration(model, [_part(model, X, left)])
    seed = check_random_state(random_state).randint(2**31)
    folds = KFold(cv, shuffle=True, random_state=seed) if is_integer(cv) else check_cv(cv)
    parts = [_part(_fitted(estimator, X, y, train), X, left) for train, left in folds.split(X, y)]
    return Calibration(clone(estimator).fit(X, y), parts)


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


def _out_of_bag(estimator: Any, X: Any, y: Any) -> Calibration:
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
    return Calibration(model, [Part(model, known, Predictions(model.span_, W))])


class Conformal(Wrapper):
    """A model that is calibrated on rows it was not fitted to."""

    method: Method
    calibration_size: float
    cv: Any
    random_state: Any

    estimator_: Any
    estimators_: list[Any]
    scores_: list[Floats]
    n_calibration_: int

    def _calibrate(self, X: Any, y: Any) -> Calibration:
        """Fit the models and store them; return their predictions for the rows left out."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        _check_rows(X)
        fitted = calibrate(
            self.estimator,
            X,
            y,
            method=self.method,
            calibration_size=self.calibration_size,
            cv=self.cv,
            random_state=self.random_state,
        )
        self._keep(fitted.estimator)
        self.estimators_ = [part.model for part in fitted.parts]
        return fitted

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
