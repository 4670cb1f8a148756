"""Growing trees and following them, on plain arrays."""

from okforest.engine.cpu import apply, grow, leaf_means, leaf_weights, pruning_path
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
    "grow",
    "leaf_means",
    "leaf_weights",
    "prune",
    "pruning_path",
]
