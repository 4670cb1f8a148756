"""A parameter chosen by held-out loss: the least mean loss, ties, standard errors and the plot."""

import numpy as np
import pytest

from okforest import ParameterChoice
from okforest.models.tuning import choose, losses_of_folds

VALUES = np.array([1.0, 2.0, 4.0])


def test_the_least_mean_loss_and_ties():
    """Of values with equal losses, the preferred one is chosen."""
    losses = [[3.0, 1.0, 1.0], [3.0, 2.0, 2.0]]
    assert choose("k", VALUES, losses, VALUES).best == 4.0
    assert choose("k", VALUES, losses, -VALUES).best == 2.0
    assert choose("k", VALUES, [[0.5, 1.0, 1.0]], VALUES).best == 1.0


def test_one_standard_error():
    """Losses within a standard error of the least one count as equal to it."""
    losses = [[1.0, 1.5, 2.9], [3.0, 3.1, 4.0]]
    choice = choose("k", VALUES, losses, VALUES, one_standard_error=True)
    np.testing.assert_allclose(choice.losses, [2.0, 2.3, 3.45])
    np.testing.assert_allclose(choice.standard_errors, [1.0, 0.8, 0.55])
    assert choice.best == 2.0
    assert choose("k", VALUES, losses, VALUES).best == 1.0
    assert (choose("k", VALUES, losses[:1], VALUES).standard_errors == 0.0).all()


def test_losses_of_folds():
    """One row for each fold, computed from its training and test rows."""
    folds = losses_of_folds(lambda train, test: [len(train), test[0]], np.zeros(6), None, 3)
    assert folds.tolist() == [[4, 0], [4, 2], [4, 4]]


def test_plot():
    """Losses are drawn on the scale of the values, with a line at the chosen one."""
    pytest.importorskip("matplotlib")
    choice = ParameterChoice("alpha", 2.0, VALUES, np.array([[3.0, 1.0, 2.0]]))
    ax = choice.plot()
    assert (ax.get_xlabel(), ax.get_xscale()) == ("alpha", "log")
    lines = [line.get_xydata().tolist() for line in ax.get_lines()]
    assert [[1.0, 3.0], [2.0, 1.0], [4.0, 2.0]] in lines
    assert any({x for x, _ in line} == {2.0} for line in lines)
    assert choice.plot(ax) is ax
    from_zero = ParameterChoice("power", 0.0, VALUES - 1.0, np.ones((1, 3)))
    assert from_zero.plot().get_xscale() == "linear"
    assert repr(choice) == "<ParameterChoice: alpha=2, the best of 3 values>"
