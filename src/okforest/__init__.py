"""okforest: trees and forests that predict anything that has a kernel."""

from importlib.metadata import version

from okforest import decode, kernels, metrics, persistence
from okforest.models import (
    DirectionBase,
    OKBagging,
    OKBoost,
    OKExtraTrees,
    OKNeighbors,
    OKRandomForest,
    OKRidge,
    OKTotallyRandomTrees,
    OKTree,
    select_ccp_alpha,
)
from okforest.persistence import load, save

__version__ = version("okforest")

__all__ = [
    "DirectionBase",
    "OKBagging",
    "OKBoost",
    "OKExtraTrees",
    "OKNeighbors",
    "OKRandomForest",
    "OKRidge",
    "OKTotallyRandomTrees",
    "OKTree",
    "__version__",
    "decode",
    "kernels",
    "load",
    "metrics",
    "persistence",
    "save",
    "select_ccp_alpha",
]
