"""ROC and precision–recall curves, averaged over folds."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from okforest._plotting import new_axes
from okforest.network._pairs import TITLES, PairKind
from okforest.network.evaluation import check_evaluations, scores_of
from okforest.network.plots._text import literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        The axes to draw on; by default those of a new figure.

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
