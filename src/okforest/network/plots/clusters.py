"""Clusters of vertices drawn as a network, with the rules that define them."""

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from okforest.inspection._colours import LINE, shade
from okforest.inspection._matplotlib import new_axes
from okforest.network.clusters import ClusterNetwork

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABEL_WIDTH = 30  # characters in a line of a rule
# Of discs, whose centres are on a circle of radius 1: a number must fit into the smallest.
SMALLEST, LARGEST = 0.085, 0.19
THICKEST = 6.0  # line, in points


def plot_clusters(
    network: ClusterNetwork, *, level: float = 0.01, ax: "Axes | None" = None
) -> "Axes":
    """Draw clusters of vertices on a circle, with lines between those that are often linked.

    A disc says how many vertices its cluster has, and is the larger, the more (but not too small).
    It is the bluer, the more of its pairs are linked, and has a thick rim if these are more than
    chance. A line joins two clusters with more links than chance, and is the thicker, the larger
    their share of linked pairs. Beside a disc is the rule that defines the cluster.

    Parameters
    ----------
    network : ClusterNetwork
        What :func:`okforest.network.vertex_clusters` returns.
    level : float, default=0.01
        The chance of any line or thick rim in a random network.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    ax : matplotlib Axes
        The drawing.
    """
    n = len(network.clusters)
    if ax is None:
        ax = new_axes(10.0, 6.5)
    from matplotlib.patches import Circle

    angles = np.pi / 2 - 2 * np.pi * (np.arange(n) + 0.5) / n  # none on top, where a title is
    places = np.column_stack([np.cos(angles), np.sin(angles)])
    sizes = np.array([len(cluster.members) for cluster in network.clusters], dtype=np.float64)
    radii = np.maximum(SMALLEST, LARGEST * np.sqrt(sizes / sizes.max()))
    density = np.divide(network.links, np.maximum(network.pairs, 1))
    enriched = network.enriched(level)
    most = max((density[i, j] for i, j in enriched if i != j), default=1.0)
    for i, j in enriched:
        if i != j:
            ax.plot(*places[[i, j]].T, color=LINE, lw=THICKEST * density[i, j] / most, zorder=1)
    inside = np.diagonal(density)
    for i, (x, y) in enumerate(places):
        colour = shade(float(inside[i] / inside.max()) if inside.max() > 0 else 0.0)
        rim = 2.5 if (i, i) in enriched else 0.8
        ax.add_patch(Circle((x, y), radii[i], fc=colour, ec=LINE, lw=rim, zorder=2))
        ax.text(x, y, f"{int(sizes[i])}", ha="center", va="center", fontsize="small", zorder=3)
        _write_rule(ax, str(network.clusters[i].rule), x, y, radii[i])
    ax.set(xlim=(-2.6, 2.6), ylim=(-1.5, 1.3), aspect="equal")
    ax.axis("off")
    return ax


def _write_rule(ax: "Axes", rule: str, x: float, y: float, radius: float) -> None:
    text = textwrap.fill(rule, LABEL_WIDTH)
    reach = radius + 0.05
    side = "center" if abs(x) < 0.2 else ("left" if x > 0 else "right")
    height = "center" if side != "center" else ("bottom" if y > 0 else "top")
    ax.text(
        x + (0 if side == "center" else np.sign(x) * reach),
        y + (0 if side != "center" else np.sign(y) * reach),
        text,
        ha=side,
        va=height,
        fontsize="x-small",
        zorder=3,
    )
