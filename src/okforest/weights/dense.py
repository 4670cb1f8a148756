"""Weights as a dense array, for models whose weights are rarely zero."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from okforest._typing import Floats
from okforest.weights._base import WeightMatrix


@dataclass(frozen=True, repr=False)
class DenseWeights(WeightMatrix):
    """A dense array of weights.

    Parameters
    ----------
    dense : ndarray of shape (n, n_train)
        One row per prediction.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.weights import DenseWeights
    >>> W = DenseWeights(np.array([[0.5, 0.5, 0.0]]))
    >>> W @ np.array([10.0, 20.0, 30.0])
    array([15.])
    """

    dense: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """Number of predictions and of training outputs."""
        n, n_train = self.dense.shape
        return n, n_train

    def select_rows(self, rows: slice) -> "DenseWeights":
        """Return some of the rows."""
        return DenseWeights(self.dense[rows])

    def multiply(self, values: Floats) -> Floats:
        """Return weighted sums of values of the training outputs."""
        return np.asarray(np.tensordot(self.dense, values, axes=1))

    def tocsr(self) -> sp.csr_array:
        """Return the array as a sparse matrix."""
        return sp.csr_array(self.dense)

    def entries(self) -> Floats:
        """Return the array."""
        return self.dense
