"""How well predicted sets of labels, and of classes in a hierarchy, agree with the true ones."""

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import average_precision_score, make_scorer
from sklearn.utils.validation import check_consistent_length

from okforest._utils.arrays import Booleans, Floats, Outputs, check_sparse
from okforest._utils.distinct import refuse_masked
from okforest.kernels import Hamming
from okforest.kernels.hierarchies import holds_text, read_paths
from okforest.kernels.label_sets import indicators_of, read_label_sets, sorted_labels
from okforest.metrics.losses import check_score_weight, check_truth, unwrap

Average = Literal["example", "micro", "macro"]


def set_f1_score(
    y_true: Any, y_pred: Any, *, average: Average = "example", sample_weight: Any = None
) -> float:
    """Return the F1 score of predicted sets of labels.

    Parameters
    ----------
    y_true, y_pred : list of sets, or matrix of 0 and 1 of shape (n, n_labels)
        True and predicted sets. Columns of two frames are compared by name. Class paths such as
        "01/02@05" are the sets of their classes and ancestors.
    average : {"example", "micro", "macro"}, default="example"
        The mean over examples, where two empty sets have score 1; the score of all pairs of an
        example and a label; or the mean over labels, without those that are neither true nor
        predicted anywhere.
    sample_weight : array-like of shape (n,), optional
        Weights of the examples.

    Returns
    -------
    score : float
        The score, from 0 to 1.

    Examples
    --------
    >>> from okforest.metrics import set_f1_score
    >>> set_f1_score([{"sea", "sand"}, {"snow"}], [{"sea"}, {"snow"}]).__round__(3)
    0.833
    """
    both, true, predicted, weight = _counts(y_true, y_pred, sample_weight)
    return _ratio(2 * both, true.astype(int) + predicted, weight, average)


def set_jaccard_score(
    y_true: Any, y_pred: Any, *, average: Average = "example", sample_weight: Any = None
) -> float:
    """Return the number of labels in both sets, divided by that in either.

    Parameters
    ----------
    y_true, y_pred : list of sets, or matrix of 0 and 1 of shape (n, n_labels)
        True and predicted sets.
    average : {"example", "micro", "macro"}, default="example"
        As in :func:`set_f1_score`.
    sample_weight : array-like of shape (n,), optional
        Weights of the examples.

    Returns
    -------
    score : float
        The score, from 0 to 1.

    Examples
    --------
    >>> from okforest.metrics import set_jaccard_score
    >>> set_jaccard_score([{"sea", "sand"}, {"snow"}], [{"sea"}, {"snow"}])
    0.75
    """
    both, true, predicted, weight = _counts(y_true, y_pred, sample_weight)
    return _ratio(both, true | predicted, weight, average)


def set_hamming_loss(
    y_true: Any, y_pred: Any, *, labels: Any = None, sample_weight: Any = None
) -> float:
    """Return the share of pairs of an example and a label that are predicted wrongly.

    Parameters
    ----------
    y_true, y_pred : list of sets, or matrix of 0 and 1 of shape (n, n_labels)
        True and predicted sets.
    labels : collection, optional
        All labels, if some of them may be in none of the sets. By default those in the sets, or the
        columns of the matrix.
    sample_weight : array-like of shape (n,), optional
        Weights of the examples.

    Returns
    -------
    loss : float
        The loss, from 0 to 1.

    Examples
    --------
    >>> from okforest.metrics import set_hamming_loss
    >>> set_hamming_loss([{"sea", "sand"}, {"snow"}], [{"sea"}, {"snow"}]).__round__(3)
    0.167
    """
    _, true, predicted, weight = _counts(y_true, y_pred, sample_weight)
    n_labels = true.shape[1]
    if labels is not None:
        n_labels = len(set(labels))
        if n_labels < true.shape[1]:
            raise ValueError(
                f"labels has {n_labels} labels, and the sets have {true.shape[1]}; pass all labels."
            )
    return float(np.average((true ^ predicted).sum(axis=1), weights=weight) / max(1, n_labels))


