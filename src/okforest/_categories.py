"""Categorical features: which features are categorical, and their values as codes.

The code of a category is its position among the sorted values seen in training. Values not seen in
training get the next code, which trees treat as missing.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._columns import as_floats, column, is_frame, label, missing, type_of
from okforest._typing import Booleans, Floats
from okforest._warnings import warn

# For each feature, the sorted values of its categories, or None if it is numeric.
Categories = list[npt.NDArray[Any] | None]

# A feature with more categories is rather a name or an identifier.
MAX_CATEGORIES = 1024

CATEGORICAL_TYPES = ("category", "categorical", "enum", "str", "utf8")


def learn_categories(X: Any, categorical_features: Any, sample_weight: Any = None) -> Categories:
    """Return the categories of the categorical features.

    ``categorical_features`` is None, "from_dtype" (categorical and text columns of a frame), or
    names, indices or a mask of features. Rows of weight zero are ignored.
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
    return [_learn(X, j, weighs) if chosen else None for j, chosen in enumerate(mask)]


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
        values = column(X, j)
        if known is not None:
            _warn_of_numbers(X, j, values, known)
            encoded[:, j] = _codes(values, known)
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
    values = column(X, j)[weighs]
    try:
        known: npt.NDArray[Any] = np.unique(values[~missing(values)])
    except TypeError as error:
        raise ValueError(
            f"column {label(X, j)} of X is categorical, but its values cannot be sorted: {error}. "
            "Convert all of them to text, or all to numbers."
        ) from None
    check_category_count(label(X, j), len(known))
    return known


def check_category_count(name: str, n_categories: int) -> None:
    """Raise a ValueError if a column has too many categories."""
    if n_categories > MAX_CATEGORIES:
        raise ValueError(
            f"column {name} of X has {n_categories} categories; at most {MAX_CATEGORIES} are "
            "allowed. If it is an identifier, drop it; otherwise merge rare categories."
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
