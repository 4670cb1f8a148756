"""How well predicted sets of labels agree with the true sets, by example, micro and macro."""

from typing import Any, Literal

import numpy as np
from sklearn.metrics import make_scorer
from sklearn.utils.validation import check_consistent_length

from okforest._typing import Booleans, Floats
from okforest.kernels import Hamming
from okforest.kernels._hierarchy import holds_text, read_paths
from okforest.kernels._label_sets import indicators_of, sorted_labels
from okforest.metrics._weights import check_score_weight

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
