"""Rankings as users pass them: matrices of ranks, orders of labels, and text such as "b>a=c"."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from okforest._typing import Floats, Outputs
from okforest.kernels._outputs import array_of_objects, check_collection, read_array

FORMS = (
    "a matrix of ranks (1 for the most preferred label, NaN for a label without a rank), orders of "
    "labels as tuples, most preferred first, such as ('b', 'a', 'c'), or text such as 'b>a=c'"
)


def read_rankings(y: Any) -> Outputs:
    """Return ranks as a matrix, orders as an array of tuples, and text as an array of text."""
    y = check_collection(y)
    values = np.asarray(y) if hasattr(y, "__array__") else list(y)
    first = values[0] if len(values) else None
    if isinstance(first, str):
        texts = np.asarray(values, dtype=None if isinstance(values, np.ndarray) else object)
        for text in texts:
            _check_order(_labels_of(text), text)
        return texts
    is_objects = isinstance(values, np.ndarray) and values.dtype == object and values.ndim == 1
    if is_objects or (isinstance(values, list) and _is_order(first)):
        for order in values:
            if not isinstance(order, tuple | list):
                raise ValueError(f"y holds {order!r} among orders of labels; pass {FORMS}.")
            _check_order(list(order), order)
        return array_of_objects([tuple(order) for order in values])
    return _check_ranks(_read_ranks(values))


def _is_order(value: Any) -> bool:
    """Return whether a value is an order of labels; a list of numbers is a row of ranks."""
    if isinstance(value, list):
        return any(isinstance(label, str) for label in value)
    return isinstance(value, tuple)


def _read_ranks(values: Any) -> Outputs:
    try:
        return read_array(values)
    except ValueError as error:
        if "different lengths" not in str(error):
            raise
        raise ValueError(f"y holds lists of different lengths; pass {FORMS}.") from None


def _labels_of(text: Any) -> list[str]:
    if not isinstance(text, str):
        raise ValueError(f"y holds {text!r} among rankings as text; pass {FORMS}.")
    return [label.strip() for part in text.split(">") for label in part.split("=")]


def _check_order(labels: list[Any], ranking: Any) -> None:
    if len(set(labels)) != len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise ValueError(
            f"the ranking {ranking!r} holds the label {twice!r} more than once; a label has one "
            "rank."
        )
    if not labels or "" in labels:
        raise ValueError(f"the ranking {ranking!r} is empty or lacks a label; pass {FORMS}.")


def _check_ranks(ranks: Outputs) -> Outputs:
    if ranks.ndim != 2 or ranks.shape[1] < 2 or ranks.dtype.kind not in "iuf":
        raise ValueError(f"y has shape {ranks.shape} and type {ranks.dtype}; pass {FORMS}.")
    if ranks.dtype.kind in "iu" and (np.sort(ranks) == np.arange(ranks.shape[1])).all(axis=1).any():
        raise ValueError(
            f"y has a row that holds each of the integers from 0 to {ranks.shape[1] - 1} once, and "
            "ranks begin with 1. If y holds orders of labels, most preferred first, pass tuples: "
            "[tuple(row) for row in y]; if it holds ranks, pass y + 1."
        )
    if np.isinf(ranks).any():
        raise ValueError("y holds infinite ranks; use NaN for a label without a rank.")
    if ranks.dtype.kind == "f" and np.isnan(ranks).all(axis=1).any():
        raise ValueError("y has a row without any rank; remove it from X and y.")
    return ranks


def labels_in(outputs: Outputs) -> list[Any]:
    """Return the labels of some rankings, sorted."""
    if outputs.ndim == 2:
        return list(range(outputs.shape[1]))
    orders = [_labels_of(output) if isinstance(output, str) else output for output in outputs]
    labels = {label for order in orders for label in order}
    try:
        return sorted(labels, key=lambda label: (len(label), label))  # "L2" before "L10"
    except TypeError:
        pass
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def ranks_of(outputs: Outputs, labels: Sequence[Any]) -> Floats:
    """Return the rank of each label, of shape (n, n_labels), NaN where there is none.

    Tied labels have their mean rank. Labels that are not among the given ones are left out.
    """
    if outputs.ndim == 2:
        return _mean_ranks(outputs.astype(np.float64))
    column = {label: j for j, label in enumerate(labels)}
    ranks = np.full((len(outputs), len(column)), np.nan)
    for i, output in enumerate(outputs):
        groups: Sequence[Sequence[Any]]
        if isinstance(output, str):
            groups = [[one.strip() for one in part.split("=")] for part in output.split(">")]
        else:
            groups = [[label] for label in output]
        for place, group in enumerate(groups):
            ranks[i, [column[label] for label in group if label in column]] = place
    return _mean_ranks(ranks)


def _mean_ranks(values: Floats) -> Floats:
    """Replace values by their ranks among those of a row, from 1, with means for ties."""
    missing = np.isnan(values)
    filled = np.where(missing, np.inf, values)
    order = np.argsort(filled, axis=1, kind="stable")
    ordered = np.take_along_axis(filled, order, axis=1)
    places = np.broadcast_to(np.arange(values.shape[1], dtype=np.float64), values.shape)
    is_new = np.ones(values.shape, dtype=bool)
    is_new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.maximum.accumulate(np.where(is_new, places, 0.0), axis=1)
    is_last = np.ones(values.shape, dtype=bool)
    is_last[:, :-1] = is_new[:, 1:]
    last = np.minimum.accumulate(
        np.where(is_last, places, float(values.shape[1]))[:, ::-1], axis=1
    )[:, ::-1]
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1.0, axis=1)
    ranks[missing] = np.nan
    return ranks


def rankings_from(orders: Any, labels: Sequence[Any], like: Outputs) -> Outputs:
    """Return rankings in the form of others, from labels' positions, most preferred first."""
    if like.ndim == 2:
        ranks = np.argsort(orders, axis=1) + 1
        return ranks.astype(like.dtype)
    named = [[labels[j] for j in order] for order in orders]
    if isinstance(like[0], str):
        texts = [">".join(map(str, order)) for order in named]
        return np.array(texts, dtype=object if like.dtype == object else None)
    return array_of_objects([tuple(order) for order in named])
