"""Inputs read column by column: arrays and frames, their categories as codes."""

from collections import Counter
from datetime import date, timedelta
from typing import Any, Literal

import narwhals as nw
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._utils.arrays import Booleans, Floats, Outputs, check_sparse, on_gpu, to_host
from okforest._utils.errors import warn

# Types that scikit-learn's check of arrays converts, or refuses with a clear error.
NUMERIC_TYPES = ("int", "uint", "float", "double", "bool", "sparse", "complex")
TIME_TYPES = ("datetime", "timestamp", "timedelta", "date", "duration", "time", "period")


# As models and kernels store it: "frame" is pandas.
Library = Literal["frame", "polars"]


def as_columns(X: Any) -> Any:
    """Return X as an array, a sparse matrix or a frame whose columns can be read.

    Masked entries become NaN, the missing value. Lists become arrays; what is not a table is
    returned as it is, for the general check of inputs to explain.
    """
    if isinstance(X, np.ma.MaskedArray):
        X = _unmasked(X)
    if nw.dependencies.is_polars_lazyframe(X):
        raise ValueError(
            f"X is a {type(X).__name__}, which holds no values yet; pass X.collect() instead."
        )
    if not hasattr(X, "shape"):
        X = _as_array(X)
    check_sparse(X, "X")
    if len(X.shape) == 2:
        _check_names(X)
        _check_times(X)
    return X


def is_frame(X: Any) -> bool:
    """Return whether X is a frame of polars, of pandas, or of a library with its interface."""
    if isinstance(X, np.ndarray):
        return False
    return bool(
        nw.dependencies.is_pandas_like_dataframe(X) or nw.dependencies.is_polars_dataframe(X)
    )


def _opened(X: Any) -> Any:
    """Return a frame as one of narwhals, which reads them all alike, and anything else as it is."""
    return nw.from_native(X, eager_only=True) if is_frame(X) else X


def library_of(frame: Any) -> Library:
    """Return the library of a frame, as models and kernels store it."""
    return "polars" if nw.dependencies.is_polars_dataframe(frame) else "frame"


def frame_of(values: Outputs, names: Any, library: str) -> Any:
    """Return a matrix in a frame of a library, with names for its columns."""
    if library == "polars":
        import polars as pl

        return pl.DataFrame(values, schema=list(names), orient="row")
    import pandas as pd

    return pd.DataFrame(values, columns=pd.Index(names))


def with_index_of(X: Any, frame: Any) -> Any:
    """Return a frame with the index of X, if both have one: frames of polars have none."""
    has_index = nw.dependencies.is_pandas_like_dataframe
    return frame.set_axis(X.index) if has_index(X) and has_index(frame) else frame


def type_of(X: Any, j: int) -> str:
    """Return the name of the type of a column."""
    return str(_opened(X)[:, j].to_native().dtype if is_frame(X) else X.dtype)


def label(X: Any, j: int) -> str:
    """Return a column's name as in Python, or its position."""
    return repr(str(X.columns[j])) if is_frame(X) else str(j)


def column(X: Any, j: int) -> npt.NDArray[Any]:
    """Return the values of a column."""
    if is_frame(X):
        return np.asarray(_opened(X)[:, j].to_numpy())
    return np.asarray(to_host(X[:, j]) if on_gpu(X) else np.asarray(X)[:, j])


def stored_categories(X: Any, j: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]] | None:
    """Return the categories and the codes, -1 if missing, of a categorical column of pandas."""
    if not is_frame(X) or type_of(X, j) != "category":
        return None
    native = _opened(X)[:, j].to_native()
    if not nw.dependencies.is_pandas_series(native):
        return None
    return native.cat.categories.to_numpy(), native.cat.codes.to_numpy()


def needs_conversion(X: Any) -> bool:
    """Return whether some columns of X hold objects or text, which may be numbers or missing."""
    if sp.issparse(X) or len(X.shape) != 2:
        return False
    if not is_frame(X):
        return X.dtype.kind in "OUST"
    return not all(type_of(X, j).lower().startswith(NUMERIC_TYPES) for j in range(X.shape[1]))


def as_floats(values: npt.NDArray[Any]) -> Floats:
    """Return a column as float64; missing values are NaN."""
    if values.dtype.kind == "O":
        values = np.where(missing(values), np.nan, values)
    return values.astype(np.float64)


