"""Networks: prediction of links from the features of vertices, and its evaluation.

Only the plots require matplotlib (the extra ``plot``).
"""

from okforest.network.baselines import InputSimilarity, PairClassifier
from okforest.network.bipartite import BipartiteCompletion, cross_validate_bipartite
from okforest.network.clusters import ClusterNetwork, VertexCluster, vertex_clusters
from okforest.network.comparison import (
    Comparison,
    compare_deletions,
    compare_groups,
    compare_links,
    format_table,
    group_importances,
)
from okforest.network.completion import NetworkCompletion, complete_kernel
from okforest.network.evaluation import Evaluation, KindScores, cross_validate_links
from okforest.network.links import LinkPredictor
from okforest.network.plots import plot_clusters, plot_curves, plot_deletion, plot_groups

__all__ = [
    "BipartiteCompletion",
    "ClusterNetwork",
    "Comparison",
    "Evaluation",
    "InputSimilarity",
    "KindScores",
    "LinkPredictor",
    "NetworkCompletion",
    "PairClassifier",
    "VertexCluster",
    "compare_deletions",
    "compare_groups",
    "compare_links",
    "complete_kernel",
    "cross_validate_bipartite",
    "cross_validate_links",
    "format_table",
    "group_importances",
    "plot_clusters",
    "plot_curves",
    "plot_deletion",
    "plot_groups",
    "vertex_clusters",
]
