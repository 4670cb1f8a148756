"""Losses in feature space: by definition, and equal to scikit-learn's for the linear kernel."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from okforest import OKBoost, OKExtraTrees, OKTree
from okforest.kernels import RBF, Precomputed
from okforest.metrics import (
    integrated_squared_error,
    kernel_loss,
    kernel_loss_samples,
    kernel_loss_scorer,
    kernel_r2,
    kernel_r2_scorer,
    output_loss,
    output_loss_samples,
    output_loss_scorer,
    set_f1_score,
)
from okforest.metrics.losses import check_score_weight

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
    """Losses computed from weights and Gram matrices, term by term."""
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
    """Scorers return R², or minus a loss."""
    model = OKTree(kernel=RBF(1.0), random_state=0).fit(X[:40], Y[:40])
    args = model, X[40:], Y[40:]
    assert kernel_r2_scorer(*args) == kernel_r2(*args)
    assert kernel_loss_scorer(*args) == -kernel_loss(*args)
    assert output_loss_scorer(*args) == -output_loss(RBF(1.0), Y[40:], model.predict(X[40:]))


def test_labels_not_seen_in_training():
    """A label that is new is orthogonal to every prediction, and counts in the spread."""
    labels = np.repeat(["a", "b"], 20)
    model = OKTree(kernel="dirac", random_state=0).fit(X[:40], labels)
    new = np.repeat(["a", "c"], 20)
    assert kernel_loss(model, X[:40], new) == pytest.approx(1.0)  # 0 for a, 2 for c
    assert kernel_r2(model, X[:40], new) == pytest.approx(1 - 40 / 20)


def test_constant_outputs_and_single_rows():
    """Like r2_score: 1 or 0 for constant outputs, undefined for a single one."""
    model = OKTree().fit(X, np.ones(80))
    assert model.score(X, np.ones(80)) == 1.0
    assert model.score(X, np.full(80, 2.0)) == 0.0
    assert model.score(X, np.full(80, 1.001)) == 0.0  # their mean is rounded
    far = OKTree(random_state=0).fit(X, 1e8 + Y)
    assert far.score(X, 1e8 + Y) == pytest.approx(1.0)
    assert far.score(X, 1e8 + Y[::-1]) < 0.5
    with pytest.warns(UndefinedMetricWarning):
        assert np.isnan(model.score(X[:1], [1.0]))


def test_wrong_lengths():
    """X and y of different lengths are refused."""
    model = OKTree().fit(X, Y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(X, Y[:-1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        output_loss(Precomputed(np.eye(3)), [0, 1], [2])


def test_outputs_that_do_not_match():
    """Outputs of another type or width than the training outputs are refused."""
    labels = OKTree(kernel="dirac").fit(X, np.where(Y[:, 0] > 0, "a", "b"))
    for metric in (kernel_loss, kernel_r2):
        with pytest.raises(ValueError, match="text never equals a number"):
            metric(labels, X, np.arange(80))
        with pytest.raises(ValueError, match=r"y has 1 values in each output; .* have 2"):
            metric(OKTree().fit(X, Y), X, Y[:, 0])
    with pytest.raises(ValueError, match="text never equals a number"):
        output_loss("dirac", ["a", "b"], [1, 2])


def test_bad_sample_weights():
    """Negative weights are refused by every metric."""
    model, weight = OKTree().fit(X, Y), np.r_[-1.0, np.ones(79)]
    for metric in (kernel_loss, kernel_r2):
        with pytest.raises(ValueError, match="Negative values"):
            metric(model, X, Y, weight)
    with pytest.raises(ValueError, match="Negative values"):
        output_loss("linear", Y, Y, weight)


def test_losses_are_never_negative():
    """Rounding errors of a Gram matrix do not give losses below zero."""
    kernel = Precomputed(np.array([[1.0, 1.0 + 1e-9], [1.0 + 1e-9, 1.0]]))
    assert output_loss(kernel, [0, 1], [1, 0]) == 0.0


def test_pipelines():
    """A pipeline is scored like its model on the transformed inputs."""
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


def test_losses_of_rows():
    """Their means are the losses; kernels and pipelines are as there."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    model = OKTree(kernel=RBF(1.0), max_depth=2).fit(X, X)
    for kernel in (None, "linear"):
        losses = kernel_loss_samples(model, X, X, kernel=kernel)
        assert losses.shape == (30,)
        np.testing.assert_allclose(losses.mean(), kernel_loss(model, X, X, kernel=kernel))
    predicted = model.predict(X)
    losses = output_loss_samples(RBF(1.0), X, predicted)
    np.testing.assert_allclose(losses, 2.0 - 2.0 * RBF(1.0).pairs(X, predicted))
    np.testing.assert_allclose(losses.mean(), output_loss(RBF(1.0), X, predicted))


@pytest.mark.parametrize("scale", [2.0**1020, 1e307, 1e-305, 3.0])
def test_scores_do_not_depend_on_the_scale_of_weights(scale):
    """Weighted sums neither overflow nor vanish."""
    model = OKExtraTrees(3, random_state=0).fit(X[:40], Y[:40])
    boost = OKBoost(n_estimators=2, random_state=0).fit(X[:40], Y[:40])
    true, predicted = Y[40:], model.predict(X[40:])
    sets = [{int(i) % 3} for i in range(len(true))]
    scores = {
        "kernel_loss": lambda w: kernel_loss(model, X[40:], true, w),
        "kernel_r2": lambda w: kernel_r2(model, X[40:], true, w),
        "score": lambda w: model.score(X[40:], true, w),
        "staged_score": lambda w: list(boost.staged_score(X[40:], true, w)),
        "output_loss": lambda w: output_loss("linear", true, predicted, w),
        "rbf": lambda w: kernel_r2(model, X[40:], true, w, kernel=RBF(1.0)),
        "curves": lambda w: integrated_squared_error(true, predicted, sample_weight=w),
        "sets": lambda w: set_f1_score(sets, sets[::-1], average="micro", sample_weight=w),
    }
    for name, score in scores.items():
        found, expected = score(WEIGHT * scale), score(WEIGHT)
        assert found == pytest.approx(expected, rel=1e-9), name
        if scale == 2.0**1020:
            assert found == expected, "a power of two changes no digit"


def test_weights_of_scores_are_not_rounded():
    """They are divided by a power of two."""
    assert check_score_weight([3.0, 0.1, 0.0], np.arange(3.0)).tolist() == [0.75, 0.025, 0.0]
