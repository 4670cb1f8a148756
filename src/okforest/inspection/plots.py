"""Feature importances as a bar chart; losses of boosting against the number of rounds."""

import reprlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from okforest._utils.arrays import Floats
from okforest._utils.parameters import as_integer
from okforest._utils.plotting import BAR, CURVES, LINE, new_axes
from okforest.inspection.requirements import (
    USE_PERMUTATION,
    feature_names_of,
    require_outputs,
    require_rounds,
    require_trees,
)
from okforest.metrics import output_loss
from okforest.models import OKBoost
from okforest.models.tree_methods import variance_reduction

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_importances(
    model: Any,
    *,
    k: int = 20,
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
    k : int, default=20
        Maximum number of bars.
    feature_names : sequence of str, optional
        Names of the features; by default those seen in ``fit``, or x0, x1, …
    groups : dict of str to features, optional
        Features that share a bar, such as the columns of one variable, by name or position. Each
        of the other features has its own bar.
    ax : matplotlib Axes, optional
        Axes to plot on; by default the axes of a new figure.

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
    k = as_integer("k", k, 1)
    labels, membership = _bars(feature_names_of(model, feature_names), _check_groups(groups))
    importances = model.feature_importances_ @ membership
    shown = np.argsort(-importances, kind="stable")[:k]
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
    reductions = np.array([variance_reduction(model, trees[t]) for t in range(len(trees))])
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


def plot_learning_curve(
    model: Any,
    data: Mapping[str, tuple[Any, Any]] | None = None,
    *,
    preimages: bool = False,
    step: int = 10,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot the loss of a boosted model after each round.

    Solid lines are mean losses in the kernel's feature space, ‖φ(y) − F(x)‖²: of the training rows,
    of the rows held out for early stopping, if any, and of the given data. Dashed lines are mean
    losses of predicted outputs, ‖φ(y) − φ(ŷ)‖². A dot marks the minimum of each curve.

    Parameters
    ----------
    model : OKBoost
        A fitted model, with any base learner.
    data : dict of str to (X, y), optional
        Data for further curves, by name, such as ``{"test": (X_test, y_test)}``.
    preimages : bool, default=False
        Whether to plot losses of predicted outputs as well, for the given data.
    step : int, default=10
        Number of rounds between predictions of outputs; the last round is always included.
    ax : matplotlib Axes, optional
        Axes to plot on; by default the axes of a new figure.

    Returns
    -------
    ax : matplotlib Axes
        The axes.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from okforest import OKBoost
    >>> from okforest.inspection import plot_learning_curve
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = OKBoost(50, n_iter_no_change=10, random_state=0).fit(X[:300], y[:300])
    >>> ax = plot_learning_curve(model, {"test": (X[300:], y[300:])})
    """
    require_rounds(model)
    step = as_integer("step", step, 1)
    data = _check_data(data)
    if preimages and not data:
        raise ValueError(
            "preimages=True needs data to predict; pass, for example, "
            "data={'test': (X_test, y_test)}."
        )
    curves = {"training": model.train_loss_}
    if hasattr(model, "validation_loss_"):
        curves["validation"] = model.validation_loss_
    for name, (X, y) in data.items():
        curves[name] = np.array([losses.mean() for losses in model.staged_losses(X, y)])
    ax = new_axes(ax, (6.0, 3.6))
    colours = {name: CURVES[number % len(CURVES)] for number, name in enumerate(curves)}
    rounds = np.arange(1, model.n_estimators_ + 1)
    for name, losses in curves.items():
        _draw(ax, rounds, losses, f"{name}, in feature space", colours[name], "-")
    for name, (X, y) in data.items() if preimages else ():
        shown = rounds[(rounds % step == 0) | (rounds == rounds[-1])]
        losses = np.array(
            [
                output_loss(model.kernel_, y, predicted)
                for predicted in model.staged_predict(X, step=step)
            ]
        )
        _draw(ax, shown, losses, f"{name}, predicted outputs", colours[name], "--")
    ax.set_xlabel("rounds")
    ax.set_ylabel("mean loss")
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0.0)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    return ax


def _check_data(data: Any) -> dict[str, tuple[Any, Any]]:
    """Return the given data, which must not take the names of other curves."""
    if data is None:
        return {}
    if not isinstance(data, Mapping) or not all(
        isinstance(pair, tuple | list) and len(pair) == 2 for pair in data.values()
    ):
        raise TypeError(
            "data must be a dict from names to pairs (X, y), such as {'test': (X_test, y_test)}; "
            f"got {reprlib.repr(data)}."
        )
    for name in ("training", "validation"):
        if name in data:
            raise ValueError(f"data has the name {name!r}, which is reserved; choose another.")
    return dict(data)


def _draw(ax: "Axes", rounds: Floats, losses: Floats, label: str, colour: str, style: str) -> None:
    ax.plot(rounds, losses, style, color=colour, lw=1.5, label=label)
    lowest = int(np.argmin(losses))
    ax.plot(rounds[lowest], losses[lowest], "o", color=colour, ms=4)
