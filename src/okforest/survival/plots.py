"""Plots of predicted survival functions, and of how well they are calibrated."""

from collections.abc import Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from okforest._utils.arrays import Floats
from okforest._utils.parameters import as_integer
from okforest._utils.plotting import CURVES, LINE, new_axes
from okforest.survival.estimates import estimate_survival
from okforest.survival.outputs import is_exact, read_intervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_CURVES = 20
STYLES = ("-", "--", "-.", ":")  # one for every five colours


def plot_survival(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    labels: Sequence[str] | None = None,
    confidence: float | None = 0.9,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot predicted survival functions with bands, and what was observed.

    A band shows how well a function is known: if a prediction is the mean of n
    cases, a probability S has the standard error √(S(1 − S)/n), with n = 1/Σw². It does not
    include the error of the model. Models without weights, or with negative ones, have no bands.

    Parameters
    ----------
    model : estimator
        A fitted model with ``predict_survival_function``.
    X : array-like, frame or sparse matrix of shape (n, p)
        Inputs, at most 20.
    y : structured array or array-like of shape (n, 2), optional
        What was observed: a filled dot marks an event, an open one a censored time, and a thick
        line the interval in which an event happened.
    labels : sequence of n str, optional
        Names for the legend.
    confidence : float or None, default=0.9
        The level of the bands; None for no bands.
    ax : matplotlib Axes, optional
        Axes to plot on; by default the axes of a new figure.

    Returns
    -------
    ax : matplotlib Axes
        The axes.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest import OKRandomForest
    >>> from okforest.survival import plot_survival
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 2))
    >>> y = np.rec.fromarrays([rng.random(200) < 0.7, np.exp(X[:, 0])], names="event,time")
    >>> forest = OKRandomForest(kernel="survival", min_samples_leaf=10, random_state=0).fit(X, y)
    >>> ax = plot_survival(forest, X[:2], y[:2])
    """
    _check_survival(model)
    functions = model.predict_survival_function(X)
    if len(functions) > MOST_CURVES:
        raise ValueError(f"X has {len(functions)} rows; pass at most {MOST_CURVES} to plot.")
    if confidence is not None and not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r}; use a number between 0 and 1, such as 0.9.")
    for name, values in (("y", y), ("labels", labels)):
        _check_length(name, values, len(functions))
    sizes = None if confidence is None else _effective_sizes(model, X)
    width = 0.0 if confidence is None else NormalDist().inv_cdf(0.5 + confidence / 2)
    observed = None if y is None else read_intervals(y)
    ax = new_axes(ax, (5.6, 4.0))
    for i, function in enumerate(functions):
        color = CURVES[i % len(CURVES)]
        style = STYLES[i // len(CURVES)]
        times, values = np.append(0.0, function.x), np.append(1.0, function.y)
        label = None if labels is None else labels[i]
        ax.step(times, values, where="post", color=color, ls=style, lw=1.6, label=label)
        if sizes is not None:
            error = width * np.sqrt(values * (1.0 - values) / sizes[i])
            low, high = np.clip(values - error, 0, 1), np.clip(values + error, 0, 1)
            ax.fill_between(times, low, high, step="post", color=color, alpha=0.15, lw=0)
        if observed is not None:
            _mark(ax, function, observed[i], color)
    ax.set(xlabel="time", ylabel="probability of survival", ylim=(0, 1.02))
    ax.set_xlim(left=0)
    if labels is not None:
        ax.legend(frameon=False, fontsize="small")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_calibration(
    model: Any, X: Any, y: Any, time: float, *, n_groups: int = 5, ax: "Axes | None" = None
) -> "Axes":
    """Plot predicted against observed probabilities of survival at a time.

    Cases are grouped by their predicted probability. The observed probability of a group is its
    Kaplan–Meier estimate, with a bar of two standard errors (Greenwood). Use data that the model
    was not fitted to: dots near the diagonal mean that predictions can be taken as probabilities.

    Parameters
    ----------
    model : estimator
        A fitted model with ``predict_survival_function``.
    X : array-like, frame or sparse matrix of shape (n, p)
        Inputs.
    y : structured array or array-like of shape (n, 2)
        Their times, which may be intervals: the observed probability of a group is then the
        estimate of Turnbull, without a bar.
    time : float
        The time, at most the last one of y.
    n_groups : int, default=5
        Number of groups.
    ax : matplotlib Axes, optional
        Axes to plot on; by default the axes of a new figure.

    Returns
    -------
    ax : matplotlib Axes
        The axes.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest import OKRandomForest
    >>> from okforest.survival import plot_calibration
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 2))
    >>> y = np.rec.fromarrays([rng.random(200) < 0.7, np.exp(X[:, 0])], names="event,time")
    >>> forest = OKRandomForest(kernel="survival", min_samples_leaf=10, random_state=0)
    >>> ax = plot_calibration(forest.fit(X[:100], y[:100]), X[100:], y[100:], time=1.5)
    """
    _check_survival(model)
    intervals = read_intervals(y)
    finite = intervals[np.isfinite(intervals)]
    if not 0 <= time <= finite.max(initial=0.0):
        raise ValueError(
            f"time={time!r}; the times of y go from 0 to {finite.max(initial=0.0):.6g}, and "
            "nothing is observed beyond."
        )
    n_groups = as_integer("n_groups", n_groups, 2)
    predicted = np.array([function(time) for function in model.predict_survival_function(X)])
    _check_length("y", intervals, len(predicted))
    if n_groups > len(predicted):
        raise ValueError(f"n_groups={n_groups!r}; X has {len(predicted)} rows, which is fewer.")
    groups = np.array_split(np.argsort(predicted, kind="stable"), n_groups)
    ax = new_axes(ax, (4.4, 4.2))
    ax.plot([0, 1], [0, 1], color=LINE, lw=0.8, ls=":")
    for group in groups:
        estimate, error = _observed(intervals[group], time)
        x = predicted[group].mean()
        ax.errorbar(
            x, estimate, yerr=2 * error, fmt="o", color=CURVES[0], ms=5, lw=1.2, clip_on=False
        )
    ax.set(
        xlabel=f"predicted probability of survival at {time:g}",
        ylabel="observed (Kaplan–Meier)",
        xlim=(0, 1),
        ylim=(0, 1.02),
    )
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _check_survival(model: Any) -> None:
    if not hasattr(model, "predict_survival_function"):
        raise TypeError(
            f"{type(model).__name__} does not predict survival functions; use a model with "
            "kernel='survival', or a CensoredForest."
        )


def _check_length(name: str, values: Any, n: int) -> None:
    if values is not None and len(values) != n:
        raise ValueError(
            f"{name} has {len(values)} entries; X has {n} rows. Pass one for each row."
        )


def _effective_sizes(model: Any, X: Any) -> Floats | None:
    """Return 1 / Σ w² of every prediction; None without weights that are probabilities."""
    if not hasattr(model, "weight_matrix"):
        return None
    W = model.weight_matrix(X).tocsr()
    if (W.data < -1e-12).any():
        return None
    return np.asarray(1.0 / W.multiply(W).sum(axis=1)).ravel()


def _mark(ax: "Axes", function: Any, interval: Floats, color: str) -> None:
    """Draw a dot at an exact or a censored time, and a line along an interval."""
    lower, upper = interval
    if lower == upper or np.isinf(upper):
        time = max(lower, 0.0)
        face = color if lower == upper else "white"
        ax.plot(time, function(time), "o", color=color, markerfacecolor=face, ms=6, clip_on=False)
        return
    start = max(lower, 0.0)
    inside = function.x[(function.x > start) & (function.x < upper)]
    times = np.concatenate([[start], inside, [upper]])
    ax.step(times, function(times), where="post", color=color, lw=5, alpha=0.6)


def _observed(intervals: Floats, t: float) -> tuple[float, float]:
    """Return the estimate of survival at a time, and its standard error by Greenwood.

    There is no error (0) if some times are known up to an interval.
    """
    estimate = estimate_survival(intervals) if np.isfinite(intervals[:, 1]).any() else None
    survival = 1.0 if estimate is None else float(estimate(np.array(t)))
    event, times = is_exact(intervals), intervals[:, 0]
    if estimate is None or not (event | np.isposinf(intervals[:, 1])).all():
        return survival, 0.0
    before = estimate.x[estimate.x <= t]
    deaths = np.array([(event & (times == s)).sum() for s in before])
    at_risk = np.array([(times >= s).sum() for s in before])
    spread = np.divide(
        deaths, at_risk * (at_risk - deaths), where=at_risk > deaths, out=np.zeros(len(before))
    )
    return survival, survival * float(np.sqrt(spread.sum()))