def missing(values: npt.NDArray[Any]) -> Booleans:
    """Return which values of a column are missing."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "O":
        return np.fromiter(map(_is_missing, values), dtype=bool, count=len(values))
    return np.zeros(len(values), dtype=bool)


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)  # only NaN differs from itself
    except TypeError:
        return True  # comparing pandas.NA gives pandas.NA, which has no truth value


def _unmasked(X: np.ma.MaskedArray[Any, Any]) -> npt.NDArray[Any]:
    if X.dtype.kind not in "fiub":
        raise ValueError(
            f"X is a masked array of type {X.dtype}; only masked numbers become missing values. "
            "Pass an array of floats with NaN, or a frame."
        )
    if not np.ma.is_masked(X):
        return np.asarray(X.data)
    return np.ma.filled(X.astype(np.result_type(X.dtype, np.float32)), np.nan)


def _as_array(X: Any) -> npt.NDArray[Any]:
    if not hasattr(X, "__array__"):
        try:
            array = np.asarray(X)
        except ValueError:  # rows of different lengths
            return np.array(X, dtype=object)
        # Objects stay as they are: in one array, numbers beside text would become text.
        return array if array.dtype.kind in "fiub" else np.array(X, dtype=object)
    return np.asarray(X)


def _check_names(X: Any) -> None:
    if not is_frame(X):
        return
    repeated = [repr(name) for name, count in Counter(X.columns).items() if count > 1]
    if repeated:
        raise ValueError(
            f"X has several columns named {', '.join(repeated)}; column names must be unique. "
            "Rename them, or pass X.to_numpy()."
        )


def _check_times(X: Any) -> None:
    for j in range(X.shape[1] if is_frame(X) else 1):
        kind = type_of(X, j)
        if kind == "object" and is_frame(X):
            values = column(X, j)
            present = values[~missing(values)][:1]
            if len(present) and isinstance(present[0], date | timedelta):
                kind = type(present[0]).__name__
        if kind.lower().startswith(TIME_TYPES):
            where = f"column {label(X, j)} of X" if is_frame(X) else "X"
            raise ValueError(
                f"{where} has type {kind}; convert times to numbers first, for example to days "
                "since a date."
            )


# For each feature, the sorted values of its categories, or None if it is numeric.
Categories = list[npt.NDArray[Any] | None]

# A feature with more categories is rather a name or an identifier.
MAX_CATEGORIES = 1024

CATEGORICAL_TYPES = ("category", "categorical", "enum", "str", "utf8")


def learn_categories(
    X: Any, categorical_features: Any, sample_weight: Any = None, *, limited: bool = True
) -> Categories:
    """Return the categories of the categorical features.

    ``categorical_features`` is None, "from_dtype" (categorical and text columns of a frame), or
    names, indices or a mask of features. Rows of weight zero are ignored. ``limited`` is whether
    the number of categories of a feature is.
    """
    if len(X.shape) != 2:  # the general check of inputs explains it
        return []
    mask = _categorical_mask(X, categorical_features)
    if not mask.any():
        return [None] * len(mask)
    if sp.issparse(X):
        raise ValueError(
            "categorical_features is not supported for sparse X; pass a dense array or a frame."
        )
    weighs = np.ones(X.shape[0], dtype=bool)
    if sample_weight is not None:
        weight = np.asarray(sample_weight)
        if weight.shape == weighs.shape:  # otherwise the check of weights explains it
            weighs = weight > 0
    learnt = [_learn(X, j, weighs) if chosen else None for j, chosen in enumerate(mask)]
    for j, known in enumerate(learnt):
        if limited and known is not None:
            check_category_count(label(X, j), len(known))
    return learnt


def encode(X: Any, categories: Categories, text_advice: str) -> Floats:
    """Return X as numbers, with categories as codes.

    ``text_advice`` is the advice in the error about text in other columns.
    """
    if sp.issparse(X):
        raise ValueError(
            "X is sparse, but this model has categorical features; pass a dense array or a frame."
        )
    encoded = np.empty(X.shape, order="F")
    text: dict[int, str] = {}
    for j, known in enumerate(categories):
        stored = None if known is None else stored_categories(X, j)
        values = column(X, j) if stored is None else stored[0]
        if known is not None:
            _warn_of_numbers(X, j, values, known)
            codes = _codes(values, known)
            encoded[:, j] = codes if stored is None else np.append(codes, np.nan)[stored[1]]
            continue
        try:
            encoded[:, j] = as_floats(values)
        except ValueError:
            text[j] = _first_text(values)
    if text:
        names = ", ".join(label(X, j) for j in text)
        raise ValueError(
            f"X has text in column{'s' * (len(text) > 1)} {names}, such as "
            f"{next(iter(text.values()))!r}. {text_advice}"
        )
    return encoded


def category_counts(categories: Categories) -> npt.NDArray[np.int32]:
    """Return the number of categories of each feature, 0 for a numeric one."""
    counts = (0 if known is None else len(known) for known in categories)
    return np.fromiter(counts, dtype=np.int32, count=len(categories))


def categorical_names(X: Any, categories: Categories) -> str:
    """Return the names of the categorical features, for messages."""
    return ", ".join(label(X, j) for j, known in enumerate(categories) if known is not None)


def _first_text(values: npt.NDArray[Any]) -> str:
    """Return the first value that is not a number."""
    for value in values:
        try:
            float(value)
        except (TypeError, ValueError):
            if isinstance(value, str):
                return str(value)
    return ""


def _categorical_mask(X: Any, categorical_features: Any) -> Booleans:
    n_features = X.shape[1]
    mask = np.zeros(n_features, dtype=bool)
    if categorical_features is None:
        return mask
    if isinstance(categorical_features, str):
        if categorical_features != "from_dtype":
            raise ValueError(
                f"categorical_features={categorical_features!r}; use None, 'from_dtype', or a list "
                "of feature names, indices or booleans."
            )
        if is_frame(X):
            mask[:] = [_has_categorical_type(X, j) for j in range(n_features)]
        return mask
    chosen = np.asarray(list(categorical_features))
    if chosen.dtype.kind == "b" and chosen.shape == (n_features,):
        return chosen
    if chosen.dtype.kind in "iu" and ((-n_features <= chosen) & (chosen < n_features)).all():
        mask[chosen] = True
        return mask
    names = list(X.columns) if is_frame(X) else []
    if chosen.dtype.kind in "UOT" and all(name in names for name in chosen):
        mask[[names.index(name) for name in chosen]] = True
        return mask
    if chosen.size == 0:
        return mask
    raise ValueError(
        f"categorical_features={categorical_features!r} does not match X, which has {n_features} "
        f"features{' named ' + ', '.join(map(str, names)) if names else ' without names'}. Use a "
        "list of names, of indices, or of one boolean per feature."
    )


def _has_categorical_type(X: Any, j: int) -> bool:
    kind = type_of(X, j).lower()
    if kind == "object":  # text, or numbers as Python objects
        values = column(X, j)
        return any(isinstance(value, str) for value in values[~missing(values)])
    return kind.startswith(CATEGORICAL_TYPES)


def _learn(X: Any, j: int, weighs: Booleans) -> npt.NDArray[Any]:
    stored = stored_categories(X, j)
    if stored is None:
        values = column(X, j)[weighs]
    else:
        used = np.unique(stored[1][weighs])
        values = stored[0][used[used >= 0]]
    try:
        known: npt.NDArray[Any] = np.unique(values[~missing(values)])
    except TypeError as error:
        raise ValueError(
            f"column {label(X, j)} of X is categorical, but its values cannot be sorted: {error}. "
            "Convert all of them to text, or all to numbers."
        ) from None
    return known


def check_category_count(name: str, n_categories: int) -> None:
    """Raise a ValueError if a column has too many categories."""
    if n_categories > MAX_CATEGORIES:
        raise ValueError(
            f"column {name} of X has {n_categories} categories; at most {MAX_CATEGORIES} are "
            "allowed for splits into subsets. Set categorical_encoding='target' if the model has "
            "it, merge rare categories, or drop the column if it is an identifier."
        )


def _warn_of_numbers(X: Any, j: int, values: npt.NDArray[Any], known: npt.NDArray[Any]) -> None:
    """Warn that numbers replace text: every value is an unknown category.

    One row with an odd value has a numeric type, too, so it is not an error. Columns without values
    may have any type.
    """
    if values.dtype.kind not in "fiub" or missing(values).all() or not len(known):
        return
    if all(isinstance(value, str) for value in known):
        warn(
            f"column {label(X, j)} of X holds numbers ({type_of(X, j)}), but in training its "
            f"categories were text, such as {str(known[0])!r}: all its values are unknown "
            "categories. Pass the categories as in training.",
        )


def _codes(values: npt.NDArray[Any], known: npt.NDArray[Any]) -> Floats:
    codes = np.full(len(values), np.nan)
    present = ~missing(values)
    if not len(known):
        codes[present] = 0.0  # no category was seen in training: every value is new
        return codes
    try:
        place = np.searchsorted(known, values[present])
        found = known[np.minimum(place, len(known) - 1)] == values[present]
    except TypeError:  # text and numbers have no common order
        place_of = {value: place for place, value in enumerate(known.tolist())}
        codes[present] = [place_of.get(value, len(known)) for value in values[present].tolist()]
        return codes
    codes[present] = np.where(found, place, len(known))
    return codes
