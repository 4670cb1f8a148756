"""How well scores rank what is true above what is not: curves averaged over folds, precision."""

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.metrics import precision_recall_curve, roc_curve
from sklearn.utils.validation import check_consistent_length

from okforest._typing import Floats


@dataclass(frozen=True, eq=False)
class AveragedCurve:
    """A curve averaged vertically over folds.

    Parameters
    ----------
    x : ndarray of shape (n_points,)
        False positive rates, or recalls.
    folds : ndarray of shape (n_folds, n_points)
        True positive rates, or precisions, of every fold; NaN where a fold has no curve.
    """

    x: Floats
    folds: Floats

    @property
    def mean(self) -> Floats:
        """The mean over folds."""
        return np.asarray(np.nanmean(self.folds, axis=0))

    @property
    def std(self) -> Floats:
        """The standard deviation over folds: half the width of the band."""
        return np.asarray(np.nanstd(self.folds, axis=0))


def average_curve(
    folds: Iterable[tuple[Any, Any]], curve: Literal["roc", "pr"] = "roc", n_points: int = 201
) -> AveragedCurve:
    """Average ROC or precision–recall curves vertically.

    At each false positive rate the mean of the folds' true positive rates is taken, straight lines
    joining the points of an ROC curve; at each recall, the mean of the precisions with which folds
    reach it, without interpolation, so that a mean under a curve is an average precision.

    Parameters
    ----------
    folds : iterable of pairs of array-like
        For each fold which items are true, and their scores.
    curve : {"roc", "pr"}, default="roc"
        Which curve.
    n_points : int, default=201
        Number of points, from 0 to 1.

    Returns
    -------
    averaged : AveragedCurve
        The curve. A fold without anything true (or, for ROC, without anything false) has none.

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
    if curve not in ("roc", "pr"):
        raise ValueError(f"curve={curve!r}; use 'roc' or 'pr'.")
    x = np.linspace(0.0, 1.0, n_points)
    draw = _roc_at if curve == "roc" else _precision_at_recall
    values = [draw(np.asarray(truth).astype(bool), np.asarray(s), x) for truth, s in folds]
    return AveragedCurve(x, np.array(values).reshape(-1, n_points))


def precision_at_k(truth: Any, scores: Any, k: int) -> float:
    """Return which share of the k items with the largest scores is true.

    Parameters
    ----------
    truth : array-like of shape (n,)
        Which items are true.
    scores : array-like of shape (n,)
        Their scores. Of items that are equal at the k-th place, some are taken at random: the
        result is the mean over all such choices.
    k : int
        How many; all, if there are fewer.

    Returns
    -------
    precision : float
        The share; NaN of nothing.

    Examples
    --------
    >>> from okforest.metrics import precision_at_k
    >>> precision_at_k([1, 0, 1, 0], [4, 3, 2, 1], k=2)
    0.5
    >>> precision_at_k([1, 0, 1, 0], [4, 2, 2, 1], k=2)
    0.75
    """
    truth, scores = np.asarray(truth).astype(bool), np.asarray(scores)
    check_consistent_length(truth, scores)
    if not isinstance(k, Integral) or k < 1:
        raise ValueError(f"k={k!r}; use a positive integer.")
    k = min(int(k), len(scores))
    if k == 0:
        return float("nan")
    last = -np.partition(-scores, k - 1)[k - 1]
    above, level = scores > last, scores == last
    left = k - above.sum()
    return float((truth[above].sum() + left * truth[level].mean()) / k)


def _roc_at(truth: npt.NDArray[np.bool_], scores: Floats, x: Floats) -> Floats:
    if truth.all() or not truth.any():
        return np.full(len(x), np.nan)
    false_rate, true_rate, _ = roc_curve(truth, scores)
    return np.interp(x, false_rate, true_rate)  # of a straight rise, the top


def _precision_at_recall(truth: npt.NDArray[np.bool_], scores: Floats, x: Floats) -> Floats:
    if not truth.any():
        return np.full(len(x), np.nan)
    precision, recall, _ = precision_recall_curve(truth, scores)
    # From the highest threshold on, without the point that scikit-learn adds at recall 0.
    precision, recall = precision[-2::-1], recall[-2::-1]
    return precision[np.searchsorted(recall, np.minimum(x, recall[-1]), side="left")]
