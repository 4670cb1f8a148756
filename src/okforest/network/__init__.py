"""Networks: links predicted from features of vertices, and how good the predictions are.

Figures need matplotlib (``pip install okforest[plot]``); nothing else here does.
"""

from okforest.network._base import LinkPredictor
from okforest.network.baselines import InputSimilarity, PairClassifier
from okforest.network.completion import NetworkCompletion
from okforest.network.evaluation import (
    Comparison,
    Evaluation,
    KindScores,
    compare_links,
    cross_validate_links,
    delete_links,
    format_table,
)
from okforest.network.groups import compare_groups, group_importances
from okforest.network.kernel import complete_kernel
from okforest.network.plots import plot_curves, plot_deletion, plot_groups

__all__ = [
    "Comparison",
    "Evaluation",
    "InputSimilarity",
    "KindScores",
    "LinkPredictor",
    "NetworkCompletion",
    "PairClassifier",
    "compare_groups",
    "compare_links",
    "complete_kernel",
    "cross_validate_links",
    "delete_links",
    "format_table",
    "group_importances",
    "plot_curves",
    "plot_deletion",
    "plot_groups",
]