def subset_accuracy(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    """Return the share of examples whose set is predicted exactly.

    Parameters
    ----------
    y_true, y_pred : list of sets, or matrix of 0 and 1 of shape (n, n_labels)
        True and predicted sets.
    sample_weight : array-like of shape (n,), optional
        Weights of the examples.

    Returns
    -------
    accuracy : float
        The share, from 0 to 1.

    Examples
    --------
    >>> from okforest.metrics import subset_accuracy
    >>> subset_accuracy([{"sea", "sand"}, {"snow"}], [{"sea"}, {"snow"}])
    0.5
    """
    _, true, predicted, weight = _counts(y_true, y_pred, sample_weight)
    return float(np.average((true == predicted).all(axis=1), weights=weight))


def _counts(y_true: Any, y_pred: Any, sample_weight: Any) -> tuple[Any, Booleans, Booleans, Floats]:
    """Return which labels each example has, truly and by prediction, and the weights."""
    kernel = Hamming().learn_form(y_true)  # the names of columns
    true, predicted = (
        read_paths(y) if holds_text(y) else kernel.check(y) for y in (y_true, y_pred)
    )
    check_consistent_length(true, predicted)
    if (true.dtype == object) != (predicted.dtype == object):
        raise ValueError(
            "y_true and y_pred are not of one kind: one holds sets, the other is a matrix of 0 and "
            "1. Pass both in the same form."
        )
    if true.ndim == 2 and true.shape != predicted.shape:
        raise ValueError(
            f"y_true has {true.shape[1]} labels and y_pred {predicted.shape[1]}; pass matrices "
            "with the same columns."
        )
    labels = sorted_labels([*true, *predicted]) if true.dtype == object else []
    first, second = (indicators_of(sets, labels)[0] > 0 for sets in (true, predicted))
    weight = check_score_weight(sample_weight, true)
    return first & second, first, second, weight


def _ratio(numerator: Any, denominator: Any, weight: Floats, average: Average) -> float:
    if average == "example":
        above, below = numerator.sum(axis=1), denominator.sum(axis=1)
        values = np.divide(above, below, out=np.ones(len(below)), where=below > 0)
        return float(np.average(values, weights=weight))
    above, below = weight @ numerator, weight @ denominator
    if average == "micro":
        return float(above.sum() / below.sum()) if below.sum() > 0 else 1.0
    if average == "macro":
        occurs = below > 0
        return float((above[occurs] / below[occurs]).mean()) if occurs.any() else 1.0
    raise ValueError(f"average={average!r}; use 'example', 'micro' or 'macro'.")


example_f1_scorer = make_scorer(set_f1_score, average="example")
micro_f1_scorer = make_scorer(set_f1_score, average="micro")
macro_f1_scorer = make_scorer(set_f1_score, average="macro")
hamming_scorer = make_scorer(set_hamming_loss, greater_is_better=False)
subset_accuracy_scorer = make_scorer(subset_accuracy)

# Scorers are objects: their docstrings are set here, with an example for each.
for _name, _scorer, _summary, _value in (
    ("example_f1_scorer", example_f1_scorer, "F1 score, averaged over examples", "0.833"),
    ("micro_f1_scorer", micro_f1_scorer, "F1 score of all pairs of an example and a label", "0.8"),
    ("macro_f1_scorer", macro_f1_scorer, "F1 score, averaged over labels", "0.833"),
    ("hamming_scorer", hamming_scorer, "Hamming loss, with a minus sign", "-0.25"),
    ("subset_accuracy_scorer", subset_accuracy_scorer, "share of sets that are equal", "0.5"),
):
    _scorer.__doc__ = f"""Score predicted sets of labels by the {_summary}; for searches.

Examples
--------
>>> from okforest import OKTree
>>> from okforest.metrics import {_name}
>>> tree = OKTree(kernel="hamming").fit([[0], [1]], [{{"sea"}}, {{"snow"}}])
>>> round({_name}(tree, [[0], [1]], [{{"sea"}}, {{"sea", "snow"}}]), 3)
{_value}
"""


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
