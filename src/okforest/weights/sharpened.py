"""Weights raised to a power, so that large ones count more."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from okforest._typing import Floats
from okforest.weights._base import WeightMatrix

BLOCK_ROWS = 4096  # predictions whose weights are made at a time


@dataclass(frozen=True, repr=False)
class SharpenedWeights(WeightMatrix):
    """The weights ``sign(w) |w|ᵖ``, scaled so that absolute values have the same sum as before.

    A power above 1 moves weight to the outputs that have most of it; 0 gives the same weight to
    every output of nonzero weight.

    Parameters
    ----------
    base : WeightMatrix of shape (n, n_train)
        The weights.
    power : float
        The power p, at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.weights import DenseWeights, SharpenedWeights
    >>> W = SharpenedWeights(DenseWeights(np.array([[0.75, 0.25]])), power=2)
    >>> W.tocsr().toarray()
    array([[0.9, 0.1]])
    """

    base: WeightMatrix
    power: float

    @property
    def shape(self) -> tuple[int, int]:
        """Number of predictions and of training outputs."""
        return self.base.shape

    def select_rows(self, rows: slice) -> "SharpenedWeights":
        """Return some of the rows."""
        return SharpenedWeights(self.base[rows], self.power)

    def multiply(self, values: Floats) -> Floats:
        """Return weighted sums of values of the training outputs."""
        starts = range(0, self.shape[0], BLOCK_ROWS)
        parts = [np.asarray(self[i : i + BLOCK_ROWS].tocsr() @ values) for i in starts]
        return np.concatenate(parts) if parts else np.zeros((0, *values.shape[1:]))

    def tocsr(self) -> sp.csr_array:
        """Return the matrix, sparse."""
        base = self.base.tocsr()
        n = self.shape[0]
        rows = np.repeat(np.arange(n), np.diff(base.indptr))
        sizes = np.abs(base.data)
        # Relative to the largest weight of a row, so that high powers do not underflow.
        largest = np.zeros(n)
        np.maximum.at(largest, rows, sizes)
        sharp = (sizes / np.where(largest > 0, largest, 1.0)[rows]) ** self.power
        sharp[sizes == 0] = 0.0
        sums = np.bincount(rows, sizes, minlength=n)
        totals = np.bincount(rows, sharp, minlength=n)
        scale = sums / np.where(totals > 0, totals, 1.0)
        data = np.copysign(sharp * scale[rows], base.data)
        return sp.csr_array((data, base.indices, base.indptr), shape=self.shape)

    @property
    def max_entries(self) -> int:
        """The same as the base's."""
        return self.base.max_entries
