"""okforest: trees and forests that predict anything that has a kernel.

Everything is imported when it is first used: the command line shows its help without NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
        ParameterChoice,
        select_ccp_alpha,
        select_power,
        tune_decoder,
    )
    from okforest.persistence import describe, load, save

    __version__: str

_MODULES = (
    "dask",
    "datasets",
    "decode",
    "embedding",
    "engine",
    "inspection",
    "kernels",
    "metrics",
    "models",
    "network",
    "persistence",
    "refit",
    "retrieval",
    "segments",
    "survival",
    "uncertainty",
    "weights",
)
_EXPORTING = ("models", "persistence")  # the models come first: files hold them

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
    "ParameterChoice",
    "__version__",
    "decode",
    "describe",
    "kernels",
    "load",
    "metrics",
    "persistence",
    "save",
    "select_ccp_alpha",
    "select_power",
    "tune_decoder",
    "weights",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"okforest.{name}")
    if name == "__version__":
        value: Any = import_module("importlib.metadata").version("okforest")
    elif name in __all__:
        exporting = (import_module(f"okforest.{module}") for module in _EXPORTING)
        value = next(getattr(module, name) for module in exporting if hasattr(module, name))
    else:
        raise AttributeError(f"module 'okforest' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
