"""How far predictions of segments are from the mean of the training outputs."""

import numpy as np

from okforest._typing import Floats
from okforest.kernels import Linear
from okforest.weights import Span, WeightMatrix

SHARE = 1e-12  # of a distance, which is a rounding error
EPS = float(np.finfo(np.float64).eps)


def distances_from_mean(span: Span, weights: WeightMatrix, object_weight: Floats) -> Floats:
    """Return ‖F − φ̄‖² of predictions, 0 where it is a rounding error.

    Explicit features are centred first: no digits are lost to a large mean.
    """
    share = object_weight / object_weight.sum()
    features = span.features
    if features is None and isinstance(span.kernel, Linear):  # more columns than outputs
        features = span.kernel.features(span.outputs)
    if features is None:
        mean = share[None, :]
        square, norms = span.squared_norms(mean)[0], span.squared_norms(weights)
        distances = norms - 2.0 * span.gram(weights, mean)[:, 0] + square
        return np.where(distances > SHARE * (norms + square), distances, 0.0)
    centred = features - share @ features
    centred -= share @ centred  # the first mean has the rounding error of the offset
    distances = ((weights @ centred) ** 2).sum(axis=1)
    size, offset = (centred**2).sum(axis=1).max(), (features**2).sum(axis=1).max()
    rounding = SHARE**2 * size + (4 * EPS) ** 2 * offset
    return np.where(distances > rounding, distances, 0.0)
