"""Whether the parts of a loaded model fit each other."""

from typing import Any

import numpy as np

from okforest._categories import category_counts
from okforest.engine import Trees
from okforest.engine.validity import check_trees
from okforest.kernels import OutputKernel


def check_model(model: Any) -> None:
    """Raise a ValueError that says what is wrong unless a model can predict without danger."""
    trees, n_features = model.trees_, model.n_features_in_
    if not isinstance(trees, Trees):
        raise ValueError("trees_ are no trees")
    if type(n_features) is not int or n_features < 1:
        raise ValueError(f"n_features_in_ is {n_features!r}")
    check_trees(trees, n_features)
    for name, length in (
        ("outputs_", len(trees.row_weight)),
        ("feature_names_in_", n_features),
        ("categories_", n_features),
        ("has_missing_", n_features),
    ):
        _check_length(model, name, length)
    if hasattr(model, "outputs_") and not isinstance(model.outputs_, np.ndarray):
        raise ValueError("outputs_ is no array")
    if hasattr(model, "outputs_") and not isinstance(model.kernel_, OutputKernel):
        raise ValueError("kernel_ is no kernel")
    if category_counts(model.categories_).tolist() != trees.n_categories.tolist():
        raise ValueError("categories_ and the trees' n_categories differ")


def _check_length(model: Any, name: str, expected: int) -> None:
    if hasattr(model, name) and len(getattr(model, name)) != expected:
        raise ValueError(f"{name} has {len(getattr(model, name))} entries, not {expected}")
