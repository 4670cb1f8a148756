"""Learning curves."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from okforest import OKBoost, OKTree
from okforest.inspection import plot_importances, plot_learning_curve, plot_tree
from okforest.kernels import RBF
from okforest.metrics import kernel_loss, output_loss

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 2]]
NEW = rng.normal(size=(20, 4))
Y_NEW = np.c_[NEW[:, 0] * NEW[:, 1], NEW[:, 2]]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize("kernel", ["linear", RBF(1.0)], ids=repr)
def test_curves(kernel):
    """Every loss is a line, with a dot at its lowest."""
    model = OKBoost(25, kernel=kernel, n_iter_no_change=100, random_state=0).fit(X, Y)
    ax = plot_learning_curve(model, {"test": (NEW, Y_NEW)}, preimages=True)
    lines = {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}
    assert list(lines) == ["training, in H", "validation, in H", "test, in H", "test, of outputs"]
    np.testing.assert_array_equal(lines["training, in H"].get_ydata(), model.train_loss_)
    np.testing.assert_array_equal(lines["validation, in H"].get_ydata(), model.validation_loss_)
    assert lines["test, in H"].get_ydata()[-1] == pytest.approx(kernel_loss(model, NEW, Y_NEW))
    of_outputs = lines["test, of outputs"]
    assert of_outputs.get_xdata().tolist() == [10, 20, 25]
    assert of_outputs.get_ydata()[-1] == pytest.approx(
        output_loss(model.kernel_, Y_NEW, model.predict(NEW))
    )
    assert len(ax.lines) == 8
    lowest = [line for line in ax.lines if len(line.get_xdata()) == 1][2]
    assert lowest.get_ydata()[0] == lines["test, in H"].get_ydata().min()


def test_on_given_axes():
    """Without data there is the training loss alone; axes may be one's own."""
    ax = plt.subplots()[1]
    model = OKBoost(5).fit(X, Y)
    assert plot_learning_curve(model, ax=ax) is ax
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["training, in H"]


def test_errors():
    """What cannot be drawn is told."""
    model = OKBoost(5).fit(X, Y)
    with pytest.raises(TypeError, match="model is a OKTree; expected a fitted OKBoost"):
        plot_learning_curve(OKTree().fit(X, Y))
    with pytest.raises(NotFittedError):
        plot_learning_curve(OKBoost())
    with pytest.raises(ValueError, match="preimages=True needs data to predict"):
        plot_learning_curve(model, preimages=True)
    with pytest.raises(ValueError, match="step=0; use a positive integer"):
        plot_learning_curve(model, step=0)


def test_boosted_trees_have_importances_and_no_drawing():
    """Leaves of boosted trees are no means of outputs; their splits have importances."""
    model = OKBoost(5).fit(X, Y)
    assert len(plot_importances(model).patches) == 4
    with pytest.raises(TypeError, match="model is a OKBoost; expected a fitted OKTree or forest"):
        plot_tree(model)
    with pytest.raises(TypeError, match="or OKBoost"):
        plot_importances("model")
