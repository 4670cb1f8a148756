"""Losses of boosting against the number of rounds."""

import reprlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from okforest._plotting import CURVES, new_axes
from okforest._typing import Floats
from okforest.inspection._requirements import require_integer, require_rounds
from okforest.metrics import output_loss

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        Axes to plot on; by default those of a new figure.

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
    require_integer("step", step, positive=True)
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
