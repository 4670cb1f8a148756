"""Decoding from weights that are raised to a power."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.parameters import NOT_NEGATIVE, check_parameters
from okforest.decode.as_decoder import as_decoder
from okforest.decode.base import Decoder, HeldOut, Need
from okforest.decode.search import TrainingSet
from okforest.weights import SharpenedWeights, Span, SparseWeights, WeightMatrix, as_weights


class Sharpened(Decoder):
    """Raises weights to a power before decoding them, so that large weights count more.

    The weights of a forest spread over all outputs that share a leaf with the input in any tree. A
    power above 1 concentrates them on the outputs that share most leaves; below 1 spreads them. A
    good power is found by :func:`select_power` out of bag, or by a search over
    ``decoder__power``.

    Parameters
    ----------
    decoder : Decoder or str, default="auto"
        The decoder of the sharpened weights.
    power : float, default=1.0
        The power, at least 0. 1 changes nothing.

    See Also
    --------
    select_power : Chooses the power from out-of-bag weights.

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

    def needs(self, span: Span) -> frozenset[Need]:
        """Return "weights", and what the decoder needs."""
        return as_decoder(self.decoder, span.kernel).needs(span) | {"weights"}

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


@dataclass(frozen=True)
class PowerChoice:
    """The result of :func:`select_power`.

    Parameters
    ----------
    power : float
        The chosen power.
    powers : ndarray of shape (m,)
        The powers that were tried, ascending.
    losses : ndarray of shape (m,)
        Their mean losses out of bag.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from okforest import OKRandomForest
    >>> from okforest.decode import select_power
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = OKRandomForest(20, oob_score=True, random_state=0).fit(X, y)
    >>> choice = select_power(forest, lambda true, predicted: (true - predicted) ** 2)
    >>> choice.power in choice.powers, choice.losses.shape == choice.powers.shape
    (True, True)
    """

    power: float
    powers: Floats
    losses: Floats


def select_power(
    model: Any,
    loss: Callable[[Any, Any], float],
    powers: Sequence[float] = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0),
) -> PowerChoice:
    """Choose the power of :class:`Sharpened` by the loss of out-of-bag predictions.

    The forest is not refitted: only its out-of-bag weights are decoded again. They average about a
    third of the trees, so the power is the best one for a smaller forest.

    Parameters
    ----------
    model : estimator
        A fitted forest, with ``bootstrap=True`` and ``oob_score=True``.
    loss : callable
        ``loss(true, predicted)`` returns a number for two outputs, in the form in which those of y
        were given.
    powers : sequence of float, optional
        The powers to try.

    Returns
    -------
    choice : PowerChoice
        The power of least loss, the one closest to 1 of equals, and all losses.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from okforest import OKRandomForest
    >>> from okforest.decode import Sharpened, select_power
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = OKRandomForest(oob_score=True, random_state=0).fit(X, y)
    >>> choice = select_power(forest, lambda true, predicted: abs(true - predicted))
    >>> choice.power
    0.5
    >>> forest = forest.set_params(decoder=Sharpened(power=choice.power))
    """
    weights = getattr(model, "oob_weights_", None)
    if weights is None:
        raise ValueError(
            f"this {type(model).__name__} has no out-of-bag weights; fit a forest with "
            "bootstrap=True and oob_score=True, or search decoder__power with GridSearchCV and "
            "scoring=make_output_scorer(loss)."
        )
    if not callable(loss):
        raise ValueError(f"loss={loss!r} is not a function of a true and a predicted output.")
    tried = np.unique(np.asarray(powers, dtype=np.float64))
    if not len(tried) or not (tried >= 0).all() or not np.isfinite(tried).all():
        raise ValueError(f"powers={powers!r}; pass one or more numbers of at least 0.")
    span: Span = model.span_
    decoder = as_decoder(model.decoder, span.kernel)
    if isinstance(decoder, Sharpened):
        decoder = as_decoder(decoder.decoder, span.kernel)
    known = np.diff(weights.indptr) > 0
    W, outputs = SparseWeights(weights[known]), span.outputs[known]
    true = span.kernel.as_given(outputs)
    losses = []
    for power in tried:
        sharpened: Decoder = Sharpened(decoder, float(power))
        if not sharpened.is_tuned:  # for each power anew
            sharpened = sharpened.tune([HeldOut(W, span, outputs)], span)
        predicted = span.kernel.as_given(sharpened.decode(W, span))
        losses.append(np.mean([loss(y, c) for y, c in zip(true, predicted, strict=True)]))
    mean = np.array(losses)
    best = np.flatnonzero(mean <= mean.min())
    chosen = tried[best[np.abs(np.log(np.maximum(tried[best], 1e-9))).argmin()]]
    return PowerChoice(float(chosen), tried, mean)
