"""The rows of the tables: models of the papers by their names, and numbers as text."""

from typing import Any

import numpy as np
from sklearn.base import clone

from okforest import OKBagging, OKBoost, OKExtraTrees, OKTree
from okforest._utils.arrays import Floats
from okforest.kernels import Diffusion
from okforest.network import NetworkCompletion
from okforest.network.links import DEFAULT

TREES = ("single tree", "bagging", "extra-trees")
BOOSTED = ("OKBoost", "OKBoost, extra-trees")
LEARNING_RATE = 0.01
# Network completion: fully grown trees on exp(−L); the same with k(v, v) = 1, as the published
# losses in feature space suggest; and okforest's defaults.
SETTINGS = ("papers", "normalized", "okforest")


def make_trees(row: str, trees: int, **parameters: Any) -> Any:
    """Return a tree or a forest, fully grown; extra-trees try √p features at a node."""
    models = (OKTree(), OKBagging(trees), OKExtraTrees(trees))
    return dict(zip(TREES, models, strict=True))[row].set_params(**parameters)


def make_boosting(row: str, rounds: int, **parameters: Any) -> OKBoost:
    """Return boosting of trees with best splits, or with random splits on √p features."""
    model = OKBoost(rounds, learning_rate=LEARNING_RATE)
    if row == "OKBoost, extra-trees":
        model.set_params(splitter="random", max_features="sqrt")
    return model.set_params(**parameters)


def make_completion(row: str, setting: str, trees: int, seed: int) -> NetworkCompletion:
    """Return network completion in one of the SETTINGS; okforest's defaults are of extra-trees."""
    if setting == "okforest":
        forest = clone(DEFAULT).set_params(n_estimators=trees, random_state=seed)
        return NetworkCompletion(forest)
    model = make_trees(row, trees, random_state=seed)
    kernel = Diffusion(beta=1.0, normalize=setting == "normalized")
    return NetworkCompletion(model, kernel, normalize=0, known="predicted")


def count(n: int, noun: str) -> str:
    """Return a number and a noun in the singular or plural."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def mean_and_std(values: Floats, digits: int = 4) -> str:
    """Return the mean and the sample standard deviation, or the mean alone for one value."""
    if len(values) < 2:
        return f"{np.mean(values):.{digits}f}"
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1):.{digits}f}"


def published(value: float | tuple[float, float] | None, digits: int = 4) -> str:
    """Return a published mean, with its standard deviation if known; None gives an empty cell."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        return f"{value[0]:.{digits}f} ± {value[1]:.{digits}f}"
    return f"{value:.{digits}f}"
