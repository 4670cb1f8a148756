"""Scores by groups of features, as bars."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from okforest.inspection._colours import BAR, LINE
from okforest.inspection._matplotlib import new_axes
from okforest.network._pairs import Kind
from okforest.network.evaluation import Metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_groups(
    evaluations: Mapping[str, Any],
    metric: Metric = "auc",
    kind: Kind = "with-unseen",
    *,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw how good predictions are from each group of features, best on top.

    Parameters
    ----------
    evaluations : dict of str to Evaluation
        Results of :func:`okforest.network.compare_groups`.
    metric : {"auc", "aupr"}, default="auc"
        What to draw. A line shows one standard deviation over folds to each side.
    kind : str, default="with-unseen"
        The kind of pairs.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    ax : matplotlib Axes
        The drawing.
    """
    values = {name: getattr(result.kinds[kind], metric) for name, result in evaluations.items()}
    names = sorted(values, key=lambda name: float(np.nanmean(values[name])))
    means = [float(np.nanmean(values[name])) for name in names]
    if ax is None:
        ax = new_axes(5.0, 0.9 + 0.4 * len(names))
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
