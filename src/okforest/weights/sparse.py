"""Weights as a sparse matrix."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from okforest._sparse import check_sparse
from okforest._typing import Floats
from okforest.weights._base import WeightMatrix
from okforest.weights.dense import DenseWeights


@dataclass(frozen=True, repr=False)
class SparseWeights(WeightMatrix):
    """A sparse matrix of weights.

    Parameters
    ----------
    matrix : csr_array of shape (n, n_train)
        One row per prediction.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from okforest.weights import SparseWeights
    >>> SparseWeights(csr_array([[0.5, 0.0, 0.5]])).support()
    array([0, 2])
    """

    matrix: sp.csr_array

    @property
    def shape(self) -> tuple[int, int]:
        """Number of predictions and of training outputs."""
        n, n_train = self.matrix.shape
        return n, n_train

    def select_rows(self, rows: slice) -> "SparseWeights":
        """Return some of the rows."""
        return SparseWeights(self.matrix[rows])

    def multiply(self, values: Floats) -> Floats:
        """Return weighted sums of values of the training outputs."""
        return np.asarray(self.matrix @ values)

    def tocsr(self) -> sp.csr_array:
        """Return the matrix."""
        return self.matrix

    @property
    def max_entries(self) -> int:
        """The number of stored entries."""
        return int(self.matrix.nnz)

    @property
    def is_sparse(self) -> bool:
        """Whether products with the sparse matrix are the fastest."""
        return True


def as_weights(W: Any) -> WeightMatrix:
    """Convert a sparse matrix or a dense array to weights; weights of any form are returned.

    Examples
    --------
    >>> from okforest.weights import as_weights
    >>> as_weights([[0.5, 0.5, 0.0]]).support()
    array([0, 1])
    """
    if isinstance(W, WeightMatrix):
        return W
    if sp.issparse(W):
        matrix: Any = W
        check_sparse(matrix, "W")
        return SparseWeights(sp.csr_array(matrix))
    return DenseWeights(np.atleast_2d(np.asarray(W, dtype=np.float64)))
