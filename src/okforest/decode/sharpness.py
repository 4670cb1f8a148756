"""Decoding from weights that are raised to a power."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from okforest._utils.arrays import Floats, Outputs
from okforest.decode.as_decoder import as_decoder
from okforest.decode.base import Decoder, HeldOut
from okforest.decode.search import TrainingSet
from okforest.weights import SharpenedWeights, Span, WeightMatrix, as_weights


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

    def __init__(self, decoder: Any = "auto", power: float = 1.0):
        self.decoder = decoder
        self.power = power

    def check(self, span: Span) -> None:
        """Check the power and the decoder."""
        if not isinstance(self.power, Real) or not 0 <= float(self.power) < np.inf:
            raise ValueError(f"power={self.power!r}; use a number of at least 0, such as 2.")
        as_decoder(self.decoder, span.kernel).check(span)

    @property
    def is_tuned(self) -> bool:
        """Whether every parameter of the decoder is known."""
        return not isinstance(self.decoder, Decoder) or self.decoder.is_tuned

    def tune(self, held_out: Sequence[HeldOut], span: Span) -> "Sharpened":
        """Return the decoder with its parameters chosen from sharpened held-out predictions."""
        sharpened = [HeldOut(self._sharpened(W), own, y) for W, own, y in held_out]
        decoder = as_decoder(self.decoder, span.kernel).tune(sharpened, span)
        return Sharpened(decoder, self.power)

    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return one output for each row of W."""
        return as_decoder(self.decoder, span.kernel).decode(self._sharpened(W), span)

    def top(self, W: WeightMatrix, span: Span, k: int) -> tuple[Outputs, Floats]:
        """Return the k best different candidates for each prediction, and their losses."""
        decoder = as_decoder(self.decoder, span.kernel)
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
