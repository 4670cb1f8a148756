"""Learning curves."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from okforest import OKBoost, OKRidge
from okforest.inspection import plot_learning_curve
from okforest.kernels import RBF
from okforest.metrics import kernel_loss, output_loss

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 2]]
NEW = rng.normal(size=(20, 4))
Y_NEW = np.c_[NEW[:, 0] * NEW[:, 1], NEW[:, 2]]


@pytest.mark.parametrize("kernel", ["linear", RBF(1.0)], ids=repr)
def test_curves(kernel):
    """Every loss is a line, with a dot at its minimum."""
    model = OKBoost(25, kernel=kernel, n_iter_no_change=100, random_state=0).fit(X, Y)
    ax = plot_learning_curve(model, {"test": (NEW, Y_NEW)}, preimages=True)
    lines = {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}
    assert list(lines) == [
        "training, in feature space",
        "validation, in feature space",
        "test, in feature space",
        "test, predicted outputs",
    ]
    np.testing.assert_array_equal(
        lines["training, in feature space"].get_ydata(), model.train_loss_
    )
    np.testing.assert_array_equal(
        lines["validation, in feature space"].get_ydata(), model.validation_loss_
    )
    assert lines["test, in feature space"].get_ydata()[-1] == pytest.approx(
        kernel_loss(model, NEW, Y_NEW)
    )
    of_outputs = lines["test, predicted outputs"]
    assert of_outputs.get_xdata().tolist() == [10, 20, 25]
    assert of_outputs.get_ydata()[-1] == pytest.approx(
        output_loss(model.kernel_, Y_NEW, model.predict(NEW))
    )
    assert len(ax.lines) == 8
    lowest = [line for line in ax.lines if len(line.get_xdata()) == 1][2]
    assert lowest.get_ydata()[0] == lines["test, in feature space"].get_ydata().min()


def test_on_given_axes():
    """Without data only the training loss is plotted, on the given axes."""
    ax = plt.subplots()[1]
    model = OKBoost(5).fit(X, Y)
    assert plot_learning_curve(model, ax=ax) is ax
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "training, in feature space"
    ]


def test_any_base_learner():
    """Base learners other than trees have curves as well."""
    model = OKBoost(5, base=OKRidge()).fit(X, Y)
    ax = plot_learning_curve(model, {"test": (NEW, Y_NEW)}, preimages=True, step=5)
    assert [len(line.get_xdata()) for line in ax.lines] == [5, 1, 5, 1, 1, 1]


def test_errors():
    """Bad arguments raise errors that show good ones."""
    model = OKBoost(5).fit(X, Y)
    with pytest.raises(NotFittedError):
        plot_learning_curve(OKBoost())
    with pytest.raises(ValueError, match="preimages=True needs data to predict; pass, for example"):
        plot_learning_curve(model, preimages=True)
    for data in ((NEW, Y_NEW), {"test": NEW}, {"test": (NEW, Y_NEW, 1)}):
        with pytest.raises(
            TypeError, match=r"data must be a dict from names to pairs \(X, y\), such"
        ):
            plot_learning_curve(model, data)
    for name in ("training", "validation"):
        with pytest.raises(ValueError, match=f"data has the name '{name}', which is reserved; ch"):
            plot_learning_curve(model, {name: (NEW, Y_NEW)})
