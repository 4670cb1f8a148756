"""Different outputs, and what is computed from them once."""

from functools import cached_property

import numpy as np
import numpy.typing as npt

from okforest._namespace import on_gpu, to_host
from okforest._outputs import distinct
from okforest._typing import Floats, Outputs
from okforest.kernels import OutputKernel
from okforest.weights.kept_gram import ROWS_BYTES, KeptGram

Positions = npt.NDArray[np.intp]

KEPT_BYTES = 2**26  # of a Gram matrix that is kept for later predictions, without its copy
LANDMARKS = 32  # outputs whose span gives bounds on distances


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
        return min(LANDMARKS, len(self))

    @cached_property
    def projection(self) -> tuple[Floats, Floats]:
        """Coordinates of every φ(y) in the span of a few of them, and distances from that span."""
        some = np.linspace(0, len(self) - 1, self.n_landmarks).astype(int)
        landmarks = self.outputs[some]
        values, vectors = np.linalg.eigh(self.kernel(landmarks))
        sound = values > 1e-10 * values[-1]
        roots = vectors[:, sound] / np.sqrt(values[sound])
        coordinates = np.empty((len(self), roots.shape[1]))
        size = max(1, ROWS_BYTES // (8 * len(some)))
        for i in range(0, len(self), size):
            coordinates[i : i + size] = self.kernel(self.outputs[i : i + size], landmarks) @ roots
        squares = self.squares - np.einsum("ij,ij->i", coordinates, coordinates)
        return coordinates, np.sqrt(np.maximum(squares, 0.0))

    def keep_all(self) -> None:
        """Count equal outputs as different ones: finding them takes longer than a search."""
        self._distinct = np.arange(len(self.given)), np.arange(len(self.given))

    def on_host(self) -> "OutputSet":
        """Return the outputs as an array of NumPy, if they are on a GPU."""
        return OutputSet(self.kernel, to_host(self.given)) if on_gpu(self.given) else self

    def take(self, positions: Positions) -> "OutputSet":
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
