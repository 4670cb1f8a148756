"""Inputs as the core accepts them: a dense array, or the three arrays of a sparse matrix."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._namespace import to_host

Inputs = npt.NDArray[Any] | sp.csr_array | sp.csc_array | sp.csr_matrix | sp.csc_matrix
RawInputs = npt.NDArray[Any] | tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]


class Layouts:
    """Inputs for many calls: a sparse matrix by columns to grow trees, by rows to apply them."""

    def __init__(self, X: Inputs):
        self.columns: Inputs = _canonical(sp.csc_array(X)) if sp.issparse(X) else X
        self.rows: Inputs = _canonical(sp.csr_array(X)) if sp.issparse(X) else X


def by_columns(X: Inputs) -> RawInputs:
    """Return inputs for growing trees: a sparse matrix in compressed columns."""
    return _arrays(sp.csc_array(X)) if sp.issparse(X) else aligned(X)


def by_rows(X: Inputs) -> RawInputs:
    """Return inputs for applying trees: a sparse matrix in compressed rows."""
    return _arrays(sp.csr_array(X)) if sp.issparse(X) else aligned(X)


def aligned(array: Any) -> npt.NDArray[Any]:
    """Return an array whose values are at addresses of their type, copied if they are not.

    Fields of structured arrays and arrays that are read from messages may begin anywhere. An array
    on a GPU is copied to the host.
    """
    return np.require(to_host(array), requirements="A")


def _arrays(X: Any) -> RawInputs:
    X = _canonical(X)
    indices, offsets = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
    return aligned(X.data), aligned(indices), aligned(offsets)


def _canonical(X: Any) -> Any:
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X
