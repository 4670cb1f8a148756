"""What bootstrapped forests say of training rows, by the trees that were not grown on them."""

from typing import Any, NamedTuple
from warnings import warn

import numpy as np

from okforest._typing import Floats, Ints, Outputs, Weights
from okforest.decode import Decoder
from okforest.embedding import Span
from okforest.engine import Trees
from okforest.metrics.losses import weights_r2

# What stands for the prediction of a row that every tree was grown on, by kind of output.
UNKNOWN: dict[str, Any] = {"f": np.nan, "i": -1, "u": 0, "O": None}


class OutOfBag(NamedTuple):
    """Weights, predictions and score of the training rows."""

    weights: Weights
    prediction: Outputs
    score: float


def out_of_bag(
    trees: Trees, leaves: Ints, span: Span, decoder: Decoder, sample_weight: Floats
) -> OutOfBag:
    """Return the out-of-bag estimates, given the leaves that training rows reach."""
    W = trees.weights(np.where(trees.are_members(), np.int32(-1), leaves))
    known = np.diff(W.indptr) > 0
    if not known.all():
        warn(
            f"{(~known).sum()} training rows were drawn for every tree and have no out-of-bag "
            "prediction; grow more trees.",
            stacklevel=4,
        )
    prediction = np.empty_like(span.outputs)
    prediction[~known] = UNKNOWN.get(span.outputs.dtype.kind, "")
    prediction[known] = decoder.decode(W[known], span)
    score = weights_r2(span, W[known], span.outputs[known], sample_weight[known])
    return OutOfBag(W, prediction, score)
