"""Objects as users pass them: which of them are arrays as scikit-learn knows them."""

from typing import Any

import numpy as np


def as_table(X: Any) -> Any:
    """Return a list of lists of numbers, all of one length, as an array, and anything else as is.

    Lists that only look like one, such as pairs of arrays, are left to the segmenter.
    """
    if hasattr(X, "__array__"):
        return X if hasattr(X, "shape") else np.asarray(X)
    if not isinstance(X, list | tuple) or not all(isinstance(row, list | tuple) for row in X):
        return X
    if len({len(row) for row in X}) != 1:
        return X
    try:
        return np.asarray(X)
    except ValueError:  # entries of different shapes
        return X


def is_vector(X: Any) -> bool:
    """Return whether X is a vector of numbers, for which scikit-learn has an error."""
    return len(getattr(X, "shape", ())) == 1 and np.asarray(X).dtype.kind in "buifc"


def listed(X: Any, kind: str) -> list[Any]:
    """Return objects as a list, or raise a ValueError that says what they should be."""
    try:
        return list(X)
    except TypeError:
        raise ValueError(f"X is of type {type(X).__name__}; expected a list of {kind}.") from None
