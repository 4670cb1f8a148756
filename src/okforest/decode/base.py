"""The contract of a decoder."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self

from sklearn.base import BaseEstimator

from okforest._utils.arrays import Outputs
from okforest.weights import Span, WeightMatrix

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
        minimises something else over candidates overrides it. :class:`Candidates` that a user has
        made are prepared for later calls.
        """
        from okforest.decode.search import CandidateLists, Candidates, PerQuery

        if isinstance(candidates, CandidateLists):
            return PerQuery(self, candidates)
        if isinstance(candidates, Candidates):
            return candidates
        return Candidates.once(candidates)


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
