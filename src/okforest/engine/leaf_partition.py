"""The partition of the training rows into the leaves of a tree."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._typing import Floats, Ints


@dataclass(frozen=True)
class LeafPartition:
    """The leaves of one tree: their members, and the leaf that each row reaches.

    Parameters
    ----------
    offsets : ndarray of shape (n_leaves + 1,), int64
        Where each leaf's members begin.
    members : ndarray, int32
        Rows, leaf by leaf.
    weights : ndarray, float64
        The weight of each member in the mean of its leaf.
    places : ndarray of shape (n,), int32
        The leaf of each row, including rows that are not members.
    """

    offsets: npt.NDArray[np.int64]
    members: Ints
    weights: Floats
    places: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def arrays(self) -> tuple[npt.NDArray[np.int64], Ints, Floats, Ints]:
        """Return the four arrays in the order that the core expects."""
        return self.offsets, self.members, self.weights, self.places

    @cached_property
    def means(self) -> sp.csr_array:
        """The weights of rows in the means of leaves, shape (n_leaves, n)."""
        parts = (self.weights, self.members, self.offsets)
        return sp.csr_array(parts, shape=(len(self), len(self.places)))
