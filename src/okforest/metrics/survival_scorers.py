"""Scorers of survival models, to pass as ``scoring=`` to scikit-learn's tools.

A higher score is better. They take models of okforest with ``predict_risk`` or
``predict_survival_function``, pipelines that end with one, and searches for their parameters, such
as ``GridSearchCV``. The distribution of censoring is estimated from the outputs that the model was
fitted to.
"""

from typing import Any

import numpy as np

from okforest._typing import Floats
from okforest.metrics.losses import unwrap
from okforest.metrics.survival import concordance_index, concordance_ipcw, integrated_brier_score


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
    >>> from okforest.metrics import concordance_scorer
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
    >>> from okforest.metrics import concordance_ipcw_scorer
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
    >>> from okforest.metrics import integrated_brier_scorer
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
