"""Plots of networks; they require matplotlib (the extra ``plot``)."""

from okforest.network.plots.clusters import plot_clusters
from okforest.network.plots.curves import plot_curves
from okforest.network.plots.deletion import plot_deletion
from okforest.network.plots.groups import plot_groups

__all__ = ["plot_clusters", "plot_curves", "plot_deletion", "plot_groups"]
