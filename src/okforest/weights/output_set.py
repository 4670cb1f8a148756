"""Different outputs, what is computed from them once, and their Gram matrix, kept."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._utils.arrays import Floats, Outputs, on_gpu, to_host
from okforest._utils.distinct import distinct
from okforest.engine import find_nearest
from okforest.kernels import OutputKernel

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


Positions = npt.NDArray[np.intp]

KEPT_BYTES = 2**26  # of a Gram matrix that is kept for later predictions, without its copy
LANDMARKS = 256  # outputs whose span gives bounds on distances, at most
COORDINATE_BYTES = 2**27  # largest size of the coordinates in that span
SMALLEST_VARIANCE = 1e-8  # directions of less, relative to the largest, are rounding errors


class OutputSet:
    """Outputs with a kernel: equal ones are merged, and norms, features and products are kept.

    Parameters
    ----------
    kernel : OutputKernel
        The kernel, resolved on the training outputs.
    outputs : ndarray
        Outputs in canonical form.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import Linear
    >>> from okforest.weights import OutputSet
    >>> outputs = OutputSet(Linear(), np.array([[1.0], [2.0], [1.0]]))
    >>> len(outputs)
    2
    """

    def __init__(self, kernel: OutputKernel, outputs: Outputs):
        self.kernel = kernel
        self.given = outputs
        self.missed = 0.0  # kernel evaluations that searches would have saved by the projection

    @cached_property
    def _distinct(self) -> tuple[Positions, Positions]:
        return distinct(self.given)

    @property
    def first(self) -> Positions:
        """Where each different output is given first, ascending."""
        return self._distinct[0]

    @property
    def group(self) -> Positions:
        """For every output given, which of the different outputs it equals."""
        return self._distinct[1]

    @cached_property
    def outputs(self) -> Outputs:
        """The different outputs."""
        return self.given if len(self.first) == len(self.given) else self.given[self.first]

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def squares(self) -> Floats:
        """k(y, y) of the different outputs."""
        return self.kernel.diag(self.outputs)

    @cached_property
    def features(self) -> Floats:
        """Explicit features of the different outputs."""
        return self.kernel.features(self.outputs)

    def features_of(self, block: slice) -> Floats:
        """Return explicit features of some of the different outputs; they are not kept."""
        return self.kernel.features(self.outputs[block])

    @property
    def n_landmarks(self) -> int:
        """Number of outputs that span the subspace of :attr:`projection`."""
        return min(LANDMARKS, len(self), COORDINATE_BYTES // (4 * len(self)))

    @property
    def has_projection(self) -> bool:
        """Whether :attr:`projection` has been computed."""
        return "projection" in self.__dict__

    @cached_property
    def projection(self) -> Floats:
        """Coordinates of every φ(y) in the span of a few, and distances from it as last column."""
        some = np.linspace(0, len(self) - 1, self.n_landmarks).astype(int)
        landmarks = self.outputs[some]
        values, vectors = np.linalg.eigh(self.kernel(landmarks))
        kept = values > SMALLEST_VARIANCE * values[-1]
        roots = vectors[:, kept] / np.sqrt(values[kept])
        coordinates = np.empty((len(self), roots.shape[1] + 1), dtype=np.float32)
        size = max(1, ROWS_BYTES // (8 * len(some)))
        for i in range(0, len(self), size):
            rows = slice(i, i + size)
            inside = self.kernel(self.outputs[rows], landmarks) @ roots
            coordinates[rows, :-1] = inside
            squares = self.squares[rows] - np.einsum("ij,ij->i", inside, inside)
            coordinates[rows, -1] = np.sqrt(np.maximum(squares, 0.0))
        return coordinates

    def keep_all(self) -> None:
        """Count equal outputs as different ones: finding them takes longer than a search."""
        self._distinct = np.arange(len(self.given)), np.arange(len(self.given))

    def on_host(self) -> OutputSet:
        """Return the outputs as an array of NumPy, if they are on a GPU."""
        return OutputSet(self.kernel, to_host(self.given)) if on_gpu(self.given) else self

    def take(self, positions: Positions) -> OutputSet:
        """Return some of the different outputs, with what is known of them."""
        taken = OutputSet(self.kernel, self.outputs[positions])
        taken._distinct = np.arange(len(positions)), np.arange(len(positions))
        taken.squares = self.squares[positions]
        return taken

    @property
    def keeps_gram(self) -> bool:
        """Whether the Gram matrix of the different outputs is small enough to be kept."""
        return 8 * len(self) ** 2 <= KEPT_BYTES

    @cached_property
    def kept_gram(self) -> KeptGram:
        """The Gram matrix of the different outputs; its rows are computed when they are needed."""
        return KeptGram(self.kernel, self.outputs)
