"""Arrays of NumPy, CuPy and SciPy: names for their types, conversions, checks of sparse matrices.

Nothing here imports CuPy: code that passes one of its arrays already has.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int32]
# Outputs in canonical form: one per entry of the first axis, of any dtype.
Outputs = npt.NDArray[Any]
Progress = Callable[[int], object]


def on_gpu(array: Any) -> bool:
    """Return whether an array is one of CuPy."""
    return type(array).__module__.partition(".")[0] == "cupy"


def namespace(array: Any) -> Any:
    """Return the library of an array: CuPy if it is on a GPU, else NumPy."""
    return sys.modules["cupy"] if on_gpu(array) else np


def to_host(array: Any) -> Any:
    """Return an array of CuPy as one of NumPy, and anything else as it is."""
    return array.get() if on_gpu(array) else array


def like(result: Any, given: Any) -> Any:
    """Return a result in the library of what was given; only CuPy holds numbers alone."""
    if on_gpu(given) and isinstance(result, np.ndarray) and result.dtype.kind in "biuf":
        return namespace(given).asarray(result)
    return result if on_gpu(given) else to_host(result)


def check_sparse(given: Any, name: str) -> None:
    """Raise a ValueError if a user passes a sparse matrix whose arrays do not fit together.

    Call it before anything else is done with the matrix. It takes a pass over the indices. Whatever
    is not a sparse matrix is not checked.
    """
    if not sp.issparse(given):
        return
    matrix: Any = given
    try:
        _check_parts(matrix)
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(
            f"{name} is a {type(matrix).__name__} of shape {matrix.shape} whose arrays do not fit "
            f"together: {error}. Build it again, for example as scipy.sparse.coo_array((values, "
            f"(rows, columns)), shape={matrix.shape})."
        ) from None


def check_compressed(data: Any, indices: Any, indptr: Any, n_major: int, n_minor: int) -> None:
    """Check the arrays of a sparse matrix of numbers in compressed rows or columns."""
    if not isinstance(data, np.ndarray) or data.ndim != 1 or data.dtype.kind not in "biufc":
        raise ValueError("data of a sparse matrix is not a 1-d array of suitable numbers")
    _check_pointers(len(data), indices, indptr, n_major, n_minor)


def _check_parts(matrix: Any) -> None:
    n_axes = {"csr": 1, "csc": 1, "coo": 1, "dia": 2, "bsr": 3}.get(matrix.format)
    if n_axes is not None and getattr(matrix.data, "ndim", None) != n_axes:
        raise ValueError(f"data of a sparse matrix is not a {n_axes}-d array of suitable numbers")
    n_rows, n_columns = (1, *matrix.shape)[-2:]  # SciPy has vectors, too
    if matrix.format in ("csr", "csc"):
        axes = (n_rows, n_columns) if matrix.format == "csr" else (n_columns, n_rows)
        _check_used(matrix, *axes)
    elif matrix.format == "bsr":
        height, width = matrix.blocksize
        if height < 1 or width < 1 or n_rows % height or n_columns % width:
            raise ValueError(f"blocks of shape {matrix.blocksize} do not fill the matrix")
        _check_used(matrix, n_rows // height, n_columns // width)
    elif matrix.format == "coo":
        for positions, n in zip(matrix.coords, matrix.shape, strict=True):
            _check_integers(positions, "coords")
            _check_equal(len(matrix.data), len(positions), "values and coords")
            _check_range(positions, "coords", n)
    elif matrix.format == "dia":
        _check_integers(matrix.offsets, "offsets")
        _check_equal(len(matrix.data), len(matrix.offsets), "diagonals and offsets")
        if any(not -n_rows <= offset <= n_columns for offset in matrix.offsets):
            raise ValueError("a diagonal of a sparse matrix lies outside it")  # SciPy may hang
    elif matrix.format == "lil":
        _check_equal(len(matrix.data), n_rows, "lists of values and rows")
        _check_equal(
            list(map(len, matrix.data)), list(map(len, matrix.rows)), "values and indices of rows"
        )
        _check_parts(matrix.tocsr())


def _check_used(matrix: Any, n_major: int, n_minor: int) -> None:
    n = matrix.indptr[-1]  # SciPy allows unused entries at the end
    _check_pointers(len(matrix.data[:n]), matrix.indices[:n], matrix.indptr, n_major, n_minor)


def _check_pointers(n_values: int, indices: Any, indptr: Any, n_major: int, n_minor: int) -> None:
    _check_integers(indices, "indices")
    _check_integers(indptr, "indptr")
    if len(indptr) != n_major + 1:
        raise ValueError(f"indptr of a sparse matrix has {len(indptr)} entries, not {n_major + 1}")
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():  # differences could overflow
        raise ValueError("indptr of a sparse matrix does not ascend from 0")
    if not indptr[-1] == len(indices) == n_values:
        raise ValueError(
            f"a sparse matrix has {n_values} values and {len(indices)} indices, but indptr counts "
            f"{indptr[-1]}"
        )
    _check_range(indices, "indices", n_minor)


def _check_integers(array: Any, name: str) -> None:
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind != "i":
        raise ValueError(f"{name} of a sparse matrix is not a 1-d array of suitable numbers")


def _check_range(array: Any, name: str, n: int) -> None:
    if len(array) and not 0 <= array.min() <= array.max() < n:
        raise ValueError(f"{name} of a sparse matrix are not all in 0…{n - 1}")


def _check_equal(a: Any, b: Any, what: str) -> None:
    if a != b:
        raise ValueError(f"the numbers of {what} differ")


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
