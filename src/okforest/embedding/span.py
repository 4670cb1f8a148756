"""The span of the training outputs: vectors F = Σ_i w_i φ(y_i), known by their weights w.

Every model predicts such vectors. What can be asked of them needs the weights and the kernel
alone; it is computed here from explicit features where the kernel has few, else from blocks of
the Gram matrix, of bounded memory.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from okforest._typing import Floats, Outputs, WeightMatrix, Weights
from okforest.kernels import OutputKernel

BLOCK_BYTES = 2**26
BLOCK_ROWS = 4096  # predictions whose weights are made at a time


class Span:
    """Weighted sums of the training outputs' features.

    Weights W are a sparse matrix, or anything that has a shape and rows, multiplies arrays and can
    be made one (``W.shape``, ``W[rows]``, ``W @ values``, ``W.tocsr()``).

    Parameters
    ----------
    kernel : OutputKernel
        The kernel, resolved on the training outputs.
    outputs : ndarray
        The training outputs, in canonical form.
    """

    def __init__(self, kernel: OutputKernel, outputs: Outputs):
        self.kernel = kernel
        self.outputs = outputs

    def __len__(self) -> int:
        return len(self.outputs)

    @cached_property
    def features(self) -> Floats | None:
        """Explicit features of the training outputs, where they are no more than the outputs."""
        dim = self.kernel.feature_dim(self.outputs)
        if dim is None or dim > len(self):
            return None
        return self.kernel.features(self.outputs)

    def inner(self, W: WeightMatrix, y: Outputs) -> Floats:
        """Return ⟨F_i, φ(y_j)⟩ for every row i of W and every output y_j."""
        result = np.empty((W.shape[0], len(y)))
        for block, inner in self.inner_blocks(W, y):
            result[:, block] = inner
        return result

    def inner_blocks(self, W: WeightMatrix, y: Outputs) -> Iterator[tuple[slice, Floats]]:
        """Yield :meth:`inner` for some outputs y_j at a time, in bounded memory."""
        F = None if self.features is None else W @ self.features
        for block in self._blocks(len(y), W.shape[0]):
            if F is not None:
                yield block, F @ self.kernel.features(y[block]).T
            else:
                yield block, W @ self.kernel(self.outputs, y[block])

    def inner_pairs(self, W: WeightMatrix, y: Outputs) -> Floats:
        """Return ⟨F_i, φ(y_i)⟩ for every row i of W and its own output y_i."""
        if self.features is not None:
            return np.einsum("ij,ij->i", W @ self.features, self.kernel.features(y))
        result = np.empty(len(y))
        for block in self._blocks(len(y)):
            K = self.kernel(y[block], self.outputs)
            result[block] = (entries(W[block]) * K).sum(axis=1)
        return result

    def gram(self, W: WeightMatrix, V: WeightMatrix | None = None) -> Floats:
        """Return ⟨F_i, G_j⟩ for the rows i of W and j of V (or of W)."""
        return self.mean_gram([W], None if V is None else [V])

    def mean_gram(
        self, Ws: Sequence[WeightMatrix], Vs: Sequence[WeightMatrix] | None = None
    ) -> Floats:
        """Return the mean of :meth:`gram` over pairs of one matrix of Ws and one of Vs."""
        Vs = Ws if Vs is None else Vs
        result = np.zeros((Ws[0].shape[0], Vs[0].shape[0]))
        # Sums are made some rows at a time: the result may be large, and should be so once.
        rows = list(self._blocks(*result.shape))
        if self.features is not None:
            for W, V in zip(Ws, Vs, strict=True):
                F, G = W @ self.features, (V @ self.features).T
                for some in rows:
                    result[some] += F[some] @ G
        else:
            columns = [_by_columns(V) for V in Vs]
            for block in self._blocks(len(self), len(result)):
                K = self.kernel(self.outputs, self.outputs[block])
                for W, V_columns in zip(Ws, columns, strict=True):
                    inner, part = W @ K, V_columns[:, block]
                    for some in rows:
                        result[some] += (part @ inner[some].T).T
        result /= len(Ws)
        return result

    def squared_norms(self, W: WeightMatrix) -> Floats:
        """Return ‖F_i‖² for every row i of W."""
        if self.features is not None:
            F = W @ self.features
            return np.einsum("ij,ij->i", F, F)
        result = np.zeros(W.shape[0])
        for start in range(0, W.shape[0], BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            some = W[rows]
            columns = _by_columns(some)
            for block in self._blocks(len(self)):
                inner = some @ self.kernel(self.outputs, self.outputs[block])
                result[rows] += (columns[:, block] * inner).sum(axis=1)
        return result

    def losses(self, W: WeightMatrix, y: Outputs) -> Floats:
        """Return ‖φ(y_i) − F_i‖² for every row i of W and its own output y_i."""
        if self.features is None:
            losses = self.kernel.diag(y) - 2.0 * self.inner_pairs(W, y) + self.squared_norms(W)
            return np.maximum(losses, 0.0)
        # Differences first: no digit is lost to a large mean.
        features = self.kernel.features(y)
        losses = ((features - W @ self.features) ** 2).sum(axis=1)
        return losses + hidden_squares(self.kernel, y)

    def spread(self, weight: Floats) -> float:
        """Return Σ_i ω_i ‖φ(y_i) − mean‖² of the outputs themselves, weighted by ω."""
        if self.features is not None:
            mean = np.average(self.features, axis=0, weights=weight)
            return float(weight @ ((self.features - mean) ** 2).sum(axis=1))
        mean_norm = self.squared_norms(sp.csr_array((weight / weight.sum())[None, :]))[0]
        square = weight @ self.kernel.diag(self.outputs)
        spread = square - weight.sum() * mean_norm
        return float(spread) if spread > 1e-13 * square else 0.0

    def _blocks(self, n: int, n_rows: int = 0) -> Iterator[slice]:
        """Divide n outputs into blocks of bounded products with all outputs, and with n_rows."""
        size = max(1, BLOCK_BYTES // (8 * max(len(self), n_rows)))
        return (slice(i, min(i + size, n)) for i in range(0, n, size))


def entries(W: WeightMatrix) -> Weights | Floats:
    """Return the matrix of weights itself: sparse, unless hardly any is zero."""
    return W.dense if hasattr(W, "dense") else W.tocsr()


def hidden_squares(kernel: OutputKernel, y: Outputs) -> Floats:
    """Return the squared lengths of what explicit features do not show.

    An output unlike any training output, as a new class, has such a part.
    """
    features, diag = kernel.features(y), kernel.diag(y)
    hidden = diag - np.einsum("ij,ij->i", features, features)
    return np.where(hidden > 1e-9 * diag, hidden, 0.0)


def _by_columns(W: WeightMatrix) -> sp.csc_array | Floats:
    own = entries(W)
    return sp.csc_array(own) if sp.issparse(own) else own
