"""A Gram matrix as a kernel, whose outputs are positions in the matrix."""

from typing import Any

import numpy as np
import numpy.typing as npt

from okforest._outputs import refuse_masked
from okforest._typing import Floats, Outputs
from okforest.kernels._base import OutputKernel
from okforest.kernels._gram_checks import check_symmetric
from okforest.kernels._outputs import read_array


class Precomputed(OutputKernel):
    """A kernel given by its Gram matrix; y holds integer positions in the matrix.

    Because y is a plain array of integers, all splitters, searches and cross-validation tools of
    scikit-learn work. Clones share the matrix, so it must not be modified afterwards.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        The matrix of k(y_i, y_j): symmetric and positive semi-definite.
    positions : ndarray of shape (n,), optional
        The positions of its rows, in ascending order, if it is a block of a larger matrix; by
        default 0…n−1.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import Precomputed
    >>> K = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> Precomputed(K)(np.array([0, 1]), np.array([2, 0]))
    array([[0. , 1. ],
           [0. , 0.5]])
    """

    def __init__(self, gram: Floats, positions: npt.NDArray[np.integer[Any]] | None = None):
        self.gram = gram
        self.positions = positions
        self._checked: Any = None  # the last matrix that passed the checks

    def __sklearn_clone__(self) -> "Precomputed":
        # A search must not copy or check the matrix for every candidate.
        clone = Precomputed(self.gram, self.positions)
        clone._checked = self._checked
        return clone

    def check(self, y: Any) -> Outputs:
        """Return y as an array of positions, after checking the matrix (once) and their range."""
        n = self._check_matrix()
        positions = read_array(y)
        if positions.dtype.kind not in "iu":
            what = (
                f"values of type {positions.dtype}"
                if positions.ndim == 1
                else (f"an array of shape {positions.shape} and type {positions.dtype}")
            )
            raise ValueError(
                f"y holds {what}; with a precomputed kernel it must hold integer positions in "
                f"the Gram matrix (0…{n - 1}). Pass the matrix as kernel=Precomputed(K) and "
                "y=np.arange(n)."
            )
        if positions.ndim != 1:
            raise ValueError(
                f"y has shape {positions.shape}; with a precomputed kernel it must be a 1-d array "
                "of positions in the Gram matrix."
            )
        known = self._rows(positions) >= 0
        if not known.all():
            bad = positions[~known][0]
            raise ValueError(
                f"y holds position {bad}; the Gram matrix only has positions 0…{n - 1}."
                if self.positions is None
                else f"y holds position {bad}, which is not in this block of the Gram matrix: "
                "a compact model only knows the positions of its training outputs."
            )
        return positions

    def restrict(self, y: Outputs) -> "Precomputed":
        """Keep the block of these positions; return this kernel if that is the whole matrix."""
        kept = np.unique(y)
        return self if len(kept) == len(self.gram) else Precomputed(self(kept), kept)

    def _rows(self, positions: Outputs) -> npt.NDArray[np.integer[Any]]:
        """Return the row of the matrix for each position, -1 for an unknown one."""
        if self.positions is None:
            inside = (positions >= 0) & (positions < len(self.gram))
            return np.where(inside, positions, -1)
        rows = np.minimum(np.searchsorted(self.positions, positions), len(self.positions) - 1)
        return np.where(self.positions[rows] == positions, rows, -1)

    def _check_matrix(self) -> int:
        shape = np.shape(self.gram)
        if self._checked is not self.gram:
            refuse_masked(self.gram, "the precomputed Gram matrix")
            gram = np.asarray(self.gram)
            if len(shape) != 2 or shape[0] != shape[1]:
                raise ValueError(f"Precomputed got a matrix of shape {shape}; it must be square.")
            if gram.dtype.kind not in "fiub":
                raise ValueError(
                    f"Precomputed got a matrix of type {gram.dtype}; it must hold real numbers."
                )
            check_symmetric(gram, "the precomputed Gram matrix")
            self._checked = self.gram
        return int(shape[0])

    def __call__(self, a: Outputs, b: Outputs | None = None) -> Floats:
        """Return a block of the matrix."""
        rows, columns = self._rows(a), self._rows(a if b is None else b)
        return np.asarray(self.gram)[np.ix_(rows, columns)].astype(float, copy=False)

    def pairs(self, a: Outputs, b: Outputs) -> Floats:
        """Return k(a_i, b_i)."""
        return np.asarray(self.gram)[self._rows(a), self._rows(b)].astype(float)
