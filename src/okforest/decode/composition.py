"""Decoders made of decoders: sharpened weights, and the parts of tuples."""

from collections.abc import Sequence
from typing import Any, ClassVar

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.parameters import NOT_NEGATIVE, check_parameters
from okforest.decode.base import Decoder, HeldOut, Need
from okforest.decode.search import TrainingSet
from okforest.kernels import OutputKernel, Tuples
from okforest.kernels.base import describe_kernel
from okforest.kernels.outputs import array_of_objects
from okforest.weights import SharpenedWeights, Span, WeightMatrix, as_weights


def _decoder_of(decoder: Any, kernel: OutputKernel) -> Decoder:
    from okforest.decode.as_decoder import as_decoder  # which imports the decoder of tuples

    return as_decoder(decoder, kernel)


class Sharpened(Decoder):
    """Raises weights to a power before decoding them, so that large weights count more.

    The weights of a forest spread over all outputs that share a leaf with the input in any tree. A
    power above 1 concentrates them on the outputs that share most leaves; below 1 spreads them. A
    good power is found by :func:`okforest.select_power` out of bag, or by a search over
    ``decoder__power``.

    Parameters
    ----------
    decoder : Decoder or str, default="auto"
        The decoder of the sharpened weights.
    power : float, default=1.0
        The power, at least 0. 1 changes nothing.

    See Also
    --------
    okforest.select_power : Chooses the power from out-of-bag weights.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest import OKNeighbors
    >>> from okforest.decode import Sharpened
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), [0.0, 1.0, 3.0]
    >>> model = OKNeighbors(3, weights="distance", decoder=Sharpened(power=4)).fit(X, y)
    >>> model.predict([[0.9]]).round(3)
    array([1.])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"power": [NOT_NEGATIVE]}

    def __init__(self, decoder: Any = "auto", power: float = 1.0):
        self.decoder = decoder
        self.power = power

    def check(self, span: Span) -> None:
        """Check the power and the decoder."""
        check_parameters(self)
        _decoder_of(self.decoder, span.kernel).check(span)

    @property
    def is_tuned(self) -> bool:
        """Whether every parameter of the decoder is known."""
        return not isinstance(self.decoder, Decoder) or self.decoder.is_tuned

    def tune(self, held_out: Sequence[HeldOut], span: Span) -> "Sharpened":
        """Return the decoder with its parameters chosen from sharpened held-out predictions."""
        sharpened = [HeldOut(self._sharpened(W), own, y) for W, own, y in held_out]
        decoder = _decoder_of(self.decoder, span.kernel).tune(sharpened, span)
        return Sharpened(decoder, self.power)

    def needs(self, span: Span) -> frozenset[Need]:
        """Return "weights", and what the decoder needs."""
        return _decoder_of(self.decoder, span.kernel).needs(span) | {"weights"}

    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return one output for each row of W."""
        return _decoder_of(self.decoder, span.kernel).decode(self._sharpened(W), span)

    def top(self, W: WeightMatrix, span: Span, k: int) -> tuple[Outputs, Floats]:
        """Return the k best different candidates for each prediction, and their losses."""
        decoder = _decoder_of(self.decoder, span.kernel)
        search: Any = decoder if hasattr(decoder, "top") else TrainingSet()
        outputs, losses = search.top(self._sharpened(W), span, k)
        return outputs, losses

    def with_candidates(self, candidates: Any) -> Decoder:
        """Return a decoder of the same power that searches these candidates."""
        if isinstance(self.decoder, Decoder):
            return Sharpened(self.decoder.with_candidates(candidates), self.power)
        return Sharpened(TrainingSet().with_candidates(candidates), self.power)

    def _sharpened(self, W: WeightMatrix) -> WeightMatrix:
        return SharpenedWeights(as_weights(W), float(self.power))


class Parts(Decoder):
    """Each part of a tuple, by a decoder of its own.

    Parameters
    ----------
    decoders : list of Decoder or str, optional
        The decoder of each part; by default "auto", the choice of its kernel.

    Examples
    --------
    >>> from okforest import OKTree
    >>> from okforest.decode import Parts
    >>> from okforest.kernels import OutputKernel, Tuples
    >>> y = [(20.0, "student"), (22.0, "student"), (64.0, "retired"), (70.0, "retired")]
    >>> model = OKTree(
    ...     kernel=Tuples(["linear", "dirac"]), max_depth=1, decoder=Parts(["training_set", "auto"])
    ... )
    >>> age, status = model.fit([[0.0], [1.0], [2.0], [3.0]], y).predict([[0.5]])[0]
    >>> print(age, status)
    20.0 student
    """

    def __init__(self, decoders: Sequence[Any] | None = None):
        self.decoders = decoders

    def check(self, span: Span) -> None:
        """Check that outputs are tuples, and each part with its decoder."""
        if not isinstance(span.kernel, Tuples):
            raise ValueError(
                "decoder 'parts' predicts tuples, and the kernel is "
                f"{describe_kernel(span.kernel)}; use decoder='auto', or kernel=Tuples([...])."
            )
        for decoder, part in self._parts(span):
            decoder.check(part)

    @property
    def is_tuned(self) -> bool:
        """Whether every parameter of the decoders is known."""
        decoders = self.decoders or []
        return all(own.is_tuned for own in decoders if isinstance(own, Decoder))

    def tune(self, held_out: Sequence[HeldOut], span: Span) -> "Parts":
        """Return the decoders with their parameters chosen from held-out predictions."""
        tuned = []
        for j, (decoder, part) in enumerate(self._parts(span)):
            own = [
                HeldOut(some.W, self._parts(some.span)[j][1], _column(span, some.outputs, j))
                for some in held_out
            ]
            tuned.append(decoder.tune(own, part))
        return Parts(tuned)

    def needs(self, span: Span) -> frozenset[Need]:
        """Return "weights", and what the decoder of any part needs."""
        parts = self._parts(span)
        weights: frozenset[Need] = frozenset({"weights"})
        return weights.union(*(decoder.needs(part) for decoder, part in parts))

    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return one tuple for each row of W."""
        columns = [decoder.decode(W, part) for decoder, part in self._parts(span)]
        return array_of_objects(list(zip(*columns, strict=True)))

    def _parts(self, span: Span) -> list[tuple[Decoder, Span]]:
        """Return the decoder and the span of each part."""
        kernel = span.kernel
        assert isinstance(kernel, Tuples), "check first"
        names = ["auto"] * len(kernel.kernels) if self.decoders is None else list(self.decoders)
        if len(names) != len(kernel.kernels):
            raise ValueError(
                f"decoders has {len(names)} entries; there are {len(kernel.kernels)} parts."
            )
        parts = zip(names, kernel.parts, kernel.columns(span.outputs), strict=True)
        return [(_decoder_of(name, part), Span(part, own)) for name, part, own in parts]


def _column(span: Span, outputs: Outputs, j: int) -> Outputs:
    kernel = span.kernel
    assert isinstance(kernel, Tuples), "check first"
    return kernel.columns(outputs)[j]
