"""How far predicted curves are from the true ones."""

from typing import Any

import numpy as np
from sklearn.metrics import make_scorer

from okforest.kernels import Curves
from okforest.metrics._weights import check_score_weight


def integrated_squared_error(
    y_true: Any, y_pred: Any, *, points: Any = None, sample_weight: Any = None
) -> float:
    """Return the mean of ∫ (f − g)² between true and predicted curves, by the trapezoidal rule.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n, m)
        True and predicted curves, one per row, sampled at the same points.
    points : array-like of shape (m,), optional
        Where the curves are sampled, ascending; evenly spaced on [0, 1] by default.
    sample_weight : array-like of shape (n,), optional
        Weights of the curves.

    Returns
    -------
    error : float
        The mean; 0 is best.

    See Also
    --------
    okforest.kernels.Curves : The kernel whose squared distance is this error.

    Examples
    --------
    >>> from okforest.metrics import integrated_squared_error
    >>> round(integrated_squared_error([[0.0, 1.0, 0.0]], [[0.0, 3.0, 0.0]]), 3)
    2.0
    """
    kernel = Curves(points)
    true, predicted = kernel.check(y_true), kernel.check(y_pred)
    if true.shape != predicted.shape:
        raise ValueError(
            f"y_true has shape {true.shape} and y_pred {predicted.shape}; pass as many curves, at "
            "the same points. Predictions of Curves(n_points=...) are resampled: resample the true "
            "curves alike."
        )
    weight = check_score_weight(sample_weight, true)
    return float(np.average(kernel.diag(true - predicted), weights=weight))


integrated_squared_error_scorer = make_scorer(integrated_squared_error, greater_is_better=False)
integrated_squared_error_scorer.__doc__ = """Score by minus the mean of ∫ (f − g)²; for searches.

Points are evenly spaced on [0, 1]. For others, pass
``sklearn.metrics.make_scorer(integrated_squared_error, greater_is_better=False, points=points)``.

Examples
--------
>>> from okforest import OKTree
>>> from okforest.metrics import integrated_squared_error_scorer
>>> tree = OKTree(kernel="linear").fit([[0], [1]], [[0.0, 1.0, 0.0], [2.0, 2.0, 2.0]])
>>> round(integrated_squared_error_scorer(tree, [[0]], [[0.0, 3.0, 0.0]]), 3)
-2.0
"""
