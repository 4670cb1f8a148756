"""Categorical features: which they are, and their values as codes for the engine.

A category's code is its position among the sorted values seen in training. A value never seen gets
a code beyond them, which the trees treat as missing.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._typing import Booleans, Floats

# For each feature, the sorted values of its categories, or None if it is numeric.
Categories = list[npt.NDArray[Any] | None]

# A feature with more has no categories worth splitting, but names or identifiers.
MOST_CATEGORIES = 1024

CATEGORICAL_TYPES = ("category", "categorical", "enum", "str", "utf8")


def learn_categories(X: Any, categorical_features: Any, sample_weight: Any = None) -> Categories:
    """Return the categories of the features that are categorical.

    ``categorical_features`` is None, "from_dtype" (categorical and text columns of a frame), or
    names, indices or a mask of features. Rows of weight zero are not looked at.
    """
    X = _as_table(X)
    if len(X.shape) != 2:  # for the general check of inputs to explain
        return []
    _refuse_dates(X)
    mask = _categorical_mask(X, categorical_features)
    if sp.issparse(X) and mask.any():
        raise ValueError(
            "categorical_features names features of a sparse X; categories need a dense array or "
            "a frame."
        )
    weighs = np.ones(X.shape[0], dtype=bool)
    if sample_weight is not None:
        weight = np.asarray(sample_weight)
        if weight.shape == weighs.shape:  # else for the check of weights to explain
            weighs = weight > 0
    return [_learn(X, j, weighs) if chosen else None for j, chosen in enumerate(mask)]


def encode(X: Any, categories: Categories) -> Floats:
    """Return X as numbers, categories being codes."""
    X = _as_table(X)
    if sp.issparse(X):
        raise ValueError("X is sparse; this model has categorical features, and needs it dense.")
    _refuse_dates(X)
    encoded = np.empty(X.shape, order="F")
    for j, values in enumerate(categories):
        encoded[:, j] = _numbers(X, j) if values is None else _codes(_column(X, j), values)
    return encoded


def category_counts(categories: Categories) -> npt.NDArray[np.int32]:
    """Return the number of categories of each feature, 0 for a numeric one."""
    return np.array([0 if c is None else len(c) for c in categories], dtype=np.int32)


def _as_table(X: Any) -> Any:
    if hasattr(X, "shape"):
        return X
    # Lists keep their objects: as one array, numbers beside text would become text.
    return np.asarray(X) if hasattr(X, "__array__") else np.array(X, dtype=object)


def _refuse_dates(X: Any) -> None:
    kinds = map(str, X.dtypes) if _is_frame(X) else [str(getattr(X, "dtype", ""))]
    for kind in kinds:
        if kind.lower().startswith(("datetime", "timedelta", "date", "duration", "time")):
            raise ValueError(
                f"X has a column of type {kind}; make it a number first, such as days since a date."
            )


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def _categorical_mask(X: Any, categorical_features: Any) -> Booleans:
    n_features = X.shape[1]
    mask = np.zeros(n_features, dtype=bool)
    if categorical_features is None:
        return mask
    if isinstance(categorical_features, str):
        if categorical_features != "from_dtype":
            raise ValueError(
                f"categorical_features={categorical_features!r}; use None, 'from_dtype', or a list "
                "of feature names, indices or truth values."
            )
        if _is_frame(X):
            mask[:] = [_has_categorical_type(X, j) for j in range(n_features)]
        return mask
    chosen = np.asarray(list(categorical_features))
    if chosen.dtype.kind == "b" and chosen.shape == (n_features,):
        return chosen
    if chosen.dtype.kind in "iu" and ((-n_features <= chosen) & (chosen < n_features)).all():
        mask[chosen] = True
        return mask
    names = list(X.columns) if _is_frame(X) else []
    if chosen.dtype.kind in "UOT" and all(name in names for name in chosen):
        mask[[names.index(name) for name in chosen]] = True
        return mask
    if chosen.size == 0:
        return mask
    raise ValueError(
        f"categorical_features={categorical_features!r} does not fit X with {n_features} features"
        f"{' named ' + ', '.join(map(str, names)) if names else ' without names'}; give names, "
        "indices, or one truth value per feature."
    )


def _has_categorical_type(X: Any, j: int) -> bool:
    kind = str(getattr(X.dtypes, "iloc", X.dtypes)[j]).lower()
    if kind == "object":  # text, or numbers that came in boxes
        column = _column(X, j)
        present = column[~_missing(column)]
        return any(isinstance(value, str) for value in present)
    return kind.startswith(CATEGORICAL_TYPES)


def _column(X: Any, j: int) -> npt.NDArray[Any]:
    if not _is_frame(X):
        return np.asarray(X)[:, j]
    series = X.iloc[:, j] if hasattr(X, "iloc") else X.to_series(j)
    return np.asarray(series.to_numpy())


def _numbers(X: Any, j: int) -> Floats:
    column = _column(X, j)
    if column.dtype.kind == "O":
        column = np.where(_missing(column), np.nan, column)
    return column.astype(np.float64)


def _missing(column: npt.NDArray[Any]) -> Booleans:
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind == "O":
        return np.fromiter(map(_is_missing, column), dtype=bool, count=len(column))
    return np.zeros(len(column), dtype=bool)


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)  # NaN alone differs from itself
    except TypeError:
        return True  # pandas' NA compares to nothing


def _learn(X: Any, j: int, weighs: Booleans) -> npt.NDArray[Any]:
    column = _column(X, j)[weighs]
    try:
        values: npt.NDArray[Any] = np.unique(column[~_missing(column)])
        if len(values) > MOST_CATEGORIES:
            raise ValueError(
                f"feature {j} has {len(values)} categories; at most {MOST_CATEGORIES} are allowed. "
                "If it is an identifier, drop it; else put rare values together."
            )
        return values
    except TypeError as error:
        raise ValueError(
            f"feature {j} is categorical, and its values cannot be sorted: {error}. Make them all "
            "text, or all numbers."
        ) from None


def _codes(column: npt.NDArray[Any], values: npt.NDArray[Any]) -> Floats:
    codes = np.full(len(column), np.nan)
    present = ~_missing(column)
    if not len(values):
        codes[present] = 0.0  # no category was seen in training: every value is new
        return codes
    try:
        place = np.searchsorted(values, column[present])
        known = values[np.minimum(place, len(values) - 1)] == column[present]
    except TypeError:  # text beside numbers has no order
        place_of = {value: place for place, value in enumerate(values.tolist())}
        codes[present] = [place_of.get(value, len(values)) for value in column[present].tolist()]
        return codes
    codes[present] = np.where(known, place, len(values))
    return codes
