"""How well the probabilities of many classes rank the true ones: areas under precision–recall."""

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import average_precision_score
from sklearn.utils.validation import check_consistent_length

from okforest._outputs import refuse_masked
from okforest._sparse import check_sparse
from okforest._typing import Outputs
from okforest.kernels._hierarchy import holds_text, read_paths
from okforest.kernels._label_sets import indicators_of, read_label_sets
from okforest.metrics.losses import check_truth, unwrap


def au_prc(
    y_true: Any,
    y_score: Any,
    *,
    average: Literal["pooled", "macro", "weighted"] = "pooled",
    labels: Any = None,
) -> float:
    """Return the area under precision–recall curves of classes.

    Areas are average precisions, without interpolation between points of a curve.

    Parameters
    ----------
    y_true : array-like or sparse matrix of shape (n, n_classes), or list of class paths or sets
        1 for the classes of a row and their ancestors, 0 for others. Class paths such as "01/02@05"
        have the ancestors of their classes; sets must contain them.
    y_score : array-like of shape (n, n_classes)
        Probabilities or scores, as from ``predict_proba``.
    average : {"pooled", "macro", "weighted"}, default="pooled"
        One curve of all pairs of a row and a class (AU(PRC) in the literature on hierarchies); the
        mean of the areas of classes; or their mean weighted by the frequency of the class. Classes
        without a true row have no curve, and are left out of means.
    labels : array-like of shape (n_classes,), optional
        The classes of the columns of ``y_score``, as ``classes_`` of a model; needed for class
        paths and sets.

    Returns
    -------
    area : float
        The area, from 0 to 1.

    Examples
    --------
    >>> from okforest.metrics import au_prc
    >>> au_prc([[1, 0], [1, 1]], [[0.9, 0.4], [0.8, 0.3]]).__round__(3)
    0.917
    """
    refuse_masked(y_score, "y_score")
    truth, scores = _read_truth(y_true, labels), np.asarray(y_score, dtype=np.float64)
    check_consistent_length(truth, scores)
    if truth.ndim != 2 or truth.shape != scores.shape:
        raise ValueError(
            f"y_true has shape {truth.shape} and y_score {scores.shape}; pass two matrices of one "
            "shape, with one column per class."
        )
    occurs = truth.any(axis=0)
    if not occurs.any():
        raise ValueError("y_true has no class in any row; a precision–recall curve needs one.")
    if average == "pooled":
        return float(average_precision_score(truth.ravel(), scores.ravel()))
    if average not in ("macro", "weighted"):
        raise ValueError(f"average={average!r}; use 'pooled', 'macro' or 'weighted'.")
    areas = [
        average_precision_score(truth[:, j], scores[:, j]) for j in np.flatnonzero(occurs).tolist()
    ]
    weights = truth[:, occurs].sum(axis=0) if average == "weighted" else None
    return float(np.average(areas, weights=weights))


def _read_truth(y: Any, labels: Any) -> Outputs:
    """Return which classes each row has, as a matrix."""
    if sp.issparse(y):
        matrix: Any = y
        check_sparse(matrix, "y_true")
        return np.asarray(matrix.toarray())
    first = next(iter(y), None) if hasattr(y, "__len__") and len(y) else None
    if holds_text(y):
        sets = read_paths(y)
    elif isinstance(first, set | frozenset):
        sets = read_label_sets(y)
    else:
        return np.asarray(y)
    if labels is None:
        raise ValueError(
            "y_true holds class paths or sets; pass labels=model.classes_, the classes of the "
            "columns of y_score."
        )
    present, others = indicators_of(sets, list(labels))
    if others:
        unknown = min(frozenset().union(*others), key=str)
        raise ValueError(
            f"y_true has the class {unknown!r}, which is not in labels; its rows cannot be scored."
        )
    return present


def au_prc_scorer(model: Any, X: Any, y: Any) -> float:
    """Score a model of label sets or of a hierarchy by the pooled :func:`au_prc`.

    Parameters
    ----------
    model : estimator
        A fitted model with ``predict_proba`` and a kernel on label sets, or a pipeline that ends
        with one.
    X, y : array-like
        Inputs and their true sets.

    Returns
    -------
    score : float
        The pooled area.

    Examples
    --------
    >>> from okforest import OKRandomForest
    >>> from okforest.metrics import au_prc_scorer
    >>> X, y = [[0], [1], [2], [3]] * 5, [{"sea"}, {"sea"}, {"snow"}, {"snow"}] * 5
    >>> model = OKRandomForest(20, kernel="hamming", random_state=0).fit(X, y)
    >>> float(au_prc_scorer(model, X, y))
    1.0
    """
    model, X = unwrap(model, X)
    truth = check_truth(model.span_, X, y)
    return au_prc(model.kernel_.indicators(truth), model.predict_proba(X))
