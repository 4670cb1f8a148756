"""How well scores rank true items above false ones: precision, and curves averaged over folds."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.metrics import precision_recall_curve, roc_curve
from sklearn.utils.validation import check_consistent_length

from okforest._utils.arrays import Floats
from okforest._utils.compat import StrOptions
from okforest._utils.distinct import refuse_masked
from okforest._utils.parameters import COUNT, check_arguments


@dataclass(frozen=True, eq=False)
class AveragedCurve:
    """A curve averaged vertically over folds.

    Parameters
    ----------
    x : ndarray of shape (n_points,)
        False positive rates, or recalls.
    folds : ndarray of shape (n_folds, n_points)
        True positive rates, or precisions, of each fold; NaN for a fold without a curve.

    Examples
    --------
    >>> from okforest.metrics import average_curve
    >>> folds = [([0, 0, 1, 1], [1, 2, 3, 4]), ([0, 1, 0, 1], [1, 2, 3, 4])]
    >>> curve = average_curve(folds, n_points=3)
    >>> curve.folds
    array([[1. , 1. , 1. ],
           [0.5, 1. , 1. ]])
    >>> curve.mean
    array([0.75, 1.  , 1.  ])
    """

    x: Floats
    folds: Floats

    @property
    def mean(self) -> Floats:
        """The mean over folds."""
        return np.asarray(np.nanmean(self.folds, axis=0))

    @property
    def std(self) -> Floats:
        """The standard deviation over folds."""
        return np.asarray(np.nanstd(self.folds, axis=0))


def average_curve(
    folds: Iterable[tuple[Any, Any]], curve: Literal["roc", "pr"] = "roc", n_points: int = 201
) -> AveragedCurve:
    """Average ROC or precision–recall curves vertically.

    An averaged ROC curve is the mean, at each false positive rate, of the folds' true positive
    rates, interpolated linearly. An averaged precision–recall curve is the mean, at each recall, of
    the precision at which each fold reaches it. It is not interpolated, so the mean of a fold's
    curve is its average precision.

    Parameters
    ----------
    folds : iterable of pairs of array-like
        For each fold, which items are true (n,) and their scores (n,).
    curve : {"roc", "pr"}, default="roc"
        The type of curve.
    n_points : int, default=201
        Number of points, evenly spaced from 0 to 1.

    Returns
    -------
    averaged : AveragedCurve
        The curve. A fold without true items (or, for ROC, without false ones) has no curve.

    References
    ----------
    T. Fawcett, "An introduction to ROC analysis", Pattern Recognition Letters 27 (2006).

    Examples
    --------
    >>> from okforest.metrics import average_curve
    >>> folds = [([0, 0, 1, 1], [1, 2, 3, 4]), ([0, 1, 0, 1], [1, 2, 3, 4])]
    >>> average_curve(folds, n_points=5).mean
    array([0.75, 0.75, 1.  , 1.  , 1.  ])
    """
    check_arguments("average_curve", {"curve": [StrOptions({"roc", "pr"})]}, curve=curve)
    x = np.linspace(0.0, 1.0, n_points)
    draw = _roc_at if curve == "roc" else _precision_at_recall
    values = [draw(*_check_scores(truth, scores), x) for truth, scores in folds]
    if not values:
        raise ValueError("folds is empty; pass at least one pair (truth, scores).")
    return AveragedCurve(x, np.array(values))


def precision_at_k(truth: Any, scores: Any, k: int) -> float:
    """Return the share of true items among the k items with the highest scores.

    Parameters
    ----------
    truth : array-like of shape (n,)
        Which items are true.
    scores : array-like of shape (n,)
        Their scores. If items are tied at the k-th place, the result is the mean over all ways to
        break the tie.
    k : int
        The number of items; all of them if there are fewer.

    Returns
    -------
    precision : float
        The share, or NaN if there are no items.

    Examples
    --------
    >>> from okforest.metrics import precision_at_k
    >>> precision_at_k([1, 0, 1, 0], [4, 3, 2, 1], k=2)
    0.5
    >>> precision_at_k([1, 0, 1, 0], [4, 2, 2, 1], k=2)
    0.75
    """
    truth, scores = _check_scores(truth, scores)
    check_arguments("precision_at_k", {"k": [COUNT]}, k=k)
    k = min(int(k), len(scores))
    if k == 0:
        return float("nan")
    last = -np.partition(-scores, k - 1)[k - 1]
    above, tied = scores > last, scores == last
    n_tied = k - above.sum()  # places left for the tied items
    return float((truth[above].sum() + n_tied * truth[tied].mean()) / k)


def _check_scores(truth: Any, scores: Any) -> tuple[npt.NDArray[np.bool_], Floats]:
    refuse_masked(truth, "truth")
    refuse_masked(scores, "scores")
    truth, scores = np.asarray(truth).astype(bool), np.asarray(scores)
    check_consistent_length(truth, scores)
    n_missing = int(np.isnan(scores).sum()) if scores.dtype.kind == "f" else 0
    if n_missing:
        raise ValueError(
            f"scores contains NaN for {n_missing} of {len(scores)} items, which then have no rank; "
            "remove these items, or give them the lowest score."
        )
    return truth, scores


def _roc_at(truth: npt.NDArray[np.bool_], scores: Floats, x: Floats) -> Floats:
    if truth.all() or not truth.any():
        return np.full(len(x), np.nan)
    false_rate, true_rate, _ = roc_curve(truth, scores)
    return np.interp(x, false_rate, true_rate)  # the top of a vertical segment


def _precision_at_recall(truth: npt.NDArray[np.bool_], scores: Floats, x: Floats) -> Floats:
    if not truth.any():
        return np.full(len(x), np.nan)
    precision, recall, _ = precision_recall_curve(truth, scores)
    # From the highest threshold down, without the point that scikit-learn adds at recall 0.
    precision, recall = precision[-2::-1], recall[-2::-1]
    return precision[np.searchsorted(recall, x, side="left")]
