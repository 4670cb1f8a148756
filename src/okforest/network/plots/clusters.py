"""Clusters of vertices plotted as a network, with the rules that define them."""

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from okforest._plotting import LINE, new_axes, shade
from okforest.network.clusters import ClusterNetwork
from okforest.network.plots._text import literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABEL_WIDTH = 30  # characters per line of a rule
# Radii of discs whose centres lie on a circle of radius 1; a number must fit into the smallest.
SMALLEST, LARGEST = 0.085, 0.19
THICKEST = 6.0  # width of a line, in points


def plot_clusters(
    network: ClusterNetwork, *, level: float = 0.01, ax: "Axes | None" = None
) -> "Axes":
    """Plot clusters of vertices on a circle, with lines between those that are often linked.

    Each disc is a cluster, with its number of vertices inside and its rule beside it. Larger discs
    have more vertices; darker blue means a larger share of linked pairs, and a thick rim more links
    within the cluster than expected by chance. A line joins two clusters with more links between
    them than expected by chance; thicker lines mean a larger share of linked pairs.

    Parameters
    ----------
    network : ClusterNetwork
        The result of :func:`okforest.network.vertex_clusters`.
    level : float, default=0.01
        The probability of any line or thick rim in a random network.
    ax : matplotlib Axes, optional
        The axes to draw on; by default those of a new figure.

    Returns
    -------
    ax : matplotlib Axes
        The axes with the plot.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest import OKTree
    >>> from okforest.network import NetworkCompletion, plot_clusters, vertex_clusters
    >>> group = np.arange(20) % 2
    >>> links = (group[:, None] == group) & ~np.eye(20, dtype=bool)
    >>> tree = OKTree(max_leaf_nodes=2, random_state=0)
    >>> network = vertex_clusters(NetworkCompletion(tree).fit(group[:, None].astype(float), links))
    >>> ax = plot_clusters(network)
    """
    if not isinstance(network, ClusterNetwork):
        raise TypeError(
            f"network is of type {type(network).__name__}; pass the result of vertex_clusters."
        )
    n = len(network.clusters)
    ax = new_axes(ax, (10.0, 6.5))
    from matplotlib.patches import Circle

    angles = np.pi / 2 - 2 * np.pi * (np.arange(n) + 0.5) / n  # none at the top, next to the title
    centres = np.column_stack([np.cos(angles), np.sin(angles)])
    sizes = np.array([len(cluster.members) for cluster in network.clusters], dtype=np.float64)
    radii = np.maximum(SMALLEST, LARGEST * np.sqrt(sizes / sizes.max()))
    density = np.divide(network.links, np.maximum(network.pairs, 1))
    enriched = network.enriched(level)
    most = max((density[i, j] for i, j in enriched if i != j), default=1.0)
    for i, j in enriched:
        if i != j:
            ax.plot(*centres[[i, j]].T, color=LINE, lw=THICKEST * density[i, j] / most, zorder=1)
    inside = np.diagonal(density)
    for i, (x, y) in enumerate(centres):
        colour = shade(float(inside[i] / inside.max()) if inside.max() > 0 else 0.0)
        rim = 2.5 if (i, i) in enriched else 0.8
        ax.add_patch(Circle((x, y), radii[i], fc=colour, ec=LINE, lw=rim, zorder=2))
        ax.text(x, y, f"{int(sizes[i])}", ha="center", va="center", fontsize="small", zorder=3)
        _write_rule(ax, str(network.clusters[i].rule), x, y, radii[i])
    ax.set(xlim=(-2.6, 2.6), ylim=(-1.5, 1.3), aspect="equal")
    ax.axis("off")
    return ax


def _write_rule(ax: "Axes", rule: str, x: float, y: float, radius: float) -> None:
    text = textwrap.fill(literal(rule), LABEL_WIDTH)
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
