"""The models: maps from inputs to weights over training outputs."""

from okforest.models.base import OKModel
from okforest.models.boosting import DirectionBase, OKBoost
from okforest.models.ensemble import OKEnsemble
from okforest.models.forests import (
    OKBagging,
    OKExtraTrees,
    OKRandomForest,
    OKTotallyRandomTrees,
)
from okforest.models.neighbors import OKNeighbors
from okforest.models.ridge import OKRidge
from okforest.models.tree import OKTree
from okforest.models.tuning import ParameterChoice, select_ccp_alpha, select_power, tune_decoder

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
    "select_ccp_alpha",
    "select_power",
    "tune_decoder",
]
