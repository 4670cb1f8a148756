"""The span of the training outputs on a GPU: what follows from weights is computed there.

What :class:`okforest.weights.Span` computes from blocks of the Gram matrix is computed here from
larger ones, in float64, for kernels that take arrays on a GPU. Results are arrays on the GPU.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from okforest._utils.arrays import Outputs, on_gpu
from okforest.engine import cuda
from okforest.weights.forms import WeightMatrix
from okforest.weights.leaves import LeafWeights
from okforest.weights.output_set import OutputSet

if TYPE_CHECKING:
    from okforest.weights.span import Span

ROWS = 2**14  # predictions whose products with candidates are computed at a time
GROUP = 128  # candidates of which the least cost is found first, where several are searched
COLUMNS = 2**16  # most candidates at a time
BLOCK_BYTES = 2**30  # of a block of weights, dense, and of the Gram matrix beside it
SHARE = 0.8  # of the free memory that products may take


class SpanOnDevice:
    """Weighted sums of the training outputs' features, on a GPU.

    Parameters
    ----------
    device : object
        The GPU; see :class:`okforest.engine.cuda.Device`.
    span : Span
        The span, whose kernel takes arrays on a GPU.
    """

    def __init__(self, device: Any, span: "Span"):
        self.device, self.span, self.kernel = device, span, span.kernel

    def copy(self, values: Any) -> Any:
        """Return numbers as an array on the GPU."""
        if not on_gpu(values):
            cuda.check_fits(self.device, values.nbytes, f"An array of shape {values.shape}")
        return self.device.xp.asarray(values)

    @cached_property
    def features(self) -> Any:
        """Explicit features of the training outputs; None where the span has none."""
        return None if self.span.features is None else self.copy(self.span.features)

    def feature_sums(self, W: WeightMatrix) -> Any:
        """Return the predictions Σ_i w_i φ(y_i) in explicit features."""
        if isinstance(W, LeafWeights):
            return cuda.leaf_means_on(self.device, W.trees, W.leaves, self.features)
        return self.copy(W.feature_sums(self.span))

    def predictions(self, W: WeightMatrix) -> "Sums":
        """Return the sums that weights stand for."""
        return FeatureSums(self, W) if self.span.features is not None else KernelSums(self, W)

    def losses(self, W: WeightMatrix, y: Outputs) -> Any:
        """Return ‖φ(y_i) − F_i‖² for every row i of W and its own output y_i."""
        return self.predictions(W).losses(self.copy(y))


class FeatureSums:
    """Predictions F as explicit features."""

    def __init__(self, span: SpanOnDevice, W: WeightMatrix):
        self.span = span
        self.sums = span.feature_sums(W)
        self.n_terms = 0

    def __len__(self) -> int:
        return len(self.sums)

    def costs(self, candidates: OutputSet) -> Iterator[Any]:
        """Yield ‖φ(c) − F‖² − ‖F‖² of all candidates, for some predictions at a time."""
        for start in range(0, len(self), ROWS):
            # Not named: the block would take its memory until the next one is there.
            yield self._costs(slice(start, start + ROWS), candidates)

    def _costs(self, rows: slice, candidates: OutputSet) -> Any:
        costs = (-2.0 * self.sums[rows]) @ candidates.features.T
        costs += candidates.squares
        return costs

    def squared_norms(self) -> Any:
        """Return ‖F‖² of every prediction."""
        return (self.sums * self.sums).sum(axis=1)

    def losses(self, y: Any) -> Any:
        """Return ‖φ(y_i) − F_i‖², as differences: no digits are lost to a large mean."""
        kernel = self.span.kernel
        features = kernel.features(y)
        losses = ((features - self.sums) ** 2).sum(axis=1)
        hidden = kernel.diag(y) - (features * features).sum(axis=1)
        return losses + self.span.device.xp.where(hidden > 1e-9 * kernel.diag(y), hidden, 0.0)


class KernelSums:
    """Predictions F as weights of some training outputs, for kernels without explicit features."""

    def __init__(self, span: SpanOnDevice, W: WeightMatrix):
        training, matrix = span.span.training, W.tocsr()
        used = np.zeros(len(training), dtype=bool)
        columns = training.group[matrix.indices]
        used[columns] = True
        used[0] |= not len(columns)  # zero vectors, and kernels need an output
        merged = type(matrix)(
            (matrix.data, (np.cumsum(used) - 1)[columns], matrix.indptr),
            shape=(matrix.shape[0], int(used.sum())),
        )
        self.span = span
        self.weights = cuda.SparseMatrix(span.device, merged)
        self.terms = span.copy(training.outputs[used])
        self.n_terms = len(self.terms)

    def __len__(self) -> int:
        return self.weights.shape[0]

    def costs(self, candidates: OutputSet) -> Iterator[Any]:
        """Yield ‖φ(c) − F‖² − ‖F‖² of all candidates, for some predictions at a time."""
        K = self.span.kernel(self.terms, candidates.outputs)
        for start in range(0, len(self), ROWS):
            yield self._costs(slice(start, min(start + ROWS, len(self))), K, candidates)

    def _costs(self, rows: slice, K: Any, candidates: OutputSet) -> Any:
        costs = self.weights.multiply(K, rows)
        costs *= -2.0
        costs += candidates.squares
        return costs

    def squared_norms(self) -> Any:
        """Return ‖F‖² of every prediction."""
        parts, kernel = [], self.span.kernel
        size = max(1, BLOCK_BYTES // (8 * self.n_terms))
        for rows in self._blocks():
            weights = self.weights.dense(rows)
            norms = self.span.device.xp.zeros(len(weights))
            for start in range(0, self.n_terms, size):
                some = slice(start, start + size)
                K = kernel(self.terms, self.terms[some])
                norms += (self.weights.multiply(K, rows) * weights[:, some]).sum(axis=1)
            parts.append(norms)
        return self.span.device.xp.concatenate(parts)

    def losses(self, y: Any) -> Any:
        """Return ‖φ(y_i) − F_i‖² for every prediction and its own output y_i."""
        kernel, xp = self.span.kernel, self.span.device.xp
        inner = [
            (self.weights.dense(rows) * kernel(y[rows], self.terms)).sum(axis=1)
            for rows in self._blocks()
        ]
        losses = kernel.diag(y) - 2.0 * xp.concatenate(inner) + self.squared_norms()
        return xp.maximum(losses, 0.0)

    def _blocks(self) -> Iterator[slice]:
        """Divide the predictions into blocks whose dense weights take bounded memory."""
        size = max(1, BLOCK_BYTES // (8 * self.n_terms))
        return (slice(i, min(i + size, len(self))) for i in range(0, len(self), size))


Sums = FeatureSums | KernelSums


def candidates_at_once(device: Any, sums: Sums, width: int, k: int) -> int:
    """Return how many candidates of ``width`` numbers fit at once, from the free memory.

    A candidate takes its numbers and their copies, its kernel with the terms of the predictions,
    and its costs; k outputs of every prediction are kept.
    """
    n = len(sums)
    rows = min(n, ROWS)
    kept = 32 * n * k * (width + 2) + 32 * rows * k * GROUP
    each = 8 * (4 * width + 4 * sums.n_terms + 3 * rows)
    free = device.free_memory()
    most = int((SHARE * free - kept) // each)
    if most < 1:
        raise MemoryError(
            f"Searching candidates of {width} numbers for {n:,} predictions takes at least "
            f"{(kept + each) / 2**30:.1f} GiB; {free / 2**30:.1f} GiB of the GPU's memory are "
            "free. Predict fewer rows at a time, or set device='cpu'."
        )
    return min(most, COLUMNS)
