"""Quality of predicted risks and survival functions of censored times, and scorers for searches."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_consistent_length

from okforest._utils.arrays import Booleans, Floats
from okforest.metrics.losses import unwrap
from okforest.survival.estimates import StepFunction, censoring_survival
from okforest.survival.outputs import is_exact, read_intervals, right_censored

BLOCK = 512  # rows of the table of pairs that are compared at a time
ROUNDING = 1e-6  # probabilities may leave the range from 0 to 1 by this much
TIED = 1e-8  # risks whose relative difference is less are tied


class BrierScore(NamedTuple):
    """Squared errors of predicted survival functions, over time.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.survival import brier_score
    >>> y = np.rec.fromarrays([[True, True, True], [1.0, 2.0, 3.0]], names="event,time")
    >>> times, scores = brier_score(y, y, [[1.0, 0.0], [1.0, 0.5], [1.0, 1.0]], times=[0.5, 2.0])
    >>> scores.round(4)
    array([0.    , 0.0833])
    """

    times: Floats
    scores: Floats


def concordance_index(y: Any, risk: Any) -> float:
    """Return Harrell's C: the share of comparable pairs whose risks are in the right order.

    A pair is comparable if the case of the earlier time had its event. Of two cases with equal
    times, an event comes before a censored time. In general, a pair is comparable if the intervals
    of both cases have an order: upper ≤ lower. A pair with equal risks counts one half.

    Parameters
    ----------
    y : structured array or array-like of shape (n, 2)
        Exact and censored times: (event, time), or (lower, upper).
    risk : array-like of shape (n,)
        Predicted risks; higher means earlier.

    Returns
    -------
    concordance : float
        1 for perfect order, 0.5 for random order.

    See Also
    --------
    concordance_ipcw : The same, without bias if many cases are censored.

    References
    ----------
    F. Harrell et al., "Evaluating the yield of medical tests", JAMA 247 (1982).

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.survival import concordance_index
    >>> y = np.rec.fromarrays([[True, False, True], [1.0, 2.0, 3.0]], names="event,time")
    >>> concordance_index(y, [3.0, 1.0, 2.0])
    1.0
    """
    intervals = read_intervals(y)
    return _concordance(intervals, _check_risk(risk, intervals), np.ones(len(intervals)))


def concordance_ipcw(y_train: Any, y: Any, risk: Any, tau: float | None = None) -> float:
    """Return Uno's C: pairs are weighted by the inverse probability of not being censored.

    Parameters
    ----------
    y_train : structured array or array-like of shape (n_train, 2)
        Training times, from which the distribution of censoring is estimated.
    y : structured array or array-like of shape (n, 2)
        Exact and right-censored times: (event, time), or (lower, upper).
    risk : array-like of shape (n,)
        Predicted risks; higher means earlier.
    tau : float, optional
        Only events before this time count. By default all those before the time from which all
        training cases are censored.

    Returns
    -------
    concordance : float
        1 for perfect order, 0.5 for random order.

    References
    ----------
    H. Uno et al., "On the C-statistics for evaluating overall adequacy of risk prediction
    procedures with censored survival data", Statistics in Medicine 30 (2011).

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.survival import concordance_ipcw
    >>> y = np.rec.fromarrays([[True, False, True], [1.0, 2.0, 3.0]], names="event,time")
    >>> concordance_ipcw(y, y, [3.0, 1.0, 2.0])
    1.0
    """
    event, time = _read(y, "Uno's C")
    G = _censoring(y_train)(time)
    counted = event & (G > 0)
    if tau is not None:
        counted &= time < tau
    weight = np.divide(1.0, G**2, out=np.zeros(len(G)), where=counted)
    intervals = np.column_stack([time, np.where(event, time, np.inf)])
    return _concordance(intervals, _check_risk(risk, time), weight)


def brier_score(y_train: Any, y: Any, survival: Any, times: Any = None) -> BrierScore:
    """Return the mean squared errors of predicted survival functions, at some times.

    Cases that are censored before a time do not count at it; the others are weighted by the inverse
    probability of not being censored.

    Parameters
    ----------
    y_train : structured array or array-like of shape (n_train, 2)
        Training times, from which the distribution of censoring is estimated.
    y : structured array or array-like of shape (n, 2)
        Exact and right-censored times: (event, time), or (lower, upper).
    survival : sequence of n functions, or array-like of shape (n, n_times)
        Predicted survival functions, as ``predict_survival_function`` returns them, or their values
        at the given times.
    times : array-like of shape (n_times,), optional
        Times within the range of y and before all training cases are censored. By default the
        different times of y in that range, up to their 90 % quantile.

    Returns
    -------
    score : BrierScore
        The ``times``, and the ``scores`` at them.

    References
    ----------
    E. Graf et al., "Assessment and comparison of prognostic classification schemes for survival
    data", Statistics in Medicine 18 (1999).

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.survival import brier_score
    >>> y = np.rec.fromarrays([[True, True, True], [1.0, 2.0, 3.0]], names="event,time")
    >>> brier_score(y, y, [[0.0], [0.5], [1.0]], times=[2.0]).scores.round(4)
    array([0.0833])
    """
    event, time = _read(y, "the Brier score")
    censoring = _censoring(y_train)
    last = _read(y_train, "the Brier score")[1].max()
    times = _brier_times(time, censoring, last) if times is None else np.asarray(times, dtype=float)
    if times.ndim != 1 or len(times) == 0 or (np.diff(times) <= 0).any():
        raise ValueError(f"times={times!r}; pass one or more times in ascending order.")
    S = _values(survival, times, len(time))
    if not np.isfinite(S).all():
        raise ValueError("survival has values that are NaN or infinite; pass probabilities.")
    if S.min() < -ROUNDING or S.max() > 1.0 + ROUNDING:
        raise ValueError(
            f"survival has values from {S.min():.6g} to {S.max():.6g}; pass probabilities, from 0 "
            "to 1."
        )
    G_time, G = censoring(time), censoring(times)
    if (G <= 0).any():
        raise ValueError(
            f"all training cases are censored by the time {times[G <= 0][0]:.6g}, so errors at it "
            "cannot be estimated; pass earlier times."
        )
    if times[-1] > last:
        raise ValueError(
            f"times go to {times[-1]:.6g}, and the training cases were observed until {last:.6g}; "
            "pass earlier times."
        )
    inverse = np.divide(1.0, G_time, out=np.zeros(len(time)), where=event & (G_time > 0))
    died = (time[:, None] <= times) & event[:, None]
    alive = time[:, None] > times
    scores = (died * S**2 * inverse[:, None] + alive * (1.0 - S) ** 2 / G).mean(axis=0)
    return BrierScore(times, scores)


def integrated_brier_score(y_train: Any, y: Any, survival: Any, times: Any = None) -> float:
    """Return the mean over time of the Brier score of predicted survival functions.

    Parameters
    ----------
    y_train, y, survival, times
        As for :func:`brier_score`; at least two times.

    Returns
    -------
    score : float
        The integral over the times, by the trapezoidal rule, divided by their range: 0 is best.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.survival import integrated_brier_score
    >>> y = np.rec.fromarrays([[True, True, True], [1.0, 2.0, 3.0]], names="event,time")
    >>> S = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]
    >>> integrated_brier_score(y, y, S, times=[1.0, 2.0])
    0.0
    """
    times, scores = brier_score(y_train, y, survival, times)
    if len(times) < 2:
        raise ValueError("the integral needs at least two times; pass them as times=.")
    return float(np.trapezoid(scores, times) / (times[-1] - times[0]))


def _read(y: Any, what: str) -> tuple[Booleans, Floats]:
    return right_censored(read_intervals(y), what)


def _censoring(y_train: Any) -> StepFunction:
    return censoring_survival(*_read(y_train, "the distribution of censoring"))


def _check_risk(risk: Any, time: Floats) -> Floats:
    risk = np.asarray(risk, dtype=np.float64)
    check_consistent_length(time, risk)
    if risk.ndim != 1 or not np.isfinite(risk).all():
        raise ValueError("risk must be a 1-d array of finite numbers, one for each case.")
    return risk


def _concordance(intervals: Floats, risk: Floats, weight: Floats) -> float:
    """Return the weighted share of pairs in order; the earlier case of a pair has its weight."""
    right = total = 0.0
    lower, upper = intervals.T
    open_ended = ~is_exact(intervals)  # such a time is later than its lower bound
    earlier = np.flatnonzero(np.isfinite(upper) & (weight > 0))
    for start in range(0, len(earlier), BLOCK):
        block = earlier[start : start + BLOCK, None]
        pairs = (upper[block] < lower) | ((upper[block] == lower) & open_ended)
        difference = risk[block] - risk
        size = np.maximum(np.abs(risk[block]), np.abs(risk))
        order = np.where(np.abs(difference) <= TIED * size, 0.5, difference > 0)
        right += float((weight[block] * (pairs * order)).sum())
        total += float((weight[block] * pairs).sum())
    if total == 0.0:
        raise ValueError(
            "no pair of cases is comparable: every event, if any, comes after all other times, or "
            "all intervals overlap. Pass more cases."
        )
    return right / total


def _brier_times(time: Floats, censoring: StepFunction, last: float) -> Floats:
    times = np.unique(time)
    times = times[(times <= min(np.quantile(time, 0.9), last)) & (censoring(times) > 0)]
    if len(times) < 2:
        raise ValueError("y has too few different times for a Brier score; pass times=.")
    return times


def _values(survival: Any, times: Floats, n: int) -> Floats:
    if len(survival) != n:
        raise ValueError(f"survival has {len(survival)} rows; y has {n}. Pass one function each.")
    if callable(survival[0]):
        return np.array([function(times) for function in survival], dtype=np.float64)
    values = np.asarray(survival, dtype=np.float64)
    if values.shape != (n, len(times)):
        raise ValueError(
            f"survival has shape {values.shape}; expected ({n}, {len(times)}), one value for each "
            "case and time. Pass times=model.event_times_ with an array, or a list of functions."
        )
    return values


def concordance_scorer(model: Any, X: Any, y: Any) -> float:
    """Score a survival model by Harrell's C of its predicted risks.

    Parameters
    ----------
    model : estimator
        A fitted model with ``predict_risk``, or a pipeline that ends with one. Models of other
        libraries, such as scikit-survival's, are scored by ``predict``, which returns risks there.
    X, y : array-like
        Inputs and their times, which may be intervals.

    Returns
    -------
    score : float
        :func:`concordance_index`.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest import OKRandomForest
    >>> from okforest.survival import concordance_scorer
    >>> X = np.arange(40.0)[:, None]
    >>> y = np.rec.fromarrays([np.arange(40) % 4 > 0, np.arange(1.0, 41.0)], names="event,time")
    >>> model = OKRandomForest(20, kernel="survival", random_state=0)
    >>> concordance_scorer(model.fit(X, y), X, y) > 0.9
    True
    """
    model, X = unwrap(model, X)
    risk = model.predict_risk(X) if hasattr(model, "predict_risk") else _other_risk(model, X)
    return concordance_index(y, risk)


def concordance_ipcw_scorer(model: Any, X: Any, y: Any) -> float:
    """Score a survival model by Uno's C of its predicted risks.

    Parameters
    ----------
    model : estimator
        A fitted model with ``predict_risk``, or a pipeline that ends with one.
    X, y : array-like
        Inputs and their times.

    Returns
    -------
    score : float
        :func:`concordance_ipcw`.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest import OKRandomForest
    >>> from okforest.survival import concordance_ipcw_scorer
    >>> X = np.arange(40.0)[:, None]
    >>> y = np.rec.fromarrays([np.arange(40) % 4 > 0, np.arange(1.0, 41.0)], names="event,time")
    >>> model = OKRandomForest(20, kernel="survival", random_state=0).fit(X, y)
    >>> concordance_ipcw_scorer(model, X, y) > 0.9
    True
    """
    model, X = _fitted(model, X, "predict_risk")
    return concordance_ipcw(model.outputs_, y, model.predict_risk(X))


def integrated_brier_scorer(model: Any, X: Any, y: Any) -> float:
    """Score a survival model by minus the integrated Brier score of its survival functions.

    Parameters
    ----------
    model : estimator
        A fitted model with ``predict_survival_function``, or a pipeline that ends with one.
    X, y : array-like
        Inputs and their times.

    Returns
    -------
    score : float
        Minus :func:`integrated_brier_score`, at its default times.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest import OKRandomForest
    >>> from okforest.survival import integrated_brier_scorer
    >>> X = np.arange(40.0)[:, None]
    >>> y = np.rec.fromarrays([np.arange(40) % 4 > 0, np.arange(1.0, 41.0)], names="event,time")
    >>> model = OKRandomForest(20, kernel="survival", random_state=0).fit(X, y)
    >>> -0.1 < integrated_brier_scorer(model, X, y) < 0
    True
    """
    model, X = _fitted(model, X, "predict_survival_function")
    functions = model.predict_survival_function(X)
    return -integrated_brier_score(model.outputs_, y, functions)


def _fitted(model: Any, X: Any, method: str) -> tuple[Any, Any]:
    model, X = unwrap(model, X)
    if not hasattr(model, method) or not hasattr(model, "outputs_"):
        raise TypeError(
            f"the scorer takes models of okforest that predict survival, got a "
            f"{type(model).__name__}. Use kernel='survival'; for other models, call the function "
            "of okforest.metrics with their predictions."
        )
    return model, X


def _other_risk(model: Any, X: Any) -> Floats:
    if hasattr(model, "weight_matrix"):
        raise TypeError(
            f"the scorer takes models that predict survival; this {type(model).__name__} needs "
            "kernel='survival'."
        )
    return np.asarray(model.predict(X), dtype=np.float64)
