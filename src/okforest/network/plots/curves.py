"""ROC and precision–recall curves, averaged over folds, with their bands."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from okforest.inspection._matplotlib import new_axes
from okforest.network._pairs import TITLES, Kind

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_curves(
    evaluations: Mapping[str, Any],
    curve: Literal["roc", "pr"] = "roc",
    kind: Kind = "with-unseen",
    *,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the averaged curves of models, each with a band of one standard deviation.

    Parameters
    ----------
    evaluations : dict of str to Evaluation
        Results of :func:`okforest.network.cross_validate_links`, by name.
    curve : {"roc", "pr"}, default="roc"
        Which curve: ROC, or precision and recall.
    kind : str, default="with-unseen"
        The kind of pairs.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    ax : matplotlib Axes
        The drawing.
    """
    if not isinstance(evaluations, Mapping):
        raise TypeError(
            f"evaluations is of type {type(evaluations).__name__}; pass a dict of results "
            "by name, such as {'extra-trees': evaluation}."
        )
    if ax is None:
        ax = new_axes(5.0, 4.6)
    for name, evaluation in evaluations.items():
        scores = evaluation.kinds[kind]
        drawn = scores.roc if curve == "roc" else scores.pr
        area = np.nanmean(scores.auc if curve == "roc" else scores.aupr)
        mean, std = drawn.mean, drawn.std
        (line,) = ax.plot(drawn.x, mean, lw=1.6, label=f"{name}, {area:.3f}")
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
