"""The contract of a decoder."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.parameters import COUNT, check_arguments
from okforest.decode.nearest import (
    Found,
    bounds_pay_off,
    is_kept,
    search_all,
    search_kept,
    search_on_device,
    search_with_bounds,
)
from okforest.weights import OutputSet, Span, WeightMatrix, as_weights

ROWS = 4096  # predictions searched at a time, by blocks of candidates

Need = Literal["weights", "training_outputs"]


class HeldOut(NamedTuple):
    """Predictions of outputs that the model was not fitted to, and these outputs."""

    W: WeightMatrix
    span: Span
    outputs: Outputs


class Decoder(ABC, BaseEstimator):
    """Turns predictions, given by weights over the training outputs, into outputs.

    To add a decoder, subclass it and write :meth:`decode`, and :meth:`check` if it is made for some
    outputs only; parameters are the arguments of ``__init__``, stored unchanged, and become
    searchable as ``decoder__name``.

    The weights W are a :class:`okforest.weights.WeightMatrix` of shape (n, n_train), not an array:
    ``W.tocsr()`` is a sparse matrix, ``W @ values`` are weighted sums, and ``W[i:j]`` some rows.
    The span holds the kernel and the training outputs (``span.kernel``, ``span.outputs``), and
    computes what the weights imply; see :class:`okforest.weights.Span`. :meth:`decode` returns an
    array with one output for each row of W.

    Examples
    --------
    >>> from okforest import OKTree
    >>> from okforest.decode import Decoder
    >>> class Heaviest(Decoder):
    ...     def decode(self, W, span):
    ...         return span.outputs[W.tocsr().toarray().argmax(axis=1)]
    >>> tree = OKTree(kernel="dirac", decoder=Heaviest()).fit([[0], [1]], ["a", "b"])
    >>> tree.predict([[0.2]])
    array(['a'], dtype='<U1')
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    def check(self, span: Span) -> None:
        """Raise a ValueError if this decoder cannot return outputs like the training outputs.

        Models call it when they are fitted.
        """

    @property
    def is_tuned(self) -> bool:
        """Whether every parameter is known; see :class:`TunableDecoder`."""
        return True

    def tune(self, held_out: Sequence[HeldOut], span: Span) -> "Decoder":
        """Return this decoder with its parameters chosen from held-out predictions."""
        return self

    def needs(self, span: Span) -> frozenset[Need]:
        """Return what decoding reads besides the means of explicit features.

        "weights" are the weights of single training outputs; without them, ``W.feature_sums(span)``
        is enough. "training_outputs" are all training outputs, also those without any weight.
        A forest on several machines asks for it: weights are large, and the training outputs may be
        in partitions. The default is right for every decoder that predicts from weighted outputs.
        """
        return frozenset({"weights"})

    @abstractmethod
    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return one output for each row of W."""

    def with_candidates(self, candidates: Any) -> "Decoder":
        """Return the decoder of ``predict(X, candidates=...)``, which takes one of these outputs.

        By default this is the candidate nearest to the prediction in feature space. A decoder that
        minimises something else over candidates overrides it.
        """
        from okforest.decode.candidate_lists import CandidateLists, PerQuery
        from okforest.decode.search import Candidates

        if isinstance(candidates, CandidateLists):
            return PerQuery(self, candidates)
        return Candidates(candidates)


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


class TunableDecoder(Decoder):
    """A decoder with a parameter that is chosen from held-out predictions.

    A forest with ``bootstrap=True`` tunes it from its out-of-bag predictions when it is fitted, and
    stores the result as ``decoder_``. For any other model, :func:`okforest.tune_decoder` tunes it
    by cross-validation. To add such a decoder, write :attr:`is_tuned` and :meth:`tune`.

    Examples
    --------
    >>> from okforest import OKRandomForest
    >>> from okforest.decode import Threshold, TunableDecoder
    >>> issubclass(Threshold, TunableDecoder)
    True
    >>> X, y = [[i] for i in range(8)], [{"sea"}, {"sea", "sand"}] * 4
    >>> forest = OKRandomForest(20, kernel="hamming", decoder=Threshold("macro_f1"), random_state=0)
    >>> forest.fit(X, y).decoder_.is_tuned
    True
    """

    @property
    @abstractmethod
    def is_tuned(self) -> bool:
        """Whether every parameter is known."""

    @abstractmethod
    def tune(self, held_out: Sequence[HeldOut], span: Span) -> Self:
        """Return this decoder with its parameters chosen, for a model with this span."""
