"""Scorers of survival models, to pass as ``scoring=`` to scikit-learn's tools.

A higher score is better. They take any model with ``predict_risk`` and
``predict_survival_function``. The distribution of censoring is estimated from the outputs that the
model was fitted to.
"""

from typing import Any

from okforest.metrics.losses import unwrap
from okforest.metrics.survival import concordance_index, concordance_ipcw, integrated_brier_score


def concordance_scorer(model: Any, X: Any, y: Any) -> float:
    """Score a survival model by Harrell's C of its predicted risks.

    Parameters
    ----------
    model : estimator
        A fitted model with ``predict_risk``, or a pipeline that ends with one.
    X, y : array-like
        Inputs and their times.

    Returns
    -------
    score : float
        :func:`concordance_index`.
    """
    model, X = unwrap(model, X)
    return concordance_index(y, model.predict_risk(X))


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
    """
    model, X = unwrap(model, X)
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
    """
    model, X = unwrap(model, X)
    functions = model.predict_survival_function(X)
    return -integrated_brier_score(model.outputs_, y, functions)
