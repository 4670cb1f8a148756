"""Inspecting models: trees as text, figures, rules and clusters; importances; curves.

Figures need matplotlib (the extra ``plot``); nothing else here does.
"""

from okforest.inspection.clusters import Cluster, leaf_clusters
from okforest.inspection.conditions import Condition
from okforest.inspection.drawing import plot_tree
from okforest.inspection.graphviz import export_graphviz
from okforest.inspection.importances import plot_importances
from okforest.inspection.largest_weights import prototypes
from okforest.inspection.learning_curves import plot_learning_curve
from okforest.inspection.rules import Rule, leaf_rules
from okforest.inspection.survival import plot_calibration, plot_survival
from okforest.inspection.text import export_text

__all__ = [
    "Cluster",
    "Condition",
    "Rule",
    "export_graphviz",
    "export_text",
    "leaf_clusters",
    "leaf_rules",
    "plot_calibration",
    "plot_importances",
    "plot_learning_curve",
    "plot_survival",
    "plot_tree",
    "prototypes",
]
