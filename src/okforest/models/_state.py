"""Checks of fitted attributes that were read from a file; see :meth:`OKModel.check_state`."""

from typing import Any

import numpy as np
import scipy.sparse as sp


def check_feature_count(model: Any) -> None:
    """Check the number of features, and that there is a name for each if there are names."""
    n_features = model.n_features_in_
    if type(n_features) is not int or n_features < 1:
        raise ValueError(f"n_features_in_ is {n_features!r}")
    check_length(model, "feature_names_in_", n_features)


def check_length(model: Any, name: str, expected: int) -> None:
    """Check the length of an attribute, if the model has it."""
    if hasattr(model, name) and len(getattr(model, name)) != expected:
        raise ValueError(f"{name} has {len(getattr(model, name))} entries, not {expected}")


def check_floats(
    model: Any, name: str, n_dimensions: int, shape: tuple[int, ...] | None = None
) -> None:
    """Check an attribute that holds an array of floats, dense or sparse."""
    array = getattr(model, name)
    if not isinstance(array, np.ndarray | sp.csr_array) or array.dtype.kind != "f":
        raise ValueError(f"{name} is not an array of floats")
    if array.ndim != n_dimensions or shape not in (None, array.shape):
        raise ValueError(f"{name} has shape {array.shape}")
