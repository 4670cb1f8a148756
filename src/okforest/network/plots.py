"""Plots of networks; they require matplotlib (the extra ``plot``)."""

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from okforest._utils.plotting import BAR, LINE, new_axes, shade
from okforest.network.clusters import ClusterNetwork
from okforest.network.evaluation import Metric, check_evaluations, check_metric, scores_of
from okforest.network.graphs import PAIR_KINDS, TITLES, PairKind

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def literal(name: object) -> str:
    """Return a name as text that matplotlib does not take for mathematics."""
    return str(name).replace("$", r"\$")


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
        The axes to draw on; by default the axes of a new figure.

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


def plot_curves(
    evaluations: Mapping[str, Any],
    curve: Literal["roc", "pr"] = "roc",
    kind: PairKind = "with-new",
    *,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot the averaged curves of models, each with a band of ± one standard deviation.

    Parameters
    ----------
    evaluations : dict of str to Evaluation
        Results of :func:`okforest.network.cross_validate_links`, by name.
    curve : {"roc", "pr"}, default="roc"
        The curve: ROC, or precision against recall.
    kind : str, default="with-new"
        The kind of pair.
    ax : matplotlib Axes, optional
        The axes to draw on; by default the axes of a new figure.

    Returns
    -------
    ax : matplotlib Axes
        The axes with the plot.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.network import InputSimilarity, cross_validate_links, plot_curves
    >>> X = np.random.default_rng(0).normal(size=(40, 1))
    >>> result = cross_validate_links(InputSimilarity(), X, np.abs(X - X.T) < 0.3, cv=4)
    >>> ax = plot_curves({"similarity": result})
    """
    check_evaluations(evaluations)
    if curve not in ("roc", "pr"):
        raise ValueError(f"curve={curve!r}; use 'roc' or 'pr'.")
    by_name = {name: scores_of(result, kind) for name, result in evaluations.items()}
    ax = new_axes(ax, (5.0, 4.6))
    for name, scores in by_name.items():
        drawn = scores.roc if curve == "roc" else scores.pr
        area = np.nanmean(scores.auc if curve == "roc" else scores.aupr)
        mean, std = drawn.mean, drawn.std
        (line,) = ax.plot(drawn.x, mean, lw=1.6, label=f"{literal(name)}, {area:.3f}")
        low, high = np.maximum(mean - std, 0.0), np.minimum(mean + std, 1.0)
        ax.fill_between(drawn.x, low, high, color=line.get_color(), alpha=0.15, lw=0)
    if curve == "roc":
        ax.plot([0, 1], [0, 1], color="gray", lw=0.8, ls=":")
        ax.set(xlabel="false positive rate", ylabel="true positive rate")
    else:
        chance = np.nansum(scores.n_links) / np.nansum(scores.n_pairs)
        ax.axhline(chance, color="gray", lw=0.8, ls=":")
        ax.set(xlabel="recall", ylabel="precision")
    ax.set(xlim=(0, 1), ylim=(0, 1.02), title=TITLES[kind])
    ax.legend(
        title="AUC" if curve == "roc" else "AUPR",
        loc="lower right" if curve == "roc" else "upper right",
        frameon=False,
        fontsize="small",
    )
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_deletion(
    evaluations: Mapping[float, Any], metric: Metric = "auc", *, ax: "Axes | None" = None
) -> "Axes":
    """Plot scores against the share of deleted links, for each kind of pair.

    Parameters
    ----------
    evaluations : dict of float to Evaluation
        Results of :func:`okforest.network.compare_deletions`.
    metric : {"auc", "aupr"}, default="auc"
        The score; error bars show ± one standard deviation over folds.
    ax : matplotlib Axes, optional
        The axes to draw on; by default the axes of a new figure.

    Returns
    -------
    ax : matplotlib Axes
        The axes with the plot.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.network import InputSimilarity, compare_deletions, plot_deletion
    >>> X = np.random.default_rng(0).normal(size=(40, 1))
    >>> links = np.abs(X - X.T) < 0.3
    >>> ax = plot_deletion(compare_deletions(InputSimilarity(), X, links, shares=(0.0, 0.5), cv=3))
    """
    check_evaluations(evaluations)
    check_metric(metric)
    ax = new_axes(ax, (5.0, 3.6))
    for kind in PAIR_KINDS:
        shares = [share for share, result in evaluations.items() if kind in result.kinds]
        folds = [getattr(evaluations[share].kinds[kind], metric) for share in shares]
        if folds:
            ax.errorbar(
                [100 * share for share in shares],
                [np.nanmean(fold) for fold in folds],
                yerr=[np.nanstd(fold) for fold in folds],
                marker="o",
                capsize=3,
                label=TITLES[kind],
            )
    ax.set(xlabel="training links deleted (%)", ylabel=metric.upper())
    ax.legend(frameon=False, fontsize="small")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_groups(
    evaluations: Mapping[str, Any],
    metric: Metric = "auc",
    kind: PairKind = "with-new",
    *,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot the scores of predictions from each group of features, best on top.

    Parameters
    ----------
    evaluations : dict of str to Evaluation
        Results of :func:`okforest.network.compare_groups`.
    metric : {"auc", "aupr"}, default="auc"
        The score; error bars show ± one standard deviation over folds.
    kind : str, default="with-new"
        The kind of pair.
    ax : matplotlib Axes, optional
        The axes to draw on; by default the axes of a new figure.

    Returns
    -------
    ax : matplotlib Axes
        The axes with the plot.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.network import InputSimilarity, compare_groups, plot_groups
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> links = np.abs(X[:, 0] - X[:, :1]) < 0.3
    >>> groups = {"relevant": [0], "noise": [1]}
    >>> ax = plot_groups(compare_groups(InputSimilarity(), X, links, groups, cv=3))
    """
    check_evaluations(evaluations)
    check_metric(metric)
    values = {
        literal(name): getattr(scores_of(result, kind), metric)
        for name, result in evaluations.items()
    }
    names = sorted(values, key=lambda name: float(np.nanmean(values[name])))
    means = [float(np.nanmean(values[name])) for name in names]
    ax = new_axes(ax, (5.0, 0.9 + 0.4 * len(names)))
    ax.barh(names, means, height=0.65, color=BAR)
    spread = [float(np.nanstd(values[name])) for name in names]
    ax.errorbar(means, names, xerr=spread, fmt="none", ecolor=LINE, lw=1.2)
    start = 0.5 if metric == "auc" else 0.0
    for name, mean, std in zip(names, means, spread, strict=True):
        ax.annotate(
            f"{mean:.3f}",
            (mean + std, name),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
        )
    end = max(m + s for m, s in zip(means, spread, strict=True))
    left = min(start, *means) if len(means) > 1 else start
    ax.set_xlim(left, end + 0.12 * (end - left))
    ax.set_xlabel("AUC (0.5 is chance)" if metric == "auc" else "AUPR")
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


__all__ = ["plot_clusters", "plot_curves", "plot_deletion", "plot_groups"]
