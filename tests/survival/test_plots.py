"""Plots of survival functions and of their calibration."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from okforest import OKBoost, OKRandomForest, OKTree
from okforest.refit import CensoredForest
from okforest.survival import plot_calibration, plot_survival
from okforest.survival.estimates import turnbull
from okforest.survival.plots import _observed

rng = np.random.default_rng(0)
X = rng.uniform(size=(200, 2))
TIME = np.exp(2 * X[:, 0] + rng.normal(0.0, 0.3, size=200))
EVENT = rng.random(200) < 0.7
Y = np.rec.fromarrays([EVENT, TIME], names="event,time")
FOREST = OKRandomForest(30, kernel="survival", min_samples_leaf=10, random_state=0).fit(X, Y)


def test_curves():
    """Every function is a step line with a band whose width follows from the weights."""
    ax = plot_survival(FOREST, X[:3], Y[:3], labels=["a", "b", "c"], confidence=0.9)
    lines = [line for line in ax.lines if len(line.get_xdata()) > 1]
    for line, function in zip(lines, FOREST.predict_survival_function(X[:3]), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), np.append(1.0, function.y))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b", "c"]
    dots = [line for line in ax.lines if len(line.get_xdata()) == 1]
    assert [dot.get_markerfacecolor() != "white" for dot in dots] == EVENT[:3].tolist()
    assert [dot.get_xdata()[0] for dot in dots] == TIME[:3].tolist()
    w = FOREST.predict_weights(X[:1]).toarray()[0]
    S = np.append(1.0, FOREST.predict_survival_function(X[:1])[0].y)
    k = int(np.abs(S - 0.5).argmin())
    half = 1.6448536 * np.sqrt(S[k] * (1 - S[k]) * (w**2).sum())
    heights = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert np.isclose(heights, min(1.0, S[k] + half)).any()
    assert np.isclose(heights, max(0.0, S[k] - half)).any()
    plt.close("all")


def test_models_without_bands():
    """Boosting has negative weights, and a censored forest has none: no bands."""
    boost = OKBoost(100, learning_rate=0.5, kernel="survival", random_state=0).fit(X, Y)
    for model in (boost, CensoredForest().fit(X, Y)):
        ax = plt.subplots()[1]
        assert plot_survival(model, X[:2], ax=ax) is ax
        assert not ax.collections
    assert not plot_survival(FOREST, X[:2], confidence=None).collections
    plt.close("all")


def test_calibration():
    """Groups of equal size, at their mean prediction and Kaplan–Meier estimate."""
    ax = plot_calibration(FOREST, X, Y, time=3.0, n_groups=4)
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    assert len(dots) == 4
    predicted = np.sort([f(3.0) for f in FOREST.predict_survival_function(X)])
    expected = predicted.reshape(4, 50).mean(axis=1)
    np.testing.assert_allclose([dot.get_xdata()[0] for dot in dots], expected)
    observed = [dot.get_ydata()[0] for dot in dots]
    assert observed == sorted(observed)
    plt.close("all")


def test_greenwood():
    """Without censoring, the standard error is the binomial one."""
    y = np.rec.fromarrays([np.ones(200, bool), TIME], names="event,time")
    tree = OKTree(kernel="survival", max_depth=1).fit(X, y)
    ax = plot_calibration(tree, X, y, time=3.0, n_groups=2)
    bar = ax.containers[0]
    share = bar.lines[0].get_ydata()[0]
    low, high = bar.lines[2][0].get_segments()[0][:, 1]
    assert high - low == pytest.approx(4 * np.sqrt(share * (1 - share) / 100))
    plt.close("all")


def test_intervals():
    """Intervals are drawn along the function; groups have the estimate of Turnbull."""
    visits = np.array([-np.inf, 2.0, 3.0, 5.0, np.inf])
    k = np.searchsorted(visits[1:-1], TIME)
    intervals = np.column_stack([visits[k], visits[k + 1]])
    forest = OKRandomForest(10, kernel="survival", min_samples_leaf=10, random_state=0)
    forest.fit(X, intervals)
    first = [int(np.flatnonzero(k == kind)[0]) for kind in (0, 1, 3)]
    ax = plot_survival(forest, X[first], intervals[first])
    thick = [line.get_xdata() for line in ax.lines if line.get_linewidth() == 5]
    assert [(x[0], x[-1]) for x in thick] == [(0.0, 2.0), (2.0, 3.0)]
    assert [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"] == [5.0]
    ax = plot_calibration(forest, X, intervals, time=3.0, n_groups=2)
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    order = np.argsort([f(3.0) for f in forest.predict_survival_function(X)], kind="stable")
    for dot, group in zip(dots, np.array_split(order, 2), strict=True):
        expected = turnbull(intervals[group])(np.array(3.0))
        assert dot.get_ydata()[0] == pytest.approx(float(expected))
    plt.close("all")


def test_many_curves_differ():
    """From the sixth row, curves have another line style."""
    ax = plot_survival(FOREST, X[:6])
    assert ax.lines[0].get_color() == ax.lines[5].get_color()
    assert ax.lines[0].get_linestyle() != ax.lines[5].get_linestyle()
    plt.close("all")


def test_errors():
    """Each misuse has its own error."""
    with pytest.raises(TypeError, match="does not predict survival functions"):
        plot_survival(OKTree().fit(X, TIME), X[:2])
    with pytest.raises(ValueError, match="pass at most 20"):
        plot_survival(FOREST, X)
    with pytest.raises(ValueError, match="n_groups=1"):
        plot_calibration(FOREST, X, Y, 3.0, n_groups=1)
    with pytest.raises(ValueError, match="nothing is observed beyond"):
        plot_calibration(FOREST, X, Y, 1e6)


def test_dots_bands_and_steps():
    """Lines are steps, dots lie on them, and bands have the width of their own row."""
    functions = FOREST.predict_survival_function(X[:12])
    W = FOREST.predict_weights(X[:12]).toarray()
    ax = plot_survival(FOREST, X[:12], Y[:12])
    lines = [line for line in ax.lines if len(line.get_xdata()) > 1]
    dots = [line for line in ax.lines if len(line.get_xdata()) == 1]
    for i, f in enumerate(functions):
        assert lines[i].get_drawstyle() == "steps-post"
        np.testing.assert_array_equal(lines[i].get_xdata(), np.append(0.0, f.x))
        assert dots[i].get_ydata()[0] == f(TIME[i])
        heights = ax.collections[i].get_paths()[0].vertices[:, 1]
        half = 1.6448536 * np.sqrt(f.y * (1 - f.y) * (W[i] ** 2).sum())
        k = int(np.abs(f.y - 0.5).argmin())
        assert np.isclose(heights, min(1.0, f.y[k] + half[k])).any()
        assert heights.min() >= 0
        assert heights.max() <= 1
        x, y = ax.collections[i].get_paths()[0].vertices.T
        assert y[x < f.x[0]].min() == 1.0
    plt.close("all")


def test_twenty_curves_are_not_too_many():
    """Twenty curves can be drawn."""
    assert len(plot_survival(FOREST, X[:20], confidence=None).lines) == 20
    plt.close("all")


def test_calibration_at_the_time_of_an_event_with_ties():
    """By hand: 4 cases, a death and a censored case at time 1, a death at 2: S = 3/4, then 3/8."""
    intervals = np.array([[1.0, 1.0], [1.0, np.inf], [2.0, 2.0], [3.0, 3.0]])
    survival, error = _observed(intervals, 2.0)
    assert survival == pytest.approx(3 / 8)
    assert error == pytest.approx(3 / 8 * np.sqrt(1 / (4 * 3) + 1 / (2 * 1)))


def test_calibration_errors():
    """Models and groups are checked."""
    with pytest.raises(TypeError, match="does not predict survival functions"):
        plot_calibration(OKTree().fit(X, TIME), X, Y, 3.0)
    with pytest.raises(ValueError, match=r"n_groups=2\.5"):
        plot_calibration(FOREST, X, Y, 3.0, n_groups=2.5)


def test_lengths_and_levels():
    """Outputs and labels of other rows, and a confidence in per cent, are errors."""
    with pytest.raises(ValueError, match="y has 2 entries; X has 3 rows"):
        plot_survival(FOREST, X[:3], Y[:2])
    with pytest.raises(ValueError, match="labels has 1 entries; X has 3 rows"):
        plot_survival(FOREST, X[:3], labels=["a"])
    with pytest.raises(ValueError, match="confidence=90; use a number between 0 and 1"):
        plot_survival(FOREST, X[:3], confidence=90)
    with pytest.raises(ValueError, match="y has 200 entries; X has 100 rows"):
        plot_calibration(FOREST, X[:100], Y, time=3.0)
    with pytest.raises(ValueError, match="n_groups=5; X has 3 rows"):
        plot_calibration(FOREST, X[:3], Y[:3], time=1.0)
    plt.close("all")
