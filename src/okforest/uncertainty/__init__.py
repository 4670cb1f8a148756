"""How sure a prediction is: distributions from its weights, and sets with a known coverage.

The weights of a prediction are a distribution over the training outputs. Variance, entropy,
probabilities, quantiles and bands follow from them, without a guarantee. Conformal prediction adds
one: calibrated on rows that a model was not fitted to, :class:`ConformalSets` and
:class:`ConformalIntervals` contain the true output with a given probability, whatever the model.

Weights of boosting and ridge regression may be negative; probabilities and quantiles that follow
from them are within the possible range.
"""

from okforest.uncertainty.conformal_intervals import ConformalIntervals
from okforest.uncertainty.conformal_sets import ConformalSets, PredictionSets
from okforest.uncertainty.distributions import (
    LabelProbabilities,
    OutputProbabilities,
    bands,
    entropy,
    intervals,
    marginals,
    probabilities,
    quantiles,
    variance,
)

__all__ = [
    "ConformalIntervals",
    "ConformalSets",
    "LabelProbabilities",
    "OutputProbabilities",
    "PredictionSets",
    "bands",
    "entropy",
    "intervals",
    "marginals",
    "probabilities",
    "quantiles",
    "variance",
]
