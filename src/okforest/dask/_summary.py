"""What a fit learns from rows in partitions: a summary of each one, and of all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from okforest._utils.arrays import Booleans, Floats, Outputs
from okforest._utils.frames import Categories, check_category_count, column, is_frame, missing
from okforest._utils.inputs import learn_inputs, missing_features
from okforest._utils.state import blank
from okforest.dask._blocks import naming_partition
from okforest.dask._growing import bytes_of
from okforest.kernels import Dirac, OutputKernel
from okforest.models.tree_model import TreeModel


@dataclass(frozen=True)
class Summary:
    """What a fit needs to know about one partition.

    Parameters
    ----------
    n_rows, n_features : int
        Its shape.
    output_names : tuple or None
        Names of the columns of y.
    dtype : dtype or None
        The type of its inputs as numbers; None without rows.
    n_bytes : int
        The size of its inputs as numbers.
    names : ndarray or None
        Names of the columns of X.
    categories : list
        For each feature its categories, or None if it is numeric. Rows of weight zero are ignored.
    has_missing : ndarray of shape (n_features,)
        Which features have missing values.
    is_empty : ndarray of shape (n_features,)
        Which features have no other values.
    output_shape : tuple
        The shape of one output.
    labels : ndarray or None
        The different outputs of rows of positive weight, if they are labels.
    """

    n_rows: int
    n_features: int
    output_names: tuple[Any, ...] | None
    dtype: np.dtype[Any] | None
    n_bytes: int
    names: Outputs | None
    categories: Categories
    has_missing: Booleans
    is_empty: Booleans
    output_shape: tuple[int, ...]
    labels: Outputs | None


def summarize(
    model: TreeModel, kernel: OutputKernel, number: int, weight: Floats | None, X: Any, y: Any
) -> Summary:
    """Check one partition, on a worker."""
    n_rows, n_features = X.shape
    if len(y) != n_rows:
        raise ValueError(f"partition {number} has {n_rows} rows of X and {len(y)} of y.")
    output_names = tuple(y.columns) if is_frame(y) else None
    if n_rows == 0:
        no = np.zeros(n_features, dtype=bool)
        nothing: Categories = [None] * n_features
        return Summary(0, n_features, output_names, None, 0, None, nothing, no, no, (), None)
    with naming_partition(number):
        scratch = blank(model)  # other partitions share the model
        inputs = learn_inputs(scratch, X, weight, least_rows=1)
        outputs = kernel.check(y)
        used = outputs if weight is None else outputs[weight > 0]
        labels = kernel.resolve(used).classes if isinstance(kernel, Dirac) else None
    has_missing = missing_features(inputs.X)
    is_empty = np.zeros(n_features, dtype=bool)
    if is_frame(X):
        is_empty[:] = [some and missing(column(X, j)).all() for j, some in enumerate(has_missing)]
    return Summary(
        n_rows,
        inputs.n_features,
        output_names,
        inputs.X.dtype,
        bytes_of(inputs.X),
        getattr(scratch, "feature_names_in_", None),
        inputs.categories,
        has_missing,
        is_empty,
        outputs.shape[1:],
        labels,
    )


def merge(summaries: Sequence[Summary]) -> Summary:
    """Return the summary of all partitions, after checking that they fit each other."""
    used = {number: part for number, part in enumerate(summaries) if part.n_rows}
    if not used:
        raise ValueError(f"all {len(summaries)} partitions are empty; at least 2 rows are needed.")
    n_rows = sum(part.n_rows for part in summaries)
    if n_rows < 2:
        raise ValueError("all partitions together have 1 row; at least 2 are needed.")
    first_number, first = next(iter(used.items()))
    for number, part in enumerate(summaries):
        if part.n_features != first.n_features:
            raise ValueError(
                f"partition {number} of X has {part.n_features} columns and partition "
                f"{first_number} has {first.n_features}; all must have the same columns."
            )
    for number, part in used.items():
        for what, own, others in (
            ("X", part.names, first.names),
            ("y", part.output_names, first.output_names),
        ):
            here, there = (None if names is None else list(names) for names in (own, others))
            if here != there:
                raise ValueError(
                    f"partition {number} of {what} has columns {here} and partition {first_number} "
                    f"has {there}; all must have the same columns in the same order."
                )
        if part.output_shape != first.output_shape:
            raise ValueError(
                f"partition {number} of y has outputs of shape {part.output_shape} and partition "
                f"{first_number} of shape {first.output_shape}."
            )
    dtype = np.result_type(*(part.dtype for part in used.values() if part.dtype is not None))
    labels = {number: part.labels for number, part in used.items() if part.labels is not None}
    return Summary(
        n_rows,
        first.n_features,
        first.output_names,
        dtype,
        sum(
            part.n_bytes * dtype.itemsize // part.dtype.itemsize
            for part in used.values()
            if part.dtype is not None
        ),
        first.names,
        [_merged_categories(used, j) for j in range(first.n_features)],
        np.any([part.has_missing for part in used.values()], axis=0),
        np.all([part.is_empty for part in used.values()], axis=0),
        first.output_shape,
        _distinct(labels, "y") if labels else None,
    )


def _merged_categories(used: dict[int, Summary], j: int) -> npt.NDArray[Any] | None:
    known = {n: own for n, part in used.items() if (own := part.categories[j]) is not None}
    if not known:
        return None
    names = next(iter(used.values())).names
    name = str(j) if names is None else repr(str(names[j]))
    # A column of objects without values has no type of its own.
    numeric = [n for n, part in used.items() if n not in known and not part.is_empty[j]]
    if numeric:
        raise ValueError(
            f"column {name} of X is categorical in partition {next(iter(known))} and numeric in "
            f"partition {numeric[0]}; give it one type in all, for example with astype('category')."
        )
    categories = _distinct(known, f"column {name} of X")
    check_category_count(name, len(categories))
    return categories


def _distinct(values: dict[int, npt.NDArray[Any]], what: str) -> npt.NDArray[Any]:
    """Return the distinct values of all partitions; text and other values do not mix."""
    some = {number: own for number, own in values.items() if len(own)}
    is_text = {number: isinstance(own[0], str) for number, own in some.items()}
    if len(set(is_text.values())) > 1:
        text = next(number for number in some if is_text[number])
        other = next(number for number in some if not is_text[number])
        raise ValueError(
            f"{what} holds text in partition {text}, such as {str(some[text][0])!r}, and other "
            f"values in partition {other}, such as {some[other][0]!s}; convert all to text, or all "
            "to numbers."
        )
    try:
        return np.unique(np.concatenate(list((some or values).values())))
    except TypeError as error:
        raise ValueError(
            f"{what} holds values that cannot be sorted ({error}); convert all to text."
        ) from None
