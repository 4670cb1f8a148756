"""The predictions of a model, as weights over its training outputs."""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from okforest._utils.arrays import Floats
from okforest.metrics.losses import unwrap
from okforest.weights import Span, WeightMatrix, as_weights


class Predictions(NamedTuple):
    """Weights over training outputs, and the span of these."""

    span: Span
    W: WeightMatrix

    def vectors(self) -> Floats:
        """Return the training outputs as vectors, of shape (n_train, q), or raise a ValueError."""
        outputs = self.span.outputs
        if outputs.dtype.kind != "f" or not self.span.kernel.numeric:
            raise ValueError(
                f"quantiles, intervals and bands need numbers or vectors as outputs; the kernel is "
                f"of type {type(self.span.kernel).__name__}. For other outputs, use ConformalSets."
            )
        return outputs.reshape(len(outputs), -1)


def moments(W: WeightMatrix, values: Floats) -> tuple[Floats, Floats]:
    """Return F = Σ_i w_i v_i and Σ_i w_i (v_i − F)², coordinate by coordinate.

    Values are centred first, so that no digits are lost to a large mean. Weights need not sum to
    one.
    """
    origin = values.mean(axis=0)
    centred = values - origin
    total = W @ np.ones((len(values), 1))
    sums = W @ centred
    means = sums + (total - 1.0) * origin  # F, centred
    squares = W @ centred**2 - 2.0 * sums * means + total * means**2
    return means + origin, np.maximum(squares, 0.0)


def spread_around(means: Floats, predicted: Predictions) -> Floats:
    """Return Σ_i |w_i| (v_i − F)² / Σ_i |w_i|, coordinate by coordinate: a scale for errors.

    For non-negative weights of sum one this is the variance. The signed sum Σ_i w_i (v_i − F)² can
    be zero or negative, and is then not a scale. Where a weight is negative, the mean over all
    coordinates is returned for each: these weights reach far beyond similar outputs, and where a
    curve varies among all outputs is not where its prediction errs.
    """
    values = predicted.vectors()
    origin = values.mean(axis=0)
    centred = values - origin
    result = np.empty_like(means)
    for rows in predicted.span.blocks(len(means), 2 * len(values)):
        entries: Any = predicted.W[rows].entries()
        signed = np.asarray((entries < 0).sum(axis=1)).ravel() > 0
        weights = abs(entries)
        total = np.asarray(weights.sum(axis=1)).reshape(-1, 1)
        total[total == 0] = 1.0
        own = means[rows] - origin
        parts = weights @ centred**2 - 2.0 * (weights @ centred) * own
        spread = parts / total + own**2
        spread[signed] = spread[signed].mean(axis=1, keepdims=True)
        result[rows] = spread
    return np.maximum(result, 0.0)


def predictions(model: Any, X: Any) -> Predictions:
    """Return the predictions of a model, or of a pipeline that ends with one."""
    model, X = unwrap(model, X)
    if not hasattr(model, "weight_matrix") or not hasattr(type(model), "span_"):
        raise TypeError(
            f"uncertainty is computed from the weights of a model of okforest, such as "
            f"OKRandomForest; got {type(model).__name__}."
        )
    return Predictions(model.span_, as_weights(model.weight_matrix(X)))


def check_coverage(coverage: Any) -> float:
    """Return a coverage between 0 and 1."""
    if not isinstance(coverage, Real) or not 0 < float(coverage) < 1:
        raise ValueError(f"coverage={coverage!r}; use a number between 0 and 1, such as 0.9.")
    return float(coverage)
