"""How well label maps of images agree: overlap of regions, and of their boundaries."""

from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_consistent_length

from okforest._utils.arrays import Booleans, Floats
from okforest._utils.compat import StrOptions
from okforest._utils.parameters import check_arguments

Maps = list[npt.NDArray[Any]]


@overload
def intersection_over_union(
    y_true: Any, y_pred: Any, labels: Sequence[Any] | None = None, average: Literal["macro"] = ...
) -> float: ...
@overload
def intersection_over_union(
    y_true: Any, y_pred: Any, labels: Sequence[Any] | None = None, *, average: None
) -> Floats: ...
def intersection_over_union(
    y_true: Any,
    y_pred: Any,
    labels: Sequence[Any] | None = None,
    average: Literal["macro"] | None = "macro",
) -> float | Floats:
    """Return the number of pixels that both maps label alike, over those that either does.

    Pixels of all images are counted together.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n, height, width), or list of n arrays
        True and predicted label maps.
    labels : sequence, optional
        The labels to measure; by default all that occur.
    average : {"macro"} or None, default="macro"
        Return the mean over the labels, or one value for each.

    Returns
    -------
    score : float or ndarray
        1 for equal maps. NaN for a label that occurs nowhere, which the mean leaves out.

    Examples
    --------
    >>> from okforest.metrics import intersection_over_union
    >>> intersection_over_union([[["a", "a"], ["b", "b"]]], [[["a", "b"], ["b", "b"]]])
    0.5833333333333333
    """
    constraints = {"average": [StrOptions({"macro"}), None]}
    check_arguments("intersection_over_union", constraints, average=average)
    true, predicted = _pairs(y_true, y_pred)
    a = np.concatenate([labels.ravel() for labels in true])
    b = np.concatenate([labels.ravel() for labels in predicted])
    known = np.union1d(a, b) if labels is None else np.asarray(labels)
    both = np.array([np.count_nonzero((a == label) & (b == label)) for label in known], float)
    either = np.array([np.count_nonzero((a == label) | (b == label)) for label in known], float)
    scores = np.divide(both, either, out=np.full(len(known), np.nan), where=either > 0)
    return scores if average is None else float(np.nanmean(scores))


def boundary_f1(y_true: Any, y_pred: Any, tolerance: float = 2.0) -> float:
    """Return how well the boundaries between labels agree, averaged over images.

    Precision is the fraction of the predicted boundary within some distance of the true boundary,
    recall the fraction of the true boundary near the predicted one; the score is their harmonic
    mean. A pixel is on the boundary if the label of a pixel above, below, left or right differs.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n, height, width), or list of n arrays
        True and predicted label maps.
    tolerance : float, default=2.0
        The distance in pixels.

    Returns
    -------
    score : float
        1 if all boundaries agree. An image counts as 1 if neither map has a boundary, and as 0 if
        one of them has none.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.metrics import boundary_f1
    >>> true = np.repeat([[0] * 10 + [1] * 10], 20, axis=0)
    >>> boundary_f1([true], [np.repeat([[0] * 12 + [1] * 8], 20, axis=0)], tolerance=2)
    1.0
    """
    scores = [_boundary_f1(*pair, tolerance) for pair in zip(*_pairs(y_true, y_pred), strict=True)]
    return float(np.mean(scores))


def _boundary_f1(true: npt.NDArray[Any], predicted: npt.NDArray[Any], tolerance: float) -> float:
    a, b = _boundary(true), _boundary(predicted)
    if not a.any() or not b.any():
        return float(a.any() == b.any())
    from scipy.ndimage import distance_transform_edt

    precision = np.mean(distance_transform_edt(~a)[b] <= tolerance)
    recall = np.mean(distance_transform_edt(~b)[a] <= tolerance)
    total = precision + recall
    return float(2 * precision * recall / total) if total > 0 else 0.0


def _boundary(labels: npt.NDArray[Any]) -> Booleans:
    on = np.zeros(labels.shape, dtype=bool)
    down, right = labels[1:] != labels[:-1], labels[:, 1:] != labels[:, :-1]
    on[1:] |= down
    on[:-1] |= down
    on[:, 1:] |= right
    on[:, :-1] |= right
    return on


def _pairs(y_true: Any, y_pred: Any) -> tuple[Maps, Maps]:
    true, predicted = ([np.asarray(labels) for labels in maps] for maps in (y_true, y_pred))
    check_consistent_length(true, predicted)
    if not true:
        raise ValueError("y_true has no maps; pass at least one.")
    for i, (a, b) in enumerate(zip(true, predicted, strict=True)):
        if a.ndim != 2:
            raise ValueError(
                f"map {i} of y_true has shape {a.shape}; expected a list of maps of shape "
                "(height, width)."
            )
        if a.shape != b.shape:
            raise ValueError(f"map {i} has shape {a.shape} in y_true and {b.shape} in y_pred.")
    return true, predicted
