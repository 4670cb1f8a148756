"""Scores against the share of training links that were deleted."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from okforest.inspection._matplotlib import new_axes
from okforest.network._pairs import KINDS, TITLES
from okforest.network.evaluation import Metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_deletion(
    evaluations: Mapping[float, Any], metric: Metric = "auc", *, ax: "Axes | None" = None
) -> "Axes":
    """Draw how scores fall as links are deleted, for each kind of pairs.

    Parameters
    ----------
    evaluations : dict of float to Evaluation
        Results of :func:`okforest.network.compare_deletions`.
    metric : {"auc", "aupr"}, default="auc"
        What to draw, with bars of one standard deviation over folds.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    ax : matplotlib Axes
        The drawing.
    """
    if ax is None:
        ax = new_axes(5.0, 3.6)
    for kind in KINDS:
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
