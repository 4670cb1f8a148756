"""Converting what users pass as ``y`` to arrays, with errors that name the remedy."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array

from okforest._utils.arrays import Outputs, namespace, on_gpu, to_host
from okforest._utils.frames import frame_of, is_frame, library_of

OF_OBJECTS = (
    "a function of two objects, kernel=FromCallable(f, elementwise=True), or a Gram matrix, "
    "kernel=Precomputed(K)"
)
OF_SETS = "kernel='hamming', 'jaccard' or 'dice'"
OF_TEXT = (
    "For labels, use kernel=Dirac(); for strings, Spectrum(), EditDistance() or FromCallable(f); "
    "for paths of classes, Hierarchy(); for rankings such as 'b>a>c', Kendall(), all of "
    "okforest.kernels"
)
Form = Literal["array", "sparse", "frame", "polars", "paths", "ranks", "text", "orders"]
FRAMES = ("frame", "polars")


def check_collection(y: Any) -> Any:
    """Return y, or raise a ValueError if its entries are not all known."""
    if y is None or np.isscalar(y) or (isinstance(y, np.ndarray) and y.ndim == 0):
        raise ValueError(f"y is the single value {y!r}; it must hold one output per row.")
    if type(y).__name__ == "LazyFrame":
        raise ValueError("y is a LazyFrame, whose values are not computed yet; pass y.collect().")
    parts = y if isinstance(y, list | tuple) else [y]
    if any(isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part) for part in parts):
        raise ValueError(
            "y is a masked array with masked entries, but every output must be known; remove "
            "their rows from X and y."
        )
    return y.data if isinstance(y, np.ma.MaskedArray) else to_host(y)


def read_array(y: Any) -> Outputs:
    """Return y as NumPy converts it, or raise a ValueError if its entries differ in length."""
    y = check_collection(y)
    if sp.issparse(y):
        raise ValueError("y is a sparse matrix, but outputs must be dense; pass y.toarray().")
    try:
        return np.asarray(y)
    except ValueError:
        raise ValueError(_ragged(y)) from None


def read_numbers(y: Any) -> Outputs:
    """Return numbers or vectors as float64, of shape (n,) or (n, q), where they are."""
    if on_gpu(y):
        return _read_numbers_on_device(y)
    array = read_array(y)
    if array.dtype.kind in "mM":
        raise ValueError(_dates(array.dtype.name))
    if array.dtype.kind == "O" and array.size and isinstance(array.flat[0], date):
        raise ValueError(_dates(type(array.flat[0]).__name__))
    if array.ndim > 2:
        raise ValueError(
            f"y has shape {array.shape}; a numeric kernel takes numbers, of shape (n,), or "
            "vectors, of shape (n, q). Flatten each output: y.reshape(len(y), -1)."
        )
    is_number = array.dtype.kind in "biufc"
    try:
        # A frame is passed as it is: scikit-learn knows the missing values of its columns.
        outputs: Outputs = check_array(
            array if is_number else check_collection(y),
            dtype=np.float64,
            ensure_2d=False,
            input_name="y",
        )
    except (TypeError, ValueError) as error:
        explanation = None if is_number else _explain_objects(array)
        if explanation is None and "contains NaN" in str(error):
            explanation = (
                "Input y contains NaN, but every output must be known; remove the rows of missing "
                "outputs from X and y."
            )
        if explanation is None:
            raise
        raise ValueError(explanation) from error
    return outputs


def _read_numbers_on_device(y: Any) -> Outputs:
    """Return numbers or vectors on a GPU as float64; whatever is wrong is explained on the host."""
    finite = y.dtype.kind in "biu" or (y.dtype.kind == "f" and namespace(y).isfinite(y).all())
    if y.ndim not in (1, 2) or not y.size or not finite:
        return read_numbers(to_host(y))
    outputs: Outputs = y.astype(np.float64, copy=False)
    return outputs


def read_labels(y: Any) -> Outputs:
    """Return labels as an array, of numbers, of text, or of objects that can be sorted."""
    labels = read_array(y)
    kind = labels.dtype.kind
    if kind in "mM":
        raise ValueError(_date_labels(labels.dtype.name))
    if kind in "fc":
        check_array(labels, ensure_2d=False, input_name="y")  # NaN and infinity are not labels
    if kind in "US" and not hasattr(y, "__array__"):
        _check_label_types(np.asarray(y, dtype=object))  # NumPy converts 1 and "1" to equal text
    elif kind == "O":
        _check_label_types(labels)
    return labels


def read_objects(y: Any) -> Outputs:
    """Return an array as it is, and any other collection as a 1-d array of its entries."""
    y = check_collection(y)
    return np.asarray(y) if hasattr(y, "__array__") else array_of_objects(list(y))


def array_of_objects(values: list[Any]) -> Outputs:
    """Return a 1-d array of objects; NumPy alone would unpack lists and tuples of equal length."""
    objects = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        objects[i] = value
    return objects


def _check_label_types(labels: Outputs) -> None:
    """Raise a ValueError for missing values, dates, sets and a mixture of text and others."""
    text: list[Any] = []
    others: list[Any] = []
    for label in labels.ravel().tolist():
        if is_missing(label):
            raise ValueError(_missing(label))
        if isinstance(label, date | timedelta):
            raise ValueError(_date_labels(type(label).__name__))
        if isinstance(label, set | frozenset):
            raise ValueError(
                f"y holds sets, such as {label!r}; the Dirac kernel takes one label per row. For "
                f"sets, use {OF_SETS}."
            )
        (text if isinstance(label, str) else others).append(label)
    if text and others:
        raise ValueError(
            f"y mixes text and other labels, such as {text[0]!r} and {others[0]!r}; use one type, "
            "for example [str(label) for label in y]."
        )


def _explain_objects(array: Outputs) -> str | None:
    """Describe the first entry that is not a number, and what to do about it."""
    if array.dtype.names is not None:
        return (
            f"y is a structured array with the fields {', '.join(array.dtype.names)}; a numeric "
            "kernel takes numbers. For events and times, use kernel='survival'."
        )
    for value in array.ravel().tolist():
        if is_missing(value):
            return _missing(value)
        if isinstance(value, date | timedelta):
            return _dates(type(value).__name__)
        if isinstance(value, str | bytes):
            if not _is_number(value):
                return (
                    f"y holds text, such as {value!r}; a numeric kernel takes numbers. {OF_TEXT}."
                )
        elif isinstance(value, set | frozenset):
            return f"y holds sets; a numeric kernel takes numbers. Use {OF_SETS}."
        elif isinstance(value, list | tuple | np.ndarray):
            if len({np.shape(entry) for entry in array.ravel()}) == 1:
                return "y holds vectors as objects; pass np.stack(y), an array of shape (n, q)."
            return _ragged(array)
        elif not _is_number(value):
            return (
                f"y holds objects of type {type(value).__name__}; a numeric kernel takes numbers. "
                f"Use {OF_OBJECTS}."
            )
    return None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or the NA or NaT of pandas, which is not imported."""
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float) and value != value)
    )


