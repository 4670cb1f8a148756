"""Grow trees and follow them: the array-level front of the compiled core."""

from okforest.engine.growth import Rules, grow
from okforest.engine.leaf_weights import LeafWeights
from okforest.engine.pruning import prune, pruning_path
from okforest.engine.residuals import Leaves
from okforest.engine.trees import Trees

__all__ = ["LeafWeights", "Leaves", "Rules", "Trees", "grow", "prune", "pruning_path"]
