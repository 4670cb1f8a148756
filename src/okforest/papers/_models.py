"""The models of the papers, by the names that tables have for them."""

from typing import Any

from sklearn.base import clone

from okforest import OKBagging, OKBoost, OKExtraTrees, OKTree
from okforest.kernels import Diffusion
from okforest.network import NetworkCompletion
from okforest.network._models import DEFAULT

TREES = ("single tree", "bagging", "extra-trees")
BOOSTED = ("OKBoost", "OKBoost, extra-trees")
RATE = 0.01  # the learning rate of tables
SETTINGS = ("papers", "okforest")  # of completion: theirs, and our defaults


def grown(row: str, trees: int, **parameters: Any) -> Any:
    """Return a tree, or a forest of so many; full-grown, and extra-trees with K = √p."""
    models = (OKTree(), OKBagging(trees), OKExtraTrees(trees))
    return dict(zip(TREES, models, strict=True))[row].set_params(**parameters)


def boosted(row: str, rounds: int, **parameters: Any) -> OKBoost:
    """Return boosting of trees with exact splits, or with those of extra-trees, K = √p."""
    model = OKBoost(rounds, learning_rate=RATE)
    if row == "OKBoost, extra-trees":
        model.set_params(splitter="random", max_features="sqrt")
    return model.set_params(**parameters)


def completion(row: str, setting: str, trees: int, seed: int) -> NetworkCompletion:
    """Return a model of links: as in the papers, or extra-trees with the defaults of okforest."""
    if setting == "okforest":
        forest = clone(DEFAULT).set_params(n_estimators=trees, random_state=seed)
        return NetworkCompletion(forest)
    model = grown(row, trees, random_state=seed)
    return NetworkCompletion(model, Diffusion(beta=1.0), normalize=0, seen="predicted")
