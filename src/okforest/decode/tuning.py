"""Decoders with parameters that are chosen from held-out predictions of the training outputs."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

from okforest.decode._base import Decoder, HeldOut
from okforest.weights import Span


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
