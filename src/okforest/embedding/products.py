"""Weights of which hardly any is zero: a whole matrix, or a product of two."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import scipy.sparse as sp

from okforest._typing import Floats, Weights


@dataclass(frozen=True)
class DenseWeights:
    """The weights W as they are.

    Parameters
    ----------
    dense : ndarray of shape (n, n_train)
        One row for each prediction.
    """

    dense: Floats

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of predictions and of training rows."""
        return self.dense.shape

    def __getitem__(self, rows: slice) -> "DenseWeights":
        return DenseWeights(self.dense[rows])

    def __matmul__(self, values: Floats) -> Floats:
        """Return the weighted sums of the training rows' values."""
        return np.asarray(np.tensordot(self.dense, values, axes=1))

    def tocsr(self) -> Weights:
        """Return the matrix as a sparse one."""
        return sp.csr_array(self.dense)


@dataclass(frozen=True)
class ProductWeights:
    """The weights W = LR, made only where that is cheaper than to multiply by R and then by L.

    Parameters
    ----------
    left : ndarray of shape (n, r)
        One row for each prediction.
    right : ndarray of shape (r, n_train)
        One column for each training output.
    """

    left: Floats
    right: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """Number of predictions and of training rows."""
        return len(self.left), self.right.shape[1]

    def __getitem__(self, rows: slice) -> "ProductWeights":
        return ProductWeights(self.left[rows], self.right)

    def __matmul__(self, values: Floats) -> Floats:
        """Return the weighted sums of the training rows' values, of shape (n_train,) or more."""
        n, n_train = self.shape
        r, width = len(self.right), prod(values.shape[1:])
        making = 0 if "dense" in vars(self) else n * r * n_train
        if (n + n_train) * r * width < making + n * n_train * width:
            return self.left @ (self.right @ values)
        return self.dense @ values

    @cached_property
    def dense(self) -> Floats:
        """The matrix itself."""
        return np.asarray(self.left @ self.right)

    def tocsr(self) -> Weights:
        """Return the matrix itself, as a sparse one."""
        return sp.csr_array(self.dense)
