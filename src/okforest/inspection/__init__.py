"""Inspecting models: trees as text, figures, rules and clusters; importances; curves.

Figures need matplotlib (the extra ``plot``); nothing else here does.
"""

from okforest.inspection.drawing import export_graphviz, plot_tree
from okforest.inspection.plots import plot_importances, plot_learning_curve
from okforest.inspection.prototypes import prototypes
from okforest.inspection.rules import Cluster, Rule, export_text, leaf_clusters, leaf_rules
from okforest.inspection.tree_view import Condition

__all__ = [
    "Cluster",
    "Condition",
    "Rule",
    "export_graphviz",
    "export_text",
    "leaf_clusters",
    "leaf_rules",
    "plot_importances",
    "plot_learning_curve",
    "plot_tree",
    "prototypes",
]
