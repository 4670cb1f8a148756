"""Scores of groups of features, as bars."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from okforest._plotting import BAR, LINE, new_axes
from okforest.network._pairs import PairKind
from okforest.network.evaluation import Metric, check_evaluations, check_metric, scores_of
from okforest.network.plots._text import literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        The axes to draw on; by default those of a new figure.

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
