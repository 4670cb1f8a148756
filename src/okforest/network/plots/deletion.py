"""Scores against the share of deleted training links."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from okforest._plotting import new_axes
from okforest.network._pairs import PAIR_KINDS, TITLES
from okforest.network.evaluation import Metric, check_evaluations, check_metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        The axes to draw on; by default those of a new figure.

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
