"""From weights to tuples: each part by a decoder of its own."""

from collections.abc import Sequence
from typing import Any

from okforest._utils.arrays import Outputs
from okforest.decode.base import Decoder, HeldOut, Need
from okforest.kernels import Tuples
from okforest.kernels.base import describe_kernel
from okforest.kernels.outputs import array_of_objects
from okforest.weights import Span, WeightMatrix


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
    >>> from okforest.kernels import Tuples
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
        return frozenset({"weights"}).union(*(decoder.needs(part) for decoder, part in parts))

    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return one tuple for each row of W."""
        columns = [decoder.decode(W, part) for decoder, part in self._parts(span)]
        return array_of_objects(list(zip(*columns, strict=True)))

    def _parts(self, span: Span) -> list[tuple[Decoder, Span]]:
        """Return the decoder and the span of each part."""
        from okforest.decode.as_decoder import as_decoder  # which imports this decoder

        kernel = span.kernel
        assert isinstance(kernel, Tuples), "check first"
        names = ["auto"] * len(kernel.kernels) if self.decoders is None else list(self.decoders)
        if len(names) != len(kernel.kernels):
            raise ValueError(
                f"decoders has {len(names)} entries; there are {len(kernel.kernels)} parts."
            )
        parts = zip(names, kernel.parts, kernel.columns(span.outputs), strict=True)
        return [(as_decoder(name, part), Span(part, own)) for name, part, own in parts]


def _column(span: Span, outputs: Outputs, j: int) -> Outputs:
    kernel = span.kernel
    assert isinstance(kernel, Tuples), "check first"
    return kernel.columns(outputs)[j]
