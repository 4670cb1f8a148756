"""The span of the training outputs: vectors F = Σ_i w_i φ(y_i), known by their weights w.

Every model predicts such vectors. Their inner products, norms and losses follow from the weights
and the kernel. They are computed here from explicit features where the kernel has few, else from
blocks of the Gram matrix, in bounded memory: products take the outputs of nonzero weight only, and
equal outputs once.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._utils.arrays import Floats, Outputs, to_host
from okforest.engine import DeviceName, LeafVectors, Trees, leaf_vectors, prediction_device
from okforest.kernels import OutputKernel
from okforest.weights.forms import DenseWeights, SparseWeights, WeightMatrix, as_weights
from okforest.weights.leaves import LeafWeights
from okforest.weights.on_device import SpanOnDevice
from okforest.weights.output_set import OutputSet

BLOCK_BYTES = 2**24  # of a block of the Gram matrix, or of products with it
LEAF_BYTES = 2**28  # of the means of leaves, which are kept
MANY_CLASSES, CLASS_BYTES = 256, 2**26  # from which their indicators are not made
BLOCK_ROWS = 4096  # predictions whose weights are made at a time


class Terms(NamedTuple):
    """The sums Σ_i w_i φ(y_i) of the rows of some matrices of weights, over different outputs."""

    weights: Sequence[WeightMatrix]
    positions: npt.NDArray[np.intp]  # of the columns, among the different training outputs


class Span:
    """Weighted sums of the training outputs' features.

    Weights W are a :class:`WeightMatrix`, a sparse matrix, or a dense array, of shape (n, n_train).

    Parameters
    ----------
    kernel : OutputKernel
        The kernel, resolved on the training outputs.
    outputs : ndarray
        The training outputs, in canonical form.
    device : {"cpu", "cuda", "auto"}, default="cpu"
        Where losses and nearest candidates are computed, if the kernel takes arrays on a GPU and
        there is one.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import Linear
    >>> from okforest.weights import Span
    >>> span = Span(Linear(), np.array([[1.0], [3.0]]))
    >>> span.inner(np.array([[0.5, 0.5]]), np.array([[10.0]]))  # ⟨F, φ(10)⟩, where F is the mean
    array([[20.]])
    """

    def __init__(self, kernel: OutputKernel, outputs: Outputs, device: DeviceName = "cpu"):
        self.kernel = kernel
        self.outputs = outputs
        self.device = device
        #: The training outputs as candidates; what is computed from them is kept.
        self.training = OutputSet(kernel, outputs)
        self._kept: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self.outputs)

    @cached_property
    def on_device(self) -> SpanOnDevice | None:
        """The span on the GPU; None if there is none, or if the kernel needs the CPU."""
        gpu = prediction_device(self.device) if self.kernel.on_device else None
        return None if gpu is None else SpanOnDevice(gpu, self)

    def moved(self, device: DeviceName) -> "Span":
        """Return the span for another device, with what is known of the training outputs."""
        span = Span(self.kernel, self.outputs, device)
        span.training = self.training
        return span

    def kept(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return what a decoder computes from the training outputs, computed once."""
        if name not in self._kept:
            self._kept[name] = compute()
        return self._kept[name]

    def keeps(self, value: Any) -> bool:
        """Return whether this very object is kept: what is derived from it may be kept, too."""
        return any(kept is value for kept in self._kept.values())

    def leaf_vectors(self, trees: Trees, n_threads: int = 1) -> LeafVectors | None:
        """Return the means of explicit features in all leaves; None if they take much memory.

        Those of the last trees are kept.
        """
        kept: tuple[Trees, LeafVectors | None] | None = self._kept.get("leaf vectors")
        if kept is None or kept[0] is not trees:
            assert self.features is not None
            kept = trees, leaf_vectors(trees, self.features, LEAF_BYTES, n_threads)
            self._kept["leaf vectors"] = kept
        return kept[1]

    def computed_on_device(self, W: WeightMatrix, compute: Callable[[SpanOnDevice], Any]) -> Any:
        """Return one or more arrays that a function computes on the GPU; None if the CPU must.

        They stay there if the weights are there, and are copied to the host otherwise.
        """
        if self.on_device is None:
            return None
        try:
            result = compute(self.on_device)
        except MemoryError:
            if self.device != "auto":
                raise
            return None
        if W.on_gpu:
            return result
        return tuple(map(to_host, result)) if isinstance(result, tuple) else to_host(result)

    @cached_property
    def features(self) -> Floats | None:
        """Explicit features of the training outputs, if their dimension is at most n_train.

        Indicators of many classes would take much memory: there are none.
        """
        dim = self.kernel.feature_dim(self.outputs)
        if dim is None or dim > len(self):
            return None
        many = dim >= MANY_CLASSES and 8 * dim * len(self) > CLASS_BYTES
        if many and self.kernel.class_numbers(self.outputs) is not None:
            return None
        # C-contiguous, so that a mean is the same to the last bit whatever the layout of y.
        return np.ascontiguousarray(self.kernel.features(self.outputs))

    def inner(self, W: Any, y: Outputs) -> Floats:
        """Return ⟨F_i, φ(y_j)⟩ for every row i of W and every output y_j."""
        W, candidates = as_weights(W), OutputSet(self.kernel, y)
        result = np.empty((W.shape[0], len(candidates)))
        for block, inner in self.inner_blocks(W, candidates):
            result[:, block] = inner
        return result[:, candidates.group]

    def inner_blocks(
        self, W: WeightMatrix, candidates: OutputSet
    ) -> Iterator[tuple[slice, Floats]]:
        """Yield ⟨F_i, φ(y_j)⟩ for every row i of W and some candidates y_j at a time."""
        if self.features is not None:
            F = W.feature_sums(self)
            for block in self.blocks(len(candidates), max(F.shape)):
                # Features of the training outputs are kept; there may be too many of others.
                own = candidates is self.training
                features = candidates.features[block] if own else candidates.features_of(block)
                yield block, F @ features.T
            return
        (weights,), positions = self.terms(W)
        if candidates is self.training and candidates.keeps_gram:
            K = candidates.kept_gram.rows(positions)
            for block in self.blocks(len(candidates), W.shape[0]):
                yield block, weights @ K[:, block]
            return
        terms = self.training.outputs[positions]
        for block in self.blocks(len(candidates), max(len(terms), W.shape[0])):
            yield block, weights @ self.kernel(terms, candidates.outputs[block])

    def terms(self, *Ws: WeightMatrix) -> Terms:
        """Return the sums of rows with equal outputs merged, and without unused outputs."""
        training, n_train = self.training, len(self)
        n = sum(W.shape[0] for W in Ws)
        n_entries = sum(W.max_entries for W in Ws)
        if 12 * n_entries > BLOCK_BYTES:
            if len(training) <= n_train / 2 and 8 * max(n, n_train) * len(training) <= BLOCK_BYTES:
                merge = (training.group[:, None] == np.arange(len(training))).astype(np.float64)
                return Terms([DenseWeights(W @ merge) for W in Ws], np.arange(len(training)))
            return Terms(Ws, training.group)
        if len(training) > n_train / 2 and n_entries > 2 * n_train:  # most outputs are in use
            return Terms(Ws, training.group)
        matrices = [W.tocsr() for W in Ws]
        columns = [training.group[matrix.indices] for matrix in matrices]
        used = np.zeros(len(training), dtype=bool)
        for own in columns:
            used[own] = True
        if not used.any():  # zero vectors, and kernels need an output
            used[0] = True
        positions = np.flatnonzero(used)
        number = np.cumsum(used) - 1
        merged = [
            sp.csr_array(
                (matrix.data, number[own], matrix.indptr),
                shape=(matrix.shape[0], len(positions)),
            )
            for matrix, own in zip(matrices, columns, strict=True)
        ]
        return Terms([SparseWeights(matrix) for matrix in merged], positions)

    def sums_of_equal(self, W: Any) -> Floats:
        """Return the sums of the weights of equal training outputs, of shape (n, n_different)."""
        (weights,), positions = self.terms(as_weights(W))
        entries = weights.tocsr().tocoo()
        places = entries.row, positions[entries.col]
        shape = weights.shape[0], len(self.training)
        return sp.coo_array((entries.data, places), shape=shape).toarray()

    def inner_pairs(self, W: Any, y: Outputs) -> Floats:
        """Return ⟨F_i, φ(y_i)⟩ for every row i of W and its own output y_i."""
        W = as_weights(W)
        if self.features is not None:
            return np.einsum("ij,ij->i", W.feature_sums(self), self.kernel.features(y))
        result = np.empty(len(y))
        for rows in self.blocks(len(y), len(self)):
            (weights,), positions = self.terms(W[rows])
            K = self.kernel(y[rows], self.training.outputs[positions])
            result[rows] = (weights.entries() * K).sum(axis=1)
        return result

    def gram(self, W: Any, V: Any = None) -> Floats:
        """Return ⟨F_i, G_j⟩ for the rows i of W and j of V (or of W)."""
        return self.mean_gram([W], None if V is None else [V])

    def mean_gram(self, Ws: Sequence[Any], Vs: Sequence[Any] | None = None) -> Floats:
        """Return the mean of :meth:`gram` over pairs of one matrix of Ws and one of Vs."""
        Ws = [as_weights(W) for W in Ws]
        Vs = Ws if Vs is None else [as_weights(V) for V in Vs]
        result = np.zeros((Ws[0].shape[0], Vs[0].shape[0]))
        # Some rows at a time: there is only one array of the size of the result.
        rows = list(self.blocks(*result.shape))
        if self.features is not None:
            for W, V in zip(Ws, Vs, strict=True):
                F, G = W.feature_sums(self), V.feature_sums(self).T
                for some in rows:
                    result[some] += F[some] @ G
        else:
            left, right = self.terms(*Ws), self.terms(*Vs)
            columns = [_by_columns(V) for V in right.weights]
            outputs = self.training.outputs
            size = max(len(left.positions), len(result))
            for block in self.blocks(len(right.positions), size):
                K = self.kernel(outputs[left.positions], outputs[right.positions[block]])
                for W, V_columns in zip(left.weights, columns, strict=True):
                    inner, part = W @ K, V_columns[:, block]
                    for some in rows:
                        result[some] += (part @ inner[some].T).T
        result /= len(Ws)
        return result

    def squared_norms(self, W: Any) -> Floats:
        """Return ‖F_i‖² for every row i of W."""
        W = as_weights(W)
        if self.features is not None:
            F = W.feature_sums(self)
            return np.einsum("ij,ij->i", F, F)
        result = np.zeros(W.shape[0])
        outputs = self.training.outputs
        for start in range(0, W.shape[0], BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            (weights,), positions = self.terms(W[rows])
            columns = _by_columns(weights)
            for block in self.blocks(len(positions), max(len(positions), weights.shape[0])):
                K = self.kernel(outputs[positions], outputs[positions[block]])
                result[rows] += (columns[:, block] * (weights @ K)).sum(axis=1)
        return result

    def losses(self, W: Any, y: Outputs) -> Floats:
        """Return ‖φ(y_i) − F_i‖² for every row i of W and its own output y_i."""
        W = as_weights(W)
        if self.features is None or isinstance(W, LeafWeights):
            losses = self.computed_on_device(W, lambda there: there.losses(W, y))
            if losses is not None:
                return np.asarray(to_host(losses))
        if self.features is None:
            losses = self.kernel.diag(y) - 2.0 * self.inner_pairs(W, y) + self.squared_norms(W)
            return np.maximum(losses, 0.0)
        # Differences first: no digits are lost to a large mean.
        features = self.kernel.features(y)
        losses = ((features - W.feature_sums(self)) ** 2).sum(axis=1)
        return losses + hidden_squares(self.kernel, y)

    def spread(self, weight: Floats) -> float:
        """Return Σ_i ω_i ‖φ(y_i) − mean‖² of the outputs themselves, weighted by ω."""
        if self.features is not None:
            mean = np.average(self.features, axis=0, weights=weight)
            return float(weight @ ((self.features - mean) ** 2).sum(axis=1))
        mean_norm = self.squared_norms(weight / weight.sum())[0]
        square = weight @ self.training.squares[self.training.group]
        spread = square - weight.sum() * mean_norm
        return float(spread) if spread > 1e-13 * square else 0.0

    def blocks(self, n: int, width: int) -> Iterator[slice]:
        """Divide n outputs into blocks whose products with ``width`` others take bounded memory."""
        size = max(1, BLOCK_BYTES // (8 * max(1, width)))
        return (slice(i, min(i + size, n)) for i in range(0, n, size))


def hidden_squares(kernel: OutputKernel, y: Outputs) -> Floats:
    """Return the squared norms of the components that explicit features leave out.

    An output unlike any training output, such as a new class, has such a component.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import Dirac
    >>> from okforest.weights import hidden_squares
    >>> kernel = Dirac().resolve(np.array(["a", "b"]))
    >>> hidden_squares(kernel, np.array(["a", "new"]))
    array([0., 1.])
    """
    features, diag = kernel.features(y), kernel.diag(y)
    hidden = diag - np.einsum("ij,ij->i", features, features)
    return np.where(hidden > 1e-9 * diag, hidden, 0.0)


def _by_columns(W: WeightMatrix) -> sp.csc_array | Floats:
    entries = W.entries()
    return sp.csc_array(entries) if sp.issparse(entries) else entries
