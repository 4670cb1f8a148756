"""Subtracting the means of leaves from values of the training rows, or from a Gram matrix."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest import _core
from okforest._typing import Floats, Ints, Weights


@dataclass(frozen=True)
class Leaves:
    """The leaves of one tree: the members of each, and the leaf that every row reaches.

    Parameters
    ----------
    offsets : ndarray of shape (n_leaves + 1,), int64
        Where each leaf's members begin.
    members : ndarray, int32
        Rows, leaf by leaf.
    weights : ndarray, float64
        What each member weighs in its leaf's mean.
    places : ndarray of shape (n,), int32
        The leaf of each row, also of rows that are no members.
    """

    offsets: npt.NDArray[np.int64]
    members: Ints
    weights: Floats
    places: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def _arrays(self) -> tuple[npt.NDArray[np.int64], Ints, Floats, Ints]:
        return self.offsets, self.members, self.weights, self.places

    @cached_property
    def means(self) -> Weights:
        """The weights of rows in the means of leaves, shape (n_leaves, n)."""
        parts = (self.weights, self.members, self.offsets)
        return sp.csr_array(parts, shape=(len(self), len(self.places)))

    def subtract(self, values: Floats, scale: float, n_threads: int = 1) -> Floats:
        """Subtract from each row, in place, its leaf's mean times the scale; return the means.

        ``values`` are a C-contiguous array of shape (n, q). The means are multiplied, too.
        """
        return _core.subtract_means(values, *self._arrays(), scale, n_threads)

    def subtract_from_gram(self, gram: Floats, scale: float, n_threads: int = 1) -> None:
        """Turn the rows' inner products, in place, into those of what :meth:`subtract` leaves."""
        _core.subtract_means_from_gram(gram, *self._arrays(), scale, n_threads)
