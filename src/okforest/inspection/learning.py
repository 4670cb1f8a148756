"""The losses of boosting, round by round."""

from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from okforest.inspection._colours import CURVES
from okforest.inspection._matplotlib import new_axes
from okforest.metrics import output_loss
from okforest.models import OKBoost

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
    """Draw the loss of a boosted model after each round.

    Full lines are mean losses in the kernel's feature space, ‖φ(y) − F(x)‖²: of the training rows,
    of those held out for early stopping, if there are any, and of other data. Broken lines are
    losses of predicted outputs, ‖φ(y) − φ(ŷ)‖². A dot marks where a curve is lowest.

    Parameters
    ----------
    model : OKBoost
        A fitted model.
    data : dict of str to (X, y), optional
        Further curves: inputs and outputs by name, such as ``{"test": (X_test, y_test)}``.
    preimages : bool, default=False
        Whether to draw losses of predicted outputs, too, of the given data.
    step : int, default=10
        Outputs are predicted every so many rounds, and after the last.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    ax : matplotlib Axes
        The drawing.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from okforest import OKBoost
    >>> from okforest.inspection import plot_learning_curve
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = OKBoost(50, n_iter_no_change=10, random_state=0).fit(X[:300], y[:300])
    >>> ax = plot_learning_curve(model, {"test": (X[300:], y[300:])})
    """
    if not isinstance(model, OKBoost):
        raise TypeError(
            f"model is a {type(model).__name__}; expected a fitted OKBoost. Of a pipeline or a "
            "search, pass the model inside: pipeline[-1], search.best_estimator_."
        )
    check_is_fitted(model, "n_estimators_")
    if not isinstance(step, Integral) or step < 1:
        raise ValueError(f"step={step!r}; use a positive integer.")
    if preimages and not data:
        raise ValueError(
            "preimages=True needs data to predict; pass data={'test': (X_test, y_test)}, say."
        )
    curves = {"training": model.train_loss_}
    if hasattr(model, "validation_loss_"):
        curves["validation"] = model.validation_loss_
    for name, (X, y) in (data or {}).items():
        curves[name] = np.array([losses.mean() for losses in model.staged_losses(X, y)])
    if ax is None:
        ax = new_axes(6.0, 3.6)
    colours = {name: CURVES[number % len(CURVES)] for number, name in enumerate(curves)}
    rounds = np.arange(1, model.n_estimators_ + 1)
    for name, losses in curves.items():
        _draw(ax, rounds, losses, f"{name}, in H", colours[name], "-")
    for name, (X, y) in (data or {}).items() if preimages else ():
        shown = rounds[(rounds % step == 0) | (rounds == rounds[-1])]
        losses = np.array(
            [
                output_loss(model.kernel_, y, predicted)
                for predicted in model.staged_predict(X, step=step)
            ]
        )
        _draw(ax, shown, losses, f"{name}, of outputs", colours[name], "--")
    ax.set_xlabel("rounds")
    ax.set_ylabel("mean loss")
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0.0)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    return ax


def _draw(ax: "Axes", rounds: Any, losses: Any, label: str, colour: str, style: str) -> None:
    ax.plot(rounds, losses, style, color=colour, lw=1.5, label=label)
    lowest = int(np.argmin(losses))
    ax.plot(rounds[lowest], losses[lowest], "o", color=colour, ms=4)
