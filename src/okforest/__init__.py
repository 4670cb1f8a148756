"""okforest: trees and forests that predict anything that has a kernel."""

from importlib import import_module
from importlib.metadata import version
from types import ModuleType

from okforest import decode, kernels, metrics, persistence, weights
from okforest.models import (
    DirectionBase,
    OKBagging,
    OKBoost,
    OKEnsemble,
    OKExtraTrees,
    OKModel,
    OKNeighbors,
    OKRandomForest,
    OKRidge,
    OKTotallyRandomTrees,
    OKTree,
    PruningChoice,
    select_ccp_alpha,
    tune_decoder,
)
from okforest.persistence import describe, load, save

__version__ = version("okforest")

# Submodules that are imported when they are first used, as okforest.network for example.
_LAZY = (
    "dask",
    "datasets",
    "inspection",
    "network",
    "papers",
    "refit",
    "retrieval",
    "segments",
    "uncertainty",
)

__all__ = [
    "DirectionBase",
    "OKBagging",
    "OKBoost",
    "OKEnsemble",
    "OKExtraTrees",
    "OKModel",
    "OKNeighbors",
    "OKRandomForest",
    "OKRidge",
    "OKTotallyRandomTrees",
    "OKTree",
    "PruningChoice",
    "__version__",
    "decode",
    "describe",
    "kernels",
    "load",
    "metrics",
    "persistence",
    "save",
    "select_ccp_alpha",
    "tune_decoder",
    "weights",
]


def __getattr__(name: str) -> ModuleType:
    if name in _LAZY:
        return import_module(f"okforest.{name}")
    raise AttributeError(f"module 'okforest' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
