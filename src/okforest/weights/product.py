"""Weights as a product of two matrices."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import scipy.sparse as sp

from okforest._typing import Floats
from okforest.weights._base import WeightMatrix

BLOCK_PRODUCTS = 2**31  # multiplications in one matrix product, which cannot be interrupted


@dataclass(frozen=True, repr=False)
class ProductWeights(WeightMatrix):
    """The weights W = LR, multiplied out only where that costs less than R first and then L.

    Parameters
    ----------
    left : ndarray or csr_array of shape (n, r)
        One row per prediction, such as kernel values, or indicators of leaves.
    right : ndarray or csr_array of shape (r, n_train)
        One column per training output, such as means of leaves.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.weights import ProductWeights
    >>> W = ProductWeights(np.array([[1.0, 0.0]]), np.array([[0.5, 0.5], [0.0, 1.0]]))
    >>> W.tocsr().toarray()
    array([[0.5, 0.5]])
    """

    left: Floats | sp.csr_array
    right: Floats | sp.csr_array

    @property
    def shape(self) -> tuple[int, int]:
        """Number of predictions and of training outputs."""
        return self.left.shape[0], self.right.shape[1]

    def select_rows(self, rows: slice) -> "ProductWeights":
        """Return some of the rows."""
        return ProductWeights(self.left[rows], self.right)

    def multiply(self, values: Floats) -> Floats:
        """Return weighted sums of values of the training outputs."""
        width = prod(values.shape[1:])
        two_products = (_stored(self.left) + _stored(self.right)) * width
        making = 0 if "_product" in vars(self) else self._n_terms
        if two_products < making + self.max_entries * width:
            return np.asarray(self.left @ (self.right @ values))
        return np.asarray(self._product @ values)

    def transposed_product(self, values: Floats) -> Floats:
        """Return the product of the transposed matrix with values of the predictions."""
        return np.asarray(self.right.T @ (self.left.T @ values))

    @cached_property
    def _product(self) -> Floats | sp.csr_array:
        if sp.issparse(self.right):
            return sp.csr_array(self.left @ self.right)
        result = np.empty(self.shape)
        size = max(1, BLOCK_PRODUCTS // max(1, self.right.size))
        for i in range(0, len(result), size):
            result[i : i + size] = self.left[i : i + size] @ self.right
        return result

    @property
    def _n_terms(self) -> int:
        """The number of multiplications that make the product."""
        if sp.issparse(self.right):
            return int(np.diff(self.right.indptr)[sp.csr_array(self.left).indices].sum())
        return _stored(self.left) * self.shape[1]

    def entries(self) -> Floats | sp.csr_array:
        """Return the product, which is sparse if the right matrix is."""
        return self._product

    def tocsr(self) -> sp.csr_array:
        """Return the product as a sparse matrix."""
        return sp.csr_array(self._product)

    @property
    def max_entries(self) -> int:
        """All entries or, of sparse matrices, those that have a term if no two terms share one."""
        entries = prod(self.shape)
        return min(entries, self._n_terms) if sp.issparse(self.right) else entries


def _stored(matrix: Floats | sp.csr_array) -> int:
    return int(matrix.nnz if sp.issparse(matrix) else matrix.size)
