"""Checks of fitted attributes that were read from a file; see the ``check_state`` methods."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from okforest._sparse import check_compressed
from okforest.models.base import OKModel
from okforest.network._models import final_model


def check_present(model: Any, *names: str) -> None:
    """Check that a model has all of these attributes."""
    missing = [name for name in names if not hasattr(model, name)]
    if missing:
        raise ValueError(f"{', '.join(missing)} missing")


def check_inner_model(estimator: Any, name: str) -> int:
    """Check the model inside a model, or at the end of a pipeline; return its number of outputs."""
    final = final_model(estimator)
    if not isinstance(final, OKModel):
        raise ValueError(f"{name} is of type {type(final).__name__}, not a model of okforest")
    if not hasattr(final, "outputs_"):
        raise ValueError(f"{name} has no training outputs")
    final.check_state()
    return len(final.outputs_)


def check_names(names: Any, name: str, n: int) -> None:
    """Check an array of n names."""
    if not isinstance(names, np.ndarray) or names.shape != (n,):
        raise ValueError(f"{name} is not an array of {n} names")


def check_matrix(matrix: Any, name: str, shape: tuple[int, int]) -> None:
    """Check a sparse matrix of floats fully: SciPy's compiled code trusts its three arrays."""
    if not isinstance(matrix, sp.csr_array) or matrix.dtype.kind != "f":
        raise ValueError(f"{name} is not a sparse matrix of floats")
    if matrix.shape != shape:
        raise ValueError(f"{name} has shape {matrix.shape}, not {shape}")
    try:
        check_compressed(matrix.data, matrix.indices, matrix.indptr, *shape)
    except ValueError as error:
        raise ValueError(f"{name} is not a valid sparse matrix: {error}") from None
