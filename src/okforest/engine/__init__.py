"""Growing trees and following them, on plain arrays."""

from okforest.engine.cpu import (
    apply,
    cut_subwindows,
    grow,
    leaf_means,
    leaf_weights,
    paste_subwindows,
    pruning_path,
)
from okforest.engine.drawing import draw
from okforest.engine.leaf_partition import LeafPartition
from okforest.engine.plan import GrowthPlan, GrowthRules
from okforest.engine.pruning import prune
from okforest.engine.trees import Trees

__all__ = [
    "GrowthPlan",
    "GrowthRules",
    "LeafPartition",
    "Trees",
    "apply",
    "cut_subwindows",
    "draw",
    "grow",
    "leaf_means",
    "leaf_weights",
    "paste_subwindows",
    "prune",
    "pruning_path",
]
