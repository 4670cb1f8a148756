"""Weights of a forest as two sparse factors: leaves of rows, and means of leaves."""

from dataclasses import dataclass
from math import prod

import numpy as np
import scipy.sparse as sp

from okforest._typing import Floats
from okforest.weights import WeightMatrix


@dataclass(frozen=True, repr=False)
class LeafMeanWeights(WeightMatrix):
    """The weights W = L A, multiplied out only where that costs less than A first and then L.

    With large leaves W is dense, and its factors are not.

    Parameters
    ----------
    L : csr_array of shape (n, n_leaves)
        Leaves of the rows.
    A : csr_array of shape (n_leaves, n_train)
        Means of leaves.
    """

    L: sp.csr_array
    A: sp.csr_array

    @property
    def shape(self) -> tuple[int, int]:
        """Number of predictions and of training outputs."""
        return self.L.shape[0], self.A.shape[1]

    def select_rows(self, rows: slice) -> "LeafMeanWeights":
        """Return some of the rows."""
        return LeafMeanWeights(sp.csr_array(self.L[rows]), self.A)

    def multiply(self, values: Floats) -> Floats:
        """Return weighted sums of values of the training outputs."""
        if self.L.nnz + self.A.nnz < self.max_entries:
            return np.asarray(self.L @ (self.A @ values))
        return np.asarray(self.tocsr() @ values)

    def transposed_product(self, values: Floats) -> Floats:
        """Return the product of the transposed matrix with values of the predictions."""
        return np.asarray(self.A.T @ (self.L.T @ values))

    def tocsr(self) -> sp.csr_array:
        """Return the product."""
        return sp.csr_array(self.L @ self.A)

    @property
    def max_entries(self) -> int:
        """The number of entries if no two leaves of a row share a training output."""
        sizes = np.diff(self.A.indptr)
        return min(prod(self.shape), int(sizes[self.L.indices].sum()))
