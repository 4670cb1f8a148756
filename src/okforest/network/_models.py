"""A model of okforest, or a pipeline that ends with one: getting at the model itself."""

from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from okforest.kernels import OutputKernel
from okforest.models import OKExtraTrees
from okforest.models._base import Averager
from okforest.models._trees import TreeModel

# What experiments on networks found good: docs/networks.md.
DEFAULT = OKExtraTrees(100, max_features=0.25, min_samples_split=5)


def final_model(estimator: Any) -> Any:
    """Return the model at the end of a pipeline, or the model itself."""
    while isinstance(estimator, Pipeline):
        estimator = estimator[-1]
    return estimator


def new_model(estimator: Any, kernel: OutputKernel, scheme: str = "convolve") -> Any:
    """Return a clone of an estimator, or the default, with this output kernel."""
    model = clone(DEFAULT if estimator is None else estimator)
    final = final_model(model)
    if not isinstance(final, Averager):
        raise TypeError(
            f"estimator is a {type(final).__name__}; use a model of okforest, such as "
            "OKExtraTrees(), or a pipeline that ends with one."
        )
    if scheme == "average" and not isinstance(final, TreeModel):
        raise ValueError(f"scheme='average' is for trees, not {type(final).__name__}.")
    final.set_params(kernel=kernel)
    return model
