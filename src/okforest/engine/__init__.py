"""Growing trees, finding the leaves of inputs, and predicting from them, on plain arrays."""

from okforest.engine.cpu import (
    FoundPostings,
    LeafVectors,
    are_byte_trees,
    count_members,
    cut_subwindows,
    draw,
    draw_squares,
    find_nearest,
    grow,
    leaf_means,
    leaf_vectors,
    leaf_weights,
    paste_subwindows,
    prune,
    pruning_path,
    reach_leaves,
)
from okforest.engine.devices import (
    DeviceName,
    apply,
    grow_function,
    prediction_device,
    start_rounds,
)
from okforest.engine.plan import GrowthPlan, GrowthRules
from okforest.engine.trees import LeafPartition, Trees

__all__ = [
    "DeviceName",
    "FoundPostings",
    "GrowthPlan",
    "GrowthRules",
    "LeafPartition",
    "LeafVectors",
    "Trees",
    "apply",
    "are_byte_trees",
    "count_members",
    "cut_subwindows",
    "draw",
    "draw_squares",
    "find_nearest",
    "grow",
    "grow_function",
    "leaf_means",
    "leaf_vectors",
    "leaf_weights",
    "paste_subwindows",
    "prediction_device",
    "prune",
    "pruning_path",
    "reach_leaves",
    "start_rounds",
]
