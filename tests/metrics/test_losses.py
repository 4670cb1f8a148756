"""Losses in H against their definitions, and against scikit-learn's for the linear kernel."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from okforest import OKExtraTrees, OKTree
from okforest.kernels import RBF, Precomputed
from okforest.metrics import (
    kernel_loss,
    kernel_loss_scorer,
    kernel_r2,
    kernel_r2_scorer,
    output_loss,
    output_loss_scorer,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 4))
Y = np.c_[X[:, 0] + rng.normal(size=80), X[:, 1] ** 2]
WEIGHT = rng.uniform(size=40)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighted"])
def test_linear_kernel_gives_scikit_learns_metrics(weight):
    """The loss in H is the squared error, and the kernel R² is R²."""
    model = OKExtraTrees(10, random_state=0).fit(X[:40], Y[:40])
    predicted = model.predict(X[40:])
    expected = 2 * mean_squared_error(Y[40:], predicted, sample_weight=weight)
    assert kernel_loss(model, X[40:], Y[40:], weight) == pytest.approx(expected)
    assert output_loss("linear", Y[40:], predicted, weight) == pytest.approx(expected)
    expected = r2_score(Y[40:], predicted, sample_weight=weight, multioutput="variance_weighted")
    assert kernel_r2(model, X[40:], Y[40:], weight) == pytest.approx(expected)
    assert model.score(X[40:], Y[40:], weight) == pytest.approx(expected)


def test_rbf_losses_by_definition():
    """Losses from weights and Gram matrices, written out."""
    kernel = RBF(1.0)
    model = OKExtraTrees(10, kernel=kernel, random_state=0).fit(X[:40], Y[:40])
    w = model.predict_weights(X[40:]).toarray()
    K, cross, test = kernel(Y[:40]), kernel(Y[:40], Y[40:]), kernel(Y[40:])
    losses = 1 - 2 * np.diag(w @ cross) + np.diag(w @ K @ w.T)
    assert kernel_loss(model, X[40:], Y[40:]) == pytest.approx(losses.mean())
    expected = 1 - losses.sum() / (np.trace(test) - test.mean() * 40)
    assert kernel_r2(model, X[40:], Y[40:]) == pytest.approx(expected)
    predicted = model.predict(X[40:])
    expected = (2 - 2 * np.diag(kernel(Y[40:], predicted))).mean()
    assert output_loss(kernel, Y[40:], predicted) == pytest.approx(expected)


def test_scorers_are_greater_for_better_models():
    """R², and minus the losses."""
    model = OKTree(kernel=RBF(1.0), random_state=0).fit(X[:40], Y[:40])
    args = model, X[40:], Y[40:]
    assert kernel_r2_scorer(*args) == kernel_r2(*args)
    assert kernel_loss_scorer(*args) == -kernel_loss(*args)
    assert output_loss_scorer(*args) == -output_loss(RBF(1.0), Y[40:], model.predict(X[40:]))


def test_labels_not_seen_in_training():
    """A new label is as far from every prediction as can be, and counts in the spread."""
    labels = np.repeat(["a", "b"], 20)
    model = OKTree(kernel="dirac", random_state=0).fit(X[:40], labels)
    new = np.repeat(["a", "c"], 20)
    assert kernel_loss(model, X[:40], new) == pytest.approx(1.0)  # 0 for a, 2 for c
    assert kernel_r2(model, X[:40], new) == pytest.approx(1 - 40 / 20)


def test_constant_outputs_and_single_rows():
    """As r2_score: 1 or 0 for constant outputs, undefined for one."""
    model = OKTree().fit(X, np.ones(80))
    assert model.score(X, np.ones(80)) == 1.0
    assert model.score(X, np.full(80, 2.0)) == 0.0
    with pytest.warns(UndefinedMetricWarning):
        assert np.isnan(model.score(X[:1], [1.0]))


def test_wrong_lengths():
    """X and y of different lengths are an error."""
    model = OKTree().fit(X, Y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(X, Y[:-1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        output_loss(Precomputed(np.eye(3)), [0, 1], [2])


def test_pipelines():
    """The metrics and scorers of a pipeline are those of its model on what reaches it."""
    scaled = StandardScaler().fit(X)
    tree = OKTree(kernel=RBF(1.0), max_depth=3, random_state=0)
    inside = make_pipeline(make_pipeline(StandardScaler()), make_pipeline(tree)).fit(X, Y)
    alone = clone(tree).fit(scaled.transform(X), Y)
    for metric in (
        kernel_loss,
        kernel_r2,
        kernel_loss_scorer,
        kernel_r2_scorer,
        output_loss_scorer,
    ):
        assert metric(inside, X, Y) == metric(alone, scaled.transform(X), Y)
