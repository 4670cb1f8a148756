"""Feature importances as a bar chart."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from okforest._plotting import BAR, LINE, new_axes
from okforest._typing import Floats
from okforest.inspection._requirements import (
    USE_PERMUTATION,
    feature_names_of,
    require_integer,
    require_outputs,
    require_trees,
)
from okforest.models import OKBoost

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
    """Plot feature importances, the largest at the top.

    A bar is a feature's share of the total variance reduction, over all trees or boosting rounds.
    For a forest, error bars show one standard deviation of the importances over trees; they are cut
    off at zero.

    Parameters
    ----------
    model : estimator
        A fitted tree or forest, or an OKBoost with ``base="tree"``.
    top : int, default=20
        Maximum number of bars.
    feature_names : sequence of str, optional
        Names of the features; by default those seen in ``fit``, or x0, x1, …
    groups : dict of str to features, optional
        Features that share a bar, such as the columns of one variable, by name or position. Each
        of the other features has its own bar.
    ax : matplotlib Axes, optional
        Axes to plot on; by default those of a new figure.

    Returns
    -------
    ax : matplotlib Axes
        The axes.

    See Also
    --------
    sklearn.inspection.permutation_importance : Importances for a score, on any data and model.

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
    require_trees(model, USE_PERMUTATION)
    require_outputs(model, "plot_importances")
    require_integer("top", top, positive=True)
    labels, membership = _bars(feature_names_of(model, feature_names), _check_groups(groups))
    importances = model.feature_importances_ @ membership
    shown = np.argsort(-importances, kind="stable")[:top]
    ax = new_axes(ax, (6.0, 0.9 + 0.3 * len(shown)))
    bars = np.arange(len(shown))
    ax.barh(bars, importances[shown], height=0.7, color=BAR)
    if len(model.trees_) > 1 and not isinstance(model, OKBoost):  # rounds are not replicates
        spread = (_importances_by_tree(model) @ membership).std(axis=0)
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
    """Return the importances in each tree alone, shape (n_trees, p)."""
    trees = model.trees_
    reductions = np.array(
        [trees[t].variance_reduction(model.n_features_in_) for t in range(len(trees))]
    )
    reductions = np.maximum(reductions, 0.0)
    total = reductions.sum(axis=1, keepdims=True)
    return np.divide(reductions, total, out=np.zeros_like(reductions), where=total > 0)


def _check_groups(groups: Any) -> dict[str, list[int | str]]:
    """Return the features of each group as a list."""
    if groups is None:
        return {}
    if not isinstance(groups, Mapping):
        raise TypeError(
            f"groups is of type {type(groups).__name__}; expected a dict from group names to lists "
            "of features, such as {'size': ['height', 'width']}."
        )
    for group, features in groups.items():
        if isinstance(features, str) or not isinstance(features, Iterable):
            raise TypeError(
                f"group {group!r} is {features!r}; expected a list of names or positions of "
                "features, such as [0, 1]."
            )
    return {group: list(features) for group, features in groups.items()}


def _bars(names: list[str], groups: dict[str, list[int | str]]) -> tuple[list[str], Floats]:
    """Return the label of each bar, and a 0/1 matrix (p, n_bars) of the features in it."""
    members = {
        group: [_position(feature, names, group) for feature in features]
        for group, features in groups.items()
    }
    uses = Counter(feature for features in members.values() for feature in features)
    for feature, count in uses.items():
        if count > 1:
            raise ValueError(
                f"feature {names[feature]!r} is in groups {count} times; list it once, in one "
                "group."
            )
    ungrouped = [feature for feature in range(len(names)) if feature not in uses]
    bars = [*members.values(), *([feature] for feature in ungrouped)]
    membership = np.zeros((len(names), len(bars)))
    for bar, features in enumerate(bars):
        membership[features, bar] = 1.0
    return [*members, *(names[feature] for feature in ungrouped)], membership


def _position(feature: int | str, names: list[str], group: str) -> int:
    if isinstance(feature, Integral) and 0 <= feature < len(names):
        return int(feature)
    matches = [position for position, name in enumerate(names) if name == feature]
    if len(matches) > 1:
        raise ValueError(
            f"group {group!r} has {feature!r}, the name of features {matches}; use their positions."
        )
    if not matches:
        raise ValueError(
            f"group {group!r} has {feature!r}, which is not a feature; use names of features, or "
            f"positions from 0 to {len(names) - 1}."
        )
    return matches[0]
