"""Access to the model of okforest inside an estimator, which may be a pipeline."""

from collections.abc import Sequence
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from okforest.kernels import OutputKernel
from okforest.metrics.losses import unwrap
from okforest.models import OKExtraTrees
from okforest.models._tree_model import TreeModel
from okforest.models.base import OKModel
from okforest.weights import WeightMatrix

# Chosen by the experiments in docs/results_networks.md.
DEFAULT = OKExtraTrees(100, max_features=0.25, min_samples_split=5)


def final_model(estimator: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself."""
    while isinstance(estimator, Pipeline):
        estimator = estimator[-1]
    return estimator


def new_model(estimator: Any, kernel: OutputKernel, scheme: str = "convolve") -> Any:
    """Return a clone of an estimator (by default DEFAULT) with the given output kernel."""
    estimator = DEFAULT if estimator is None else estimator
    final = final_model(estimator)
    if not isinstance(final, OKModel):
        kind = f"the class {final.__name__}" if isinstance(final, type) else repr(final)
        raise TypeError(
            f"estimator is {kind}; use a model of okforest, such as OKExtraTrees(), or a pipeline "
            "that ends with one."
        )
    if scheme == "average" and not isinstance(final, TreeModel):
        raise ValueError(
            f"scheme='average' requires trees, and estimator is {final!r}; use scheme='convolve'."
        )
    model = clone(estimator)
    final_model(model).set_params(kernel=kernel)
    return model


def predicted_weights(estimator: Any, X: Any) -> WeightMatrix:
    """Return the weights over training outputs that an estimator predicts."""
    model, X = unwrap(estimator, X)
    return model.weight_matrix(X)


def predicted_weights_by_tree(estimator: Any, X: Any) -> Sequence[WeightMatrix]:
    """Return the weights over training outputs that each tree of an estimator predicts."""
    model, X = unwrap(estimator, X)
    return model.tree_weight_matrices(X)
