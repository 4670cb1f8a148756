"""The helpers that plots share."""

import sys

import matplotlib
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from okforest._utils.plotting import new_axes, new_figure, require_matplotlib, shade


def test_new_axes():
    """Given axes are returned as they are; new ones have the size asked for."""
    ax = new_axes(figsize=(3.0, 2.0))
    assert ax.figure.get_size_inches().tolist() == [3.0, 2.0]
    assert ax.figure.number in plt.get_fignums()
    assert new_axes(ax) is ax
    assert new_axes(ax, (5.0, 5.0)) is ax
    plt.close(ax.figure)


def test_ax_is_not_axes():
    """An array of axes, or a figure, is refused."""
    with pytest.raises(
        TypeError, match="ax is of type list; expected one matplotlib Axes, such as"
    ):
        new_axes([1, 2])
    with pytest.raises(TypeError, match="ax is of type Figure"):
        new_axes(new_figure())


def test_new_figure_is_unknown_to_pyplot():
    """Such a figure needs no closing."""
    before = plt.get_fignums()
    assert new_figure((3.0, 2.0)).get_size_inches().tolist() == [3.0, 2.0]
    assert plt.get_fignums() == before


@pytest.mark.parametrize("function", [require_matplotlib, new_axes, new_figure])
def test_matplotlib_is_missing(monkeypatch, function):
    """The error names the extra to install."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        ImportError,
        match=r"needs matplotlib.*pip install '.\[plot\]' in a clone.*'okforest\[plot\]'",
    ):
        function()


def test_shade():
    """Shades go from white to blue."""
    assert shade(0.0) == "#ffffff"
    assert shade(1.0) == "#7fa8c9"
