"""Label sets as users pass them: lists of sets, and 0-1 matrices, dense, sparse or in a frame."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from okforest._utils.arrays import Booleans, Floats, Outputs, check_sparse
from okforest.kernels.outputs import array_of_objects, check_collection, read_array

Form = Literal["array", "sparse", "frame", "polars", "paths", "ranks", "text", "orders"]
FRAMES = ("frame", "polars")
AS_SETS = "pass sets, such as [set(labels) for labels in y], or a matrix of 0 and 1"
SEPARATORS = ";,|> "


def read_label_sets(y: Any) -> Outputs:
    """Return sets as an array of frozensets, and anything else as a matrix of 0 and 1."""
    if sp.issparse(y):
        matrix: Any = y
        check_sparse(matrix, "y")
        return _check_indicators(matrix.toarray())
    y = check_collection(y)
    if not hasattr(y, "__array__"):
        y = list(y)
        if any(isinstance(labels, set | frozenset | str) for labels in y):
            return _read_sets(y)
    elif np.ndim(y) == 1 and np.asarray(y).dtype.kind in "OUT":
        return _read_sets(np.asarray(y).tolist())
    try:
        return _check_indicators(read_array(y))
    except ValueError as error:
        if "different lengths" not in str(error):
            raise
        raise ValueError(f"y holds rows of different lengths; {AS_SETS}.") from None


def _read_sets(y: Sequence[Any]) -> Outputs:
    for labels in y:
        if isinstance(labels, str):
            raise ValueError(_explain_text(labels, y))
        if not isinstance(labels, set | frozenset):
            raise ValueError(f"y holds {labels!r} among sets of labels; {AS_SETS}.")
    if any("" in labels for labels in y):
        raise ValueError(
            "y holds the label '', as splitting an empty text gives; an empty set has no labels: "
            "[labels - {''} for labels in y]."
        )
    return array_of_objects([frozenset(labels) for labels in y])


def _explain_text(text: str, y: Sequence[Any]) -> str:
    """Say how to make sets of text such as "a;b"; set("a;b") has the labels "a", ";" and "b"."""
    texts = [labels for labels in y if isinstance(labels, str)]
    counts = {one: sum(one in labels for labels in texts) for one in SEPARATORS}
    separator = max(counts, key=lambda one: counts[one])
    if not counts[separator]:
        return (
            f"y holds the text {text!r} among sets of labels. If a row has one label, use "
            "kernel=\"dirac\"; if it may have several, pass sets, such as {'a', 'b'}."
        )
    example = next(labels for labels in texts if separator in labels)
    return (
        f"y holds text such as {example!r}; split it into sets of labels: "
        f"[set(text.split({separator!r})) - {{''}} for text in y]. A missing text has no labels: "
        "replace it by '' first, y.fillna('') for a series."
    )


def _check_indicators(matrix: Outputs) -> Outputs:
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise ValueError(
            f"y has shape {matrix.shape}; label sets are a matrix of 0 and 1 with one column per "
            "label, or a list of sets."
        )
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"y holds values such as {matrix.flat[0]!r}; {AS_SETS}.")
    wrong = matrix[(matrix != 0) & (matrix != 1)]
    if len(wrong):
        raise ValueError(
            f"y holds the value {wrong[0]}; a matrix of label sets holds 1 where a row has a "
            "label, and 0 elsewhere."
        )
    return matrix


def learnt_form(y: Any, labels: list[Any] | None) -> dict[str, Any]:
    """Return the form of label sets or ranks, and the names of the columns of a frame."""
    if sp.issparse(y):
        return {"form": "sparse"}
    if not is_frame(y):
        return {"form": "array"}
    names = list(y.columns)
    known = labels if labels and set(labels) == set(names) else names
    return {"form": form_of_frame(y), "labels": known}


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


def is_frame(y: Any) -> bool:
    """Return whether y is a frame of pandas or polars."""
    library = type(y).__module__.partition(".")[0]
    return library in ("pandas", "polars") and hasattr(y, "columns") and hasattr(y, "to_numpy")


def form_of_frame(y: Any) -> Literal["frame", "polars"]:
    """Return the form of outputs that are given in a frame of pandas or polars."""
    return "polars" if type(y).__module__.startswith("polars") else "frame"


def frame_of(outputs: Outputs, names: Any, form: Form) -> Any:
    """Return outputs in a frame of the library of this form."""
    if form == "polars":
        import polars as pl

        return pl.DataFrame(outputs, schema=list(names), orient="row")
    import pandas as pd

    return pd.DataFrame(outputs, columns=pd.Index(names))


def in_form(outputs: Outputs, form: Form | None, labels: Sequence[Any] | None) -> Any:
    """Return predicted label sets in the form that y had."""
    if form == "sparse" and outputs.dtype != object:
        return sp.csr_array(outputs)
    if form in FRAMES and outputs.dtype != object:
        return frame_of(outputs, labels, form)
    return outputs


def sorted_labels(sets: Iterable[frozenset[Any]]) -> list[Any]:
    """Return the different labels of some sets, sorted; those of different types by type."""
    labels = frozenset().union(*sets)
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def indicators_of(outputs: Outputs, labels: Sequence[Any]) -> tuple[Floats, list[frozenset[Any]]]:
    """Return which labels each output has, of shape (n, n_labels), and its other labels."""
    if outputs.dtype != object:
        return outputs.astype(np.float64), []
    column = {label: j for j, label in enumerate(labels)}
    present = np.zeros((len(outputs), len(column)))
    others = []
    for i, output in enumerate(outputs):
        known = [column[label] for label in output if label in column]
        present[i, known] = 1.0
        others.append(
            frozenset() if len(known) == len(output) else output.difference(column.keys())
        )
    return present, others if any(others) else []


def outputs_from(present: Booleans, labels: Sequence[Any], like: Outputs) -> Outputs:
    """Return label sets in the canonical form of other outputs."""
    if like.dtype != object:
        return present.astype(like.dtype)
    return array_of_objects(
        [frozenset(labels[j] for j in np.flatnonzero(row).tolist()) for row in present]
    )


def read_weights(weights: Any, labels: Sequence[Any]) -> Floats:
    """Return the positive weight of every label."""
    if weights is None:
        return np.ones(len(labels))
    if isinstance(weights, Mapping):
        missing = [label for label in labels if label not in weights]
        if missing:
            others = [label for label in weights if label not in labels]
            unused = f" Its entry {others[0]!r} is not a label of y." if others else ""
            raise ValueError(
                f"weights has no entry for the label {missing[0]!r}; give every label a weight."
                f"{unused}"
            )
        weights = [weights[label] for label in labels]
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (len(labels),):
        raise ValueError(
            f"weights has shape {values.shape} for {len(labels)} labels; pass one weight per "
            "label, or a dict of weights by label."
        )
    if not ((values > 0) & np.isfinite(values)).all():
        raise ValueError(f"weights holds {values.min():.4g}; every weight must be positive.")
    return values
