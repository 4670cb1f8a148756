"""The Gram matrix of candidates, kept for later predictions."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._typing import Floats, Outputs
from okforest.engine import find_nearest
from okforest.kernels import OutputKernel

Positions = npt.NDArray[np.intp]

ROWS_BYTES = 2**22  # of rows that are computed at a time
PANEL = 64  # columns of the float32 copy that are together, as the core expects
_copying = threading.Lock()  # threads that predict with the same model share its matrices


class KeptGram:
    """Rows of a Gram matrix, each computed when it is asked for first.

    Parameters
    ----------
    kernel : OutputKernel
        The kernel.
    outputs : ndarray
        The candidates, all different.
    """

    def __init__(self, kernel: OutputKernel, outputs: Outputs):
        self.kernel, self.outputs = kernel, outputs
        self._values = np.empty((len(outputs), len(outputs)))
        self._known = np.zeros(len(outputs), dtype=bool)
        self._floats: FloatPanels | None = None

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix."""
        self._compute(positions)
        n = len(self._known)
        in_order = len(positions) == n and (np.diff(positions) == 1).all()
        return self._values if in_order else self._values[positions]

    def nearest(
        self, weights: sp.csr_array, positions: Positions, squares: Floats, n_threads: int = 1
    ) -> tuple[Positions, Floats]:
        """Return the candidate c nearest to F for each row of the weights, the first of equals.

        Costs, ‖φ(c) − F‖² − ‖F‖², come with them. Columns of the weights stand at these positions
        among the candidates, whose k(c, c) are the squares. The search is in float32, the choice
        that of float64.
        """
        with _copying:
            self._compute(positions)
            if self._floats is None:
                self._floats = FloatPanels(squares)
            floats = self._floats
            floats.copy(self._values, positions)
        return find_nearest(
            weights,
            positions,
            self._values,
            squares,
            floats.panels,
            floats.half_squares,
            floats.largest,
            n_threads,
        )

    def _compute(self, positions: Positions) -> None:
        for some in blocks_of_new(self._known, positions):
            self._values[some] = self.kernel(self.outputs[some], self.outputs)


class FloatPanels:
    """A copy of a Gram matrix in float32, in panels of columns that fit the cache.

    All is divided by the power of two that brings the largest k(y, y) near one, so that no number
    overflows.

    Parameters
    ----------
    squares : ndarray of shape (n,)
        The k(y, y).
    """

    def __init__(self, squares: Floats):
        n = len(squares)
        n_panels = -(-n // PANEL)
        self.panels = np.zeros((n_panels, n, PANEL), dtype=np.float32)
        self.largest = 0.0  # of the absolute entries
        self._exponent = int(np.frexp(squares.max())[1])
        self._known = np.zeros(n, dtype=bool)
        self.half_squares = np.full(n_panels * PANEL, np.inf, dtype=np.float32)
        self.half_squares[:n] = self._scaled(0.5 * squares)

    def copy(self, values: Floats, positions: Positions) -> None:
        """Copy rows of the matrix that have not been copied yet."""
        n_panels, n, _ = self.panels.shape
        for some in blocks_of_new(self._known, positions):
            rows = np.zeros((len(some), n_panels * PANEL), dtype=np.float32)
            rows[:, :n] = self._scaled(values[some])
            self.largest = np.maximum(self.largest, np.abs(rows).max())  # NaN if there is one
            self.panels[:, some] = rows.reshape(len(some), n_panels, PANEL).swapaxes(0, 1)

    def _scaled(self, values: Floats) -> Floats:
        with np.errstate(over="ignore"):  # the core hears of infinity by the largest entry
            return np.ldexp(values, -self._exponent).astype(np.float32)


def blocks_of_new(known: npt.NDArray[np.bool_], positions: Positions) -> Iterator[Positions]:
    """Yield the positions that are not known yet, some at a time, and note them as known then."""
    needed = np.zeros_like(known)
    needed[positions] = True
    new = np.flatnonzero(needed & ~known)
    size = max(1, ROWS_BYTES // (8 * len(known)))
    for i in range(0, len(new), size):
        yield new[i : i + size]
        known[new[i : i + size]] = True
