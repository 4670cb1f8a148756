"""Rankings as users pass them: matrices of ranks, orders of labels, and text such as "b>a=c".

In canonical form, equal rankings of one form are equal values: text without blanks and with tied
labels sorted, and ranks that begin with 1, of which tied labels have the smallest.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.frames import is_frame, library_of
from okforest.kernels.outputs import (
    FRAMES,
    Form,
    array_of_objects,
    check_collection,
    is_missing,
    read_array,
)

FORMS = (
    "a matrix of ranks (1 for the most preferred label, NaN for a label without a rank), orders of "
    "labels as tuples, most preferred first, such as ('b', 'a', 'c'), or text such as 'b>a=c'"
)


def form_of(y: Any) -> Form:
    """Return the form of rankings, from the first of them; an error is left to the reader."""
    if is_frame(y):
        return library_of(y)
    values = np.asarray(y) if hasattr(y, "__array__") else y
    first = next(iter(values)) if np.iterable(values) and hasattr(y, "__len__") and len(y) else None
    if isinstance(first, str):
        return "text"
    is_list = isinstance(values, np.ndarray) and isinstance(first, list)
    return "orders" if is_list or _is_order(first) else "ranks"


def read_rankings(y: Any) -> Outputs:
    """Return ranks as a matrix, orders as an array of tuples, and text as an array of text."""
    y = check_collection(y)
    values = np.asarray(y) if hasattr(y, "__array__") else list(y)
    for i, value in enumerate(values):
        if is_missing(value):
            raise ValueError(
                f"y[{i}] is {value!r}, a missing ranking; drop such rows from X and y."
            )
    first = values[0] if len(values) else None
    if isinstance(first, str):
        texts = np.asarray(values, dtype=None if isinstance(values, np.ndarray) else object)
        for text in texts:
            _check_order(_labels_of(text), text)
        canonical = [_text_of(_groups_of(text)) for text in texts]
        return np.array(canonical, dtype=object if texts.dtype == object else None)
    is_objects = isinstance(values, np.ndarray) and values.dtype == object and values.ndim == 1
    if is_objects or (isinstance(values, list) and _is_order(first)):
        for order in values:
            if not isinstance(order, tuple | list):
                raise ValueError(f"y holds {order!r} among orders of labels; pass {FORMS}.")
            _check_order(list(order), order)
        return array_of_objects([tuple(order) for order in values])
    return _least_ranks(_check_ranks(_read_ranks(values)))


def in_form_of(outputs: Outputs, form: Form | None, labels: Sequence[Any] | None) -> Outputs:
    """Return rankings, in canonical form, in the form of the training outputs."""
    current = "ranks" if outputs.ndim == 2 else "text" if _is_text(outputs) else "orders"
    wanted = "ranks" if form in FRAMES else form
    if labels is None or wanted not in ("ranks", "text", "orders") or current == wanted:
        return outputs
    by_name = {str(label): label for label in labels}
    named = []
    for groups in _all_groups(outputs, labels):
        unknown = [one for group in groups for one in group if str(one) not in by_name]
        if unknown and wanted == "ranks":
            raise ValueError(
                f"y holds the label {unknown[0]!r}, and the training outputs are ranks of the "
                f"labels {list(labels)}; pass ranks, or orders of these labels."
            )
        named.append([[by_name.get(str(one), one) for one in group] for group in groups])
    if wanted == "text":
        return np.array([_text_of(groups) for groups in named], dtype=object)
    if wanted == "orders":
        if any(len(group) > 1 for groups in named for group in groups):
            raise ValueError(
                "y holds a ranking with ties, and the training outputs are orders of labels, which "
                "have none; fit the model to text, such as 'b>a=c', or to ranks."
            )
        return array_of_objects([tuple(group[0] for group in groups) for groups in named])
    ranks = np.full((len(named), len(labels)), np.nan)
    column = {label: j for j, label in enumerate(labels)}
    for row, groups in zip(ranks, named, strict=True):
        for place, group in enumerate(groups):
            row[[column[label] for label in group]] = place
    return _least_ranks(ranks)


def check_separators(outputs: Outputs) -> None:
    """Raise a ValueError if every ranking is one label, and one has what may separate several."""
    if outputs.ndim == 2 or any(sum(map(len, one)) > 1 for one in _all_groups(outputs, ())):
        return
    texts = [output if isinstance(output, str) else str(output[0]) for output in outputs]
    text, found = next(((t, one) for t in texts for one in "<,;| " if one in t), ("", ""))
    if not found:
        return
    remedy = f"text.replace({found!r}, '>')"
    if found == "<":
        remedy = "'>'.join(reversed(text.split('<')))"
    raise ValueError(
        f"no ranking in y has more than one label: {text!r} is read as a single label. Labels are "
        f"separated by '>', the most preferred first: {remedy}."
    )


def check_orders(outputs: Outputs) -> None:
    """Raise a ValueError if no ranking prefers a label to another: they would all be alike."""
    columns = range(outputs.shape[1]) if outputs.ndim == 2 else ()
    if not len(outputs) or any(len(groups) > 1 for groups in _all_groups(outputs, columns)):
        return
    first = outputs[0].tolist() if outputs.ndim == 2 else outputs[0]
    raise ValueError(
        f"no ranking in y prefers a label to another: y holds {first!r}, for example. Pass "
        "rankings such as 'b>a>c'; if y holds one class for each row, use kernel=\"dirac\"."
    )


def _is_text(outputs: Outputs) -> bool:
    return outputs.dtype.kind == "U" or (len(outputs) > 0 and isinstance(outputs[0], str))


def _groups_of(text: str) -> list[list[str]]:
    """Return the labels of a ranking as text, best first, with tied labels in one list."""
    return [[label.strip() for label in part.split("=")] for part in text.split(">")]


def _text_of(groups: Sequence[Sequence[Any]]) -> str:
    return ">".join("=".join(sorted(map(str, group), key=_by_length)) for group in groups)


def _by_length(label: str) -> tuple[int, str]:
    return len(label), label  # "L2" before "L10"


def _all_groups(outputs: Outputs, labels: Sequence[Any]) -> Iterator[list[list[Any]]]:
    """Yield the labels of each ranking, best first, with tied labels in one list."""
    for output in outputs:
        if isinstance(output, str):
            yield _groups_of(output)
        elif outputs.ndim == 1:
            yield [[label] for label in output]
        else:
            places = sorted({rank for rank in output.tolist() if rank == rank})
            yield [
                [labels[j] for j in np.flatnonzero(output == place).tolist()] for place in places
            ]


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
    wrong = np.flatnonzero(~_are_ranks(ranks.astype(np.float64)))
    if len(wrong):
        n_labels, row = ranks.shape[1], ranks[wrong[0]]
        omit = ", nan_policy='omit'" if ranks.dtype.kind == "f" and np.isnan(ranks).any() else ""
        rankdata = f"scipy.stats.rankdata({{}}y, axis=1{omit})"
        raise ValueError(
            f"y[{wrong[0]}] is {np.array2string(row, precision=4, threshold=6)}, which are not "
            f"ranks: ranks of {n_labels} labels go from 1, the most preferred, to {n_labels}. If "
            f"larger values are preferred, as with scores, pass {rankdata.format('-')}; if smaller "
            f"ones are, pass {rankdata.format('')}."
        )
    return ranks


def _are_ranks(values: Floats) -> Any:
    """Return which rows hold ranks.

    Tied labels may share the least, the mean or the greatest of their ranks, or be counted as one.
    Labels without a rank may have left gaps among the ranks of the others.
    """
    least, greatest = _tied_ranks(values)
    order = np.argsort(values, axis=1)
    n_missing = np.isnan(values).sum(axis=1, keepdims=True)
    found = np.zeros(len(values), dtype=bool)
    for first in (0.0, 0.5, 1.0):
        gaps = values - least - first * (greatest - least)  # how many ranks are skipped before
        wrong = (gaps < 0) | (gaps > n_missing) | (2.0 * gaps % 1.0 > 0)  # False for NaN
        falls = np.diff(np.take_along_axis(gaps, order, axis=1), axis=1) < 0
        found |= ~wrong.any(axis=1) & ~falls.any(axis=1)
    n_different = (np.diff(np.sort(values, axis=1), axis=1) > 0).sum(axis=1) + 1
    whole = ~((values < 1) | (values % 1.0 > 0)).any(axis=1)
    return found | (whole & (np.nanmax(values, axis=1) == n_different))


def labels_in(outputs: Outputs) -> list[Any]:
    """Return the labels of some rankings, sorted."""
    if outputs.ndim == 2:
        return list(range(outputs.shape[1]))
    orders = [_labels_of(output) if isinstance(output, str) else output for output in outputs]
    labels = {label for order in orders for label in order}
    try:
        return sorted(labels, key=_by_length)
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
    for i, groups in enumerate(_all_groups(outputs, labels)):
        for place, group in enumerate(groups):
            ranks[i, [column[label] for label in group if label in column]] = place
    return _mean_ranks(ranks)


def _mean_ranks(values: Floats) -> Floats:
    """Replace values by their ranks within the row, from 1, with means for ties."""
    first, last = _tied_ranks(values)
    return (first + last) / 2.0


def _least_ranks(ranks: Outputs) -> Outputs:
    """Return ranks within the row, from 1, with the least for ties, in the type given."""
    return _tied_ranks(ranks.astype(np.float64))[0].astype(ranks.dtype)


def _tied_ranks(values: Floats) -> tuple[Floats, Floats]:
    """Return the least and the greatest rank that each value of a row shares with equal ones."""
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
    ranks = np.empty((2, *values.shape))
    for result, ordered_ranks in zip(ranks, (first, last), strict=True):
        np.put_along_axis(result, order, ordered_ranks + 1.0, axis=1)
    ranks[:, missing] = np.nan
    return ranks[0], ranks[1]


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