def refuse_missing(value: Any) -> None:
    """Raise an error if an output is a missing value."""
    if is_missing(value):
        raise ValueError(_missing(value))


def _missing(value: Any) -> str:
    return f"y contains {value!r}, a missing value; remove its row from X and y, or impute it."


def _dates(name: str) -> str:
    return (
        f"y holds dates or times ({name}); a numeric kernel takes numbers. Convert them, for "
        "example to days: (y - y.min()) / np.timedelta64(1, 'D')."
    )


def _date_labels(name: str) -> str:
    return (
        f"y holds dates or times ({name}); the Dirac kernel takes labels. Convert them to text, "
        "[str(label) for label in y], or to numbers."
    )


def _ragged(y: Any) -> str:
    lengths = sorted({len(entry) if hasattr(entry, "__len__") else 1 for entry in y})
    differing = f" ({lengths[0]} to {lengths[-1]})" if len(lengths) > 1 else ""
    return (
        f"y holds outputs of different lengths{differing}; this kernel takes outputs of one "
        "length. For sets of labels, pass sets, [set(labels) for labels in y], and "
        f"kernel='hamming', 'jaccard' or 'dice'. For sequences, use {OF_OBJECTS}."
    )


def learnt_form(y: Any, labels: list[Any] | None) -> dict[str, Any]:
    """Return the form of label sets or ranks, and the names of the columns of a frame."""
    if sp.issparse(y):
        return {"form": "sparse"}
    if not is_frame(y):
        return {"form": "array"}
    names = list(y.columns)
    known = labels if labels and set(labels) == set(names) else names
    return {"form": library_of(y), "labels": known}


def in_order(y: Any, labels: Sequence[Any] | None, form: Form | None) -> Any:
    """Return a frame with its columns in the order of the labels."""
    if labels is None or not is_frame(y):
        return y
    names = list(y.columns)
    if len(names) == len(labels) and set(names) == set(labels):
        return y if names == list(labels) else y[list(labels)]
    if form not in FRAMES:
        return y
    missing = [label for label in labels if label not in names]
    other = [name for name in names if name not in labels]
    raise ValueError(
        f"y has the columns {names}; expected one for each of the labels {list(labels)}"
        + (f", and {missing[0]!r} is missing" if missing else "")
        + (f", and {other[0]!r} is unknown" if other else "")
        + "."
    )


def in_form(outputs: Outputs, form: Form | None, labels: Sequence[Any] | None) -> Any:
    """Return predicted label sets in the form that y had."""
    if form == "sparse" and outputs.dtype != object:
        return sp.csr_array(outputs)
    if form in FRAMES and outputs.dtype != object:
        return frame_of(outputs, labels, form)
    return outputs
