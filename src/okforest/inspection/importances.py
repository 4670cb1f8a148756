"""The importances of features as bars."""

from collections import Counter
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from okforest._typing import Floats
from okforest.inspection._colours import BAR, LINE
from okforest.inspection._matplotlib import new_axes
from okforest.inspection._reading import check_model, check_names, check_outputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_importances(
    model: Any,
    *,
    top: int = 20,
    feature_names: Sequence[str] | None = None,
    groups: Mapping[str, Sequence[int | str]] | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the importances of features, the largest on top.

    A bar is a feature's share of the total variance reduction. In a forest a line shows one
    standard deviation of the trees' own shares to each side, ending at zero.

    Parameters
    ----------
    model : estimator
        A fitted tree or forest of okforest, or OKBoost.
    top : int, default=20
        Most bars to show.
    feature_names : sequence of str, optional
        Names of the features; by default those seen in fitting, or x0, x1, …
    groups : dict of str to features, optional
        Features, by name or position, that share a bar (the columns of one variable, say); others
        keep their own.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    ax : matplotlib Axes
        The drawing.

    See Also
    --------
    sklearn.inspection.permutation_importance : Importances for the score, on data of one's choice.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from okforest import OKRandomForest
    >>> from okforest.inspection import plot_importances
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = OKRandomForest(n_estimators=20, random_state=0).fit(X, y)
    >>> blood = {"blood serum": ["s1", "s2", "s3", "s4", "s5", "s6"]}
    >>> ax = plot_importances(forest, groups=blood)
    """
    check_model(model, boosted=True)
    check_outputs(model, "an importance")
    if not isinstance(top, Integral) or top < 1:
        raise ValueError(f"top={top!r}; use a positive integer.")
    labels, membership = _bars(check_names(model, feature_names), groups or {})
    importances = model.feature_importances_ @ membership
    spread = (_importances_by_tree(model) @ membership).std(axis=0)
    shown = np.argsort(-importances, kind="stable")[:top]
    if ax is None:
        ax = new_axes(6.0, 0.9 + 0.3 * len(shown))
    bars = np.arange(len(shown))
    ax.barh(bars, importances[shown], height=0.7, color=BAR)
    if len(model.trees_) > 1:
        below = np.minimum(spread, importances)[shown]
        ax.errorbar(
            importances[shown], bars, xerr=(below, spread[shown]), fmt="none", ecolor=LINE, lw=1.2
        )
    ax.set_yticks(bars, [labels[bar] for bar in shown])
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.set_xlim(left=0.0)
    ax.set_xlabel("share of the variance reduction")
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def _importances_by_tree(model: Any) -> Floats:
    """Return each tree's shares of its variance reduction, shape (n_trees, p)."""
    trees = model.trees_
    reductions = np.array(
        [trees[t].variance_reduction(model.n_features_in_) for t in range(len(trees))]
    )
    reductions = np.maximum(reductions, 0.0)
    total = reductions.sum(axis=1, keepdims=True)
    return np.divide(reductions, total, out=np.zeros_like(reductions), where=total > 0)


def _bars(names: list[str], groups: Mapping[str, Sequence[int | str]]) -> tuple[list[str], Floats]:
    """Return the label of each bar, and a 0/1 matrix (p, n_bars) of the features in it."""
    members = {
        group: [_position(feature, names, group) for feature in features]
        for group, features in groups.items()
    }
    uses = Counter(feature for features in members.values() for feature in features)
    for feature, count in uses.items():
        if count > 1:
            raise ValueError(
                f"feature {names[feature]!r} is {count} times in groups; put it in one group, once."
            )
    alone = [feature for feature in range(len(names)) if feature not in uses]
    bars = [*members.values(), *([feature] for feature in alone)]
    membership = np.zeros((len(names), len(bars)))
    for bar, features in enumerate(bars):
        membership[features, bar] = 1.0
    return [*members, *(names[feature] for feature in alone)], membership


def _position(feature: int | str, names: list[str], group: str) -> int:
    if isinstance(feature, Integral) and 0 <= feature < len(names):
        return int(feature)
    if feature in names:
        return names.index(str(feature))
    raise ValueError(
        f"group {group!r} has {feature!r}, which is no feature; use names of features or their "
        f"positions, 0 to {len(names) - 1}."
    )
