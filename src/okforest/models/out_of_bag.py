"""Out-of-bag estimates: training rows predicted by the trees that were not grown on them."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from okforest._utils.arrays import Floats, Ints, Outputs
from okforest._utils.errors import warn
from okforest.decode import Decoder
from okforest.decode.base import HeldOut
from okforest.engine import Trees
from okforest.kernels import Dirac
from okforest.metrics.losses import weights_r2
from okforest.models.outputs import accuracy
from okforest.weights import LeafWeights, Span, SparseWeights

# The prediction of a row that every tree was grown on, by kind of output.
UNKNOWN: dict[str, Any] = {"f": np.nan, "i": -1, "u": 0, "O": None}


class OutOfBag(NamedTuple):
    """Weights, predictions and score of the training rows."""

    weights: sp.csr_array
    prediction: Outputs
    score: float


def out_of_bag_weights(trees: Trees, leaves: Ints) -> sp.csr_array:
    """Return the weights of training rows from the trees that were not grown on them."""
    return LeafWeights(trees, np.where(trees.are_members(), np.int32(-1), leaves)).tocsr()


def tune_out_of_bag(decoder: Decoder, W: sp.csr_array, span: Span) -> Decoder:
    """Return a decoder tuned on out-of-bag predictions."""
    known = np.diff(W.indptr) > 0
    if not known.any():
        raise ValueError(
            f"no training row has an out-of-bag prediction to tune {decoder!r} with; grow more "
            "trees."
        )
    return decoder.tune([HeldOut(SparseWeights(W[known]), span, span.outputs[known])], span)


def tune_later(model: Any, decoder: Decoder) -> Decoder:
    """Return a decoder tuned on the out-of-bag weights that a fitted model has kept."""
    weights = getattr(model, "oob_weights_", None)
    if weights is None:
        raise ValueError(
            f"{decoder!r} is not tuned, and this {type(model).__name__} has no out-of-bag weights "
            "to tune it with; fit it again, with this decoder or with oob_score=True, or pass "
            f"decoder=okforest.tune_decoder(model, X, y, {decoder!r})."
        )
    decoder.check(model.span_)
    return tune_out_of_bag(decoder, weights, model.span_)


def out_of_bag(W: sp.csr_array, span: Span, decoder: Decoder, sample_weight: Floats) -> OutOfBag:
    """Return the out-of-bag estimates, given the weights of training rows."""
    known = np.diff(W.indptr) > 0
    if not known.all():
        warn(
            f"{(~known).sum()} training rows were drawn for every tree and have no out-of-bag "
            "prediction; grow more trees.",
        )
    decoded = span.kernel.as_given(decoder.decode(SparseWeights(W[known]), span))
    prediction = np.empty((len(known), *decoded.shape[1:]), dtype=decoded.dtype)
    prediction[~known] = UNKNOWN.get(decoded.dtype.kind, "")
    prediction[known] = decoded
    true, weight = span.outputs[known], sample_weight[known]
    if isinstance(span.kernel, Dirac):
        score = accuracy(true, decoded, weight)
    else:
        score = weights_r2(span, SparseWeights(W[known]), true, weight)
    return OutOfBag(W, prediction, score)
