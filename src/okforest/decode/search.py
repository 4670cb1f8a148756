"""Outputs by search over candidates: training outputs, outputs of the user, a list for each row."""

import threading
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._utils.arrays import Floats, Outputs, check_sparse, on_gpu
from okforest._utils.distinct import check_same_type
from okforest._utils.parameters import COUNT, check_arguments
from okforest._utils.resources import machine_memory
from okforest.decode.base import Decoder, Need
from okforest.decode.nearest import (
    Found,
    PreparedVectors,
    bounds_pay_off,
    is_kept,
    search_all,
    search_kept,
    search_on_device,
    search_with_bounds,
)
from okforest.weights import OutputSet, Span, WeightMatrix, as_weights

BLOCK = 2**16  # candidates that are read at a time
ROWS = 4096  # predictions searched at a time, by blocks of candidates
PREPARED_FRACTION = 0.25  # largest copy of candidates that is kept, relative to RAM
_preparing = threading.Lock()


class CandidateSearch(Decoder):
    """Searches candidates for the least cost; subclasses define the candidates and the cost."""

    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return the best candidate for each prediction; the first of equals."""
        outputs: Outputs = self._search(W, span, 1).outputs[:, 0]
        return outputs

    def top(self, W: WeightMatrix, span: Span, k: int) -> tuple[Outputs, Floats]:
        """Return the k best different candidates for each prediction, and their losses.

        Outputs and losses have shape (n, k), best first; a loss is infinite where fewer candidates
        are allowed.
        """
        check_arguments("top", {"k": [COUNT]}, k=k)
        outputs, losses = self._search(W, span, k, with_losses=True)
        return outputs, losses

    def _search(self, W: WeightMatrix, span: Span, k: int, with_losses: bool = False) -> Found:
        parts = []
        for rows in _parts(W):
            best: Found | None = None
            for given in self._candidate_blocks(span):
                candidates = given.on_host()
                nearest, costs = self._nearest(rows, span, candidates, min(k, len(candidates)))
                found = Found(candidates.outputs[nearest], costs)
                best = found if best is None else best.merged(found, k)
            assert best is not None, "there is at least one candidate"
            best.check_count(k)
            if with_losses:
                best = Found(best.outputs, self._losses(best.costs, rows, span))
            parts.append(best)
        if len(parts) == 1:
            return parts[0]
        return Found(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    @abstractmethod
    def _candidate_blocks(self, span: Span) -> Iterator[OutputSet]:
        """Yield the candidates, in parts if there are too many to prepare at once."""

    @abstractmethod
    def _nearest(
        self, W: WeightMatrix, span: Span, candidates: OutputSet, k: int
    ) -> tuple[npt.NDArray[np.intp], Floats]:
        """Return the k candidates of least cost, in order, the first of equals, and the costs."""

    @abstractmethod
    def _losses(self, costs: Floats, W: WeightMatrix, span: Span) -> Floats:
        """Return the losses for these costs, which may leave out a constant of each prediction."""


class SearchDecoder(CandidateSearch):
    """Searches candidates c for the least distance ‖φ(c) − F‖² to the prediction F.

    To add one, write :meth:`candidates`, and :meth:`allowed` if the candidates differ between
    predictions.

    Examples
    --------
    >>> from okforest import OKTree
    >>> from okforest.decode import SearchDecoder
    >>> from okforest.weights import OutputSet
    >>> class FirstTen(SearchDecoder):
    ...     def candidates(self, span):
    ...         return OutputSet(span.kernel, span.outputs[:10])
    >>> tree = OKTree(kernel="rbf", decoder=FirstTen()).fit([[i] for i in range(20)], range(20))
    >>> tree.predict([[3], [15]])
    array([3., 9.])
    """

    @abstractmethod
    def candidates(self, span: Span) -> OutputSet:
        """Return the candidates: ``OutputSet(span.kernel, outputs)``, or ``span.training``."""

    def allowed(self, W: WeightMatrix) -> sp.csr_array | None:
        """Return which of the outputs given as candidates (columns) a prediction (row) may take.

        Nonzero entries of a sparse matrix are allowed; None allows all.
        """
        return None

    def needs(self, span: Span) -> frozenset[Need]:
        """Return what the candidates are chosen from: all training outputs, weights, or neither."""
        needs: set[Need] = set()
        if span.features is None or type(self).allowed is not SearchDecoder.allowed:
            needs.add("weights")
        if self.candidates(span) is span.training:
            needs.add("training_outputs")
        return frozenset(needs)

    def _search(self, W: WeightMatrix, span: Span, k: int, with_losses: bool = False) -> Found:
        """Search on the GPU where the span is there, else on the CPU."""
        W = as_weights(W)
        if type(self).allowed is SearchDecoder.allowed:
            found = span.computed_on_device(
                W,
                lambda there: search_on_device(
                    there, W, lambda: self._candidate_blocks(span), k, with_losses
                ),
            )
            if found is not None:
                return Found(*found)
        return super()._search(W, span, k, with_losses)

    def _candidate_blocks(self, span: Span) -> Iterator[OutputSet]:
        yield self.candidates(span)

    def _nearest(
        self, W: WeightMatrix, span: Span, candidates: OutputSet, k: int
    ) -> tuple[npt.NDArray[np.intp], Floats]:
        """Return the k nearest; costs are ‖φ(c) − F‖² − ‖F‖², infinite where not allowed."""
        allowed = self._allowed_groups(W, candidates)
        if allowed is None:
            if bounds_pay_off(W, span, candidates):
                return search_with_bounds(W, span, k)
            if k == 1 and is_kept(W, span, candidates):
                return search_kept(W, span)
            return search_all(W, span, candidates, None, k)
        used = np.flatnonzero(np.diff(sp.csc_array(allowed).indptr))
        if not k <= len(used) <= len(candidates) / 2:
            return search_all(W, span, candidates, allowed, k)
        nearest, distances = search_all(W, span, candidates.take(used), allowed[:, used], k)
        return used[nearest], distances

    def _losses(self, costs: Floats, W: WeightMatrix, span: Span) -> Floats:
        return np.maximum(costs + span.squared_norms(W)[:, None], 0.0)

    def _allowed_groups(self, W: WeightMatrix, candidates: OutputSet) -> sp.csr_array | None:
        """Return which different candidates are allowed: those that equal an allowed one."""
        allowed = self.allowed(W)
        if allowed is None:
            return None
        columns = candidates.group[allowed.indices]
        shape = (allowed.shape[0], len(candidates))
        return sp.csr_array((abs(allowed.data), columns, allowed.indptr), shape=shape)


def _parts(W: Any) -> list[WeightMatrix]:
    W = as_weights(W)
    return [W[i : i + ROWS] for i in range(0, W.shape[0], ROWS)]


class TrainingSet(SearchDecoder):
    """Searches all training outputs.

    Examples
    --------
    >>> from okforest import OKTree
    >>> tree = OKTree(decoder="training_set").fit([[0]] * 3 + [[1]], [0.0, 1.0, 5.0, 2.0])
    >>> tree.predict([[0]])  # the mean of the leaf is 2; 2.0 is in another leaf
    array([2.])
    """

    def candidates(self, span: Span) -> OutputSet:
        """Return the training outputs."""
        return span.training


class Support(TrainingSet):
    """Searches the training outputs of nonzero weight, as the papers on output kernel trees do.

    In the papers' image completion experiment with 800 training images (extra-trees), the loss is
    0.7100 with it and 0.7045 with :class:`TrainingSet`.

    Examples
    --------
    >>> from okforest import OKTree
    >>> tree = OKTree(decoder="support").fit([[0]] * 3 + [[1]], [0.0, 1.0, 5.0, 2.0])
    >>> tree.predict([[0]])  # the mean is 2, but the output 2.0 is in another leaf
    array([1.])
    """

    def needs(self, span: Span) -> frozenset[Need]:
        """Return "weights": only outputs of nonzero weight are searched."""
        return frozenset({"weights"})

    def allowed(self, W: WeightMatrix) -> sp.csr_array:
        """Return where the weights are nonzero; everything in a row of zeros."""
        matrix = abs(W.tocsr())
        matrix.eliminate_zeros()
        empty = sp.csr_array((np.diff(matrix.indptr) == 0)[:, None], dtype=float)
        if empty.nnz:
            matrix = sp.csr_array(matrix + empty @ sp.csr_array(np.ones((1, matrix.shape[1]))))
        return matrix


class Candidates(SearchDecoder):
    """Searches outputs given by the user, which need not occur in the training set.

    The candidates are prepared in the first search, for later ones: they are checked, and kernels
    with explicit features (such as the linear kernel) make vectors of float32 of them, or of bits
    if each feature has two values. A search takes float32 and a bound on its rounding, and compares
    the few candidates that may be nearest in float64. Pass the same object to every call,
    ``candidates=Candidates(outputs)``, or as the decoder; the outputs must not change. Each call
    checks a plain array again.

    More than 65,536 candidates are read in parts: an array that is memory-mapped from a file may be
    larger than the memory. What is prepared takes at most a quarter of the memory of the machine;
    above that, candidates are read by every search. It is not stored in files.

    Parameters
    ----------
    outputs : array-like
        The candidates, of the type that the kernel takes.

    See Also
    --------
    CandidateLists : Different candidates for every prediction.
    ExpectedLoss : Searches candidates for the least expected loss.

    Examples
    --------
    >>> from okforest import OKTree
    >>> from okforest.decode import Candidates
    >>> tree = OKTree().fit([[0], [1]], [1.0, 9.0])
    >>> candidates = Candidates([0.0, 5.0, 10.0])
    >>> tree.predict([[0], [1]], candidates=candidates)
    array([ 0., 10.])
    """

    _prepared: "Prepared | None" = None
    _keeps = True

    def __init__(self, outputs: Any):
        self.outputs = outputs

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_prepared"}

    def check(self, span: Span) -> None:
        """Check that the candidates are like the training outputs."""
        for _ in self._candidate_blocks(span):
            pass

    def needs(self, span: Span) -> frozenset[Need]:
        """Return "weights", or nothing if the kernel has explicit features."""
        return frozenset({"weights"} if span.features is None else ())

    def candidates(self, span: Span) -> OutputSet:
        """Return the given outputs."""
        return read_candidates(self.outputs, span)

    @classmethod
    def once(cls, outputs: Any) -> "Candidates":
        """Return candidates for a single search, which does not prepare them."""
        candidates = cls(outputs)
        candidates._keeps = False
        return candidates

    def _candidate_blocks(self, span: Span) -> Iterator[OutputSet]:
        prepared = self._prepared_for(span)
        if prepared is None or prepared.blocks is None:
            return candidate_blocks(self.outputs, span)
        return iter(prepared.blocks)

    def _prepared_for(self, span: Span) -> "Prepared | None":
        if not self._keeps or span.on_device is not None:
            return None
        with _preparing:  # threads that predict share what is prepared
            prepared = self._prepared
            if prepared is None or not prepared.fits(self.outputs, span):
                self._prepared = prepared = Prepared(self.outputs, span)
        return prepared

    def _search(self, W: WeightMatrix, span: Span, k: int, with_losses: bool = False) -> Found:
        prepared = self._prepared_for(span)
        vectors = None if prepared is None else prepared.vectors
        if vectors is None:
            return super()._search(W, span, k, with_losses)
        W = as_weights(W)
        F = W.feature_sums(span)
        nearest, costs, done = vectors.search(F, k, getattr(W, "n_threads", 1))
        outputs = vectors.take(nearest.ravel())
        found = Found(outputs.reshape(*nearest.shape, *outputs.shape[1:]), costs)
        for i in np.flatnonzero(~done):  # all candidates are compared in float64
            best = super()._search(W[int(i)], span, k)
            found.outputs[i], found.costs[i] = best.outputs[0], best.costs[0]
        if with_losses:
            squares = np.einsum("ij,ij->i", F, F)[:, None]
            found = Found(found.outputs, np.maximum(found.costs + squares, 0.0))
        return found


class Prepared:
    """What searches for the same candidates share.

    Parameters
    ----------
    outputs : array-like
        The candidates.
    span : Span
        The span of the training outputs.

    Attributes
    ----------
    blocks : list of OutputSet or None
        The candidates in canonical form, if the memory suffices.
    vectors : PreparedVectors or None
        The candidates in float32, if the kernel has explicit features as well. Arrays of numbers
        are not copied in canonical form then.
    """

    def __init__(self, outputs: Any, span: Span):
        self.given, self.span = outputs, span
        self.blocks: list[OutputSet] | None = None
        self.vectors: PreparedVectors | None = None
        n = count_candidates(outputs)
        width = span.outputs[:1].size if span.features is None else span.features.shape[1]
        if not n or on_gpu(outputs) or 8 * n * width > PREPARED_FRACTION * machine_memory():
            return
        if span.features is None:
            self.blocks = [*candidate_blocks(outputs, span)]
        elif isinstance(outputs, np.ndarray) and outputs.dtype.kind in "fiu":
            blocks = partial(candidate_blocks, outputs, span)
            self.vectors = PreparedVectors(n, span, blocks, self._read)
        else:
            parts = self.blocks = [*candidate_blocks(outputs, span)]
            checked = np.concatenate([block.given for block in parts])
            self.vectors = PreparedVectors(n, span, lambda: parts, lambda some: checked[some])

    def fits(self, outputs: Any, span: Span) -> bool:
        """Return whether this is prepared from these outputs, and for this kernel."""
        return self.given is outputs and self.span.kernel is span.kernel

    def _read(self, positions: npt.NDArray[np.intp]) -> Outputs:
        return read_candidates(self.given[positions], self.span).given


def candidate_blocks(outputs: Any, span: Span) -> Iterator[OutputSet]:
    """Yield candidates given by the user, in parts of bounded size."""
    n = count_candidates(outputs)
    if n <= BLOCK:
        yield read_candidates(outputs, span)
        return
    if sp.issparse(outputs):
        matrix: Any = outputs
        check_sparse(matrix, "candidates")
        outputs = matrix.tocsr()  # not every format has slices
    for start in range(0, n, BLOCK):
        yield read_candidates(outputs[start : start + BLOCK], span)


def read_candidates(outputs: Any, span: Span) -> OutputSet:
    """Return candidates given by the user, checked against the training outputs."""
    if outputs is None:
        raise ValueError("candidates is None; pass at least one output.")
    if isinstance(outputs, Decoder):
        inner = "candidates.outputs" if isinstance(outputs, Candidates) else "outputs"
        raise ValueError(
            f"candidates is the decoder {type(outputs).__name__}; pass outputs, "
            f"candidates={inner}, or set the decoder: "
            f"model.set_params(decoder={type(outputs).__name__}(...))."
        )
    if isinstance(outputs, Iterator):
        raise ValueError(
            f"candidates is of type {type(outputs).__name__}, which can be read only once; pass "
            "list(candidates)."
        )
    if hasattr(outputs, "__len__") and count_candidates(outputs) == 0:
        raise ValueError("candidates is empty; pass at least one output.")
    try:
        checked = span.kernel.check(outputs)
    except ValueError as error:
        raise ValueError(f"the candidates are not valid outputs: {error}") from None
    check_same_type(checked, span.outputs, "candidates")
    return OutputSet(span.kernel, checked if on_gpu(checked) else np.asarray(checked))


def count_candidates(outputs: Any) -> int:
    """Return the number of candidates given by the user; a sparse matrix has no length."""
    if sp.issparse(outputs):
        matrix: Any = outputs
        return int(matrix.shape[0])
    return len(outputs) if hasattr(outputs, "__len__") else 0


class CandidateLists:
    """A list of candidates for each prediction, to pass to ``predict`` as ``candidates=``.

    A prediction costs as much as its own candidates, whatever the other lists hold.

    Parameters
    ----------
    lists : sequence of array-like
        The candidates of each row of X, of the type that the kernel takes.

    See Also
    --------
    Candidates : The same candidates for all predictions.

    Examples
    --------
    >>> from okforest import OKTree
    >>> from okforest.decode import CandidateLists
    >>> tree = OKTree().fit([[0.0], [1.0]], [0.0, 10.0])
    >>> tree.predict([[0.0], [1.0]], candidates=CandidateLists([[1.0, 9.0], [2.0, 3.0, 4.0]]))
    array([1., 4.])
    """

    def __init__(self, lists: Sequence[Any]):
        self.lists = lists

    def __len__(self) -> int:
        return len(self.lists)


class PerQuery(Decoder):
    """Applies a decoder with the candidates of each row.

    Parameters
    ----------
    decoder : Decoder
        The decoder; its ``with_candidates`` is called for every row.
    lists : CandidateLists
        The candidates of the rows.
    """

    def __init__(self, decoder: Decoder, lists: CandidateLists):
        self.decoder = decoder
        self.lists = lists

    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return the best of its own candidates for each row."""
        rows = self._rows(W)
        return np.concatenate([self._decoder(i).decode(row, span) for i, row in enumerate(rows)])

    def top(self, W: WeightMatrix, span: Span, k: int) -> tuple[Outputs, Floats]:
        """Return the k best of its own candidates for each row, and their losses.

        Where a list has fewer than k different candidates, the best is repeated with an infinite
        loss.
        """
        check_arguments("top", {"k": [COUNT]}, k=k)
        outputs, losses = [], []
        for i, row in enumerate(self._rows(W)):
            decoder: Any = self._decoder(i)
            n_different = len(read_candidates(self.lists.lists[i], span))
            best, costs = decoder.top(row, span, min(k, n_different))
            fill = k - costs.shape[1]
            outputs.append(np.concatenate([best, np.repeat(best[:, :1], fill, axis=1)], axis=1))
            losses.append(np.pad(costs, ((0, 0), (0, fill)), constant_values=np.inf))
        return np.concatenate(outputs), np.concatenate(losses)

    def _rows(self, W: Any) -> list[WeightMatrix]:
        W = as_weights(W)
        if len(self.lists) != W.shape[0]:
            raise ValueError(
                f"there are {len(self.lists)} lists of candidates for {W.shape[0]} rows; pass one "
                "list for each row of X."
            )
        return [W[i] for i in range(W.shape[0])]

    def _decoder(self, i: int) -> Decoder:
        own = self.lists.lists[i]
        if own is None or (hasattr(own, "__len__") and count_candidates(own) == 0):
            raise ValueError(
                f"the list of candidates of row {i} is empty; pass at least one output."
            )
        return self.decoder.with_candidates(own)
