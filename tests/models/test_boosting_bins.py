"""Boosting on binned inputs: where bins apply, what they change, and what stays as it was."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from okforest import OKBoost
from okforest.decode import as_decoder


def friedman(n, seed=0, n_values=None, q=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 6))
    if n_values:
        X = np.floor(X * n_values) / n_values
    y = np.sin(np.pi * X[:, 0] * X[:, 1]) + 2 * (X[:, 2] - 0.5) ** 2 + X[:, 3]
    Y = np.c_[[y * (j + 1) + X[:, j % 6] ** j for j in range(q)]].T + rng.normal(0, 0.1, (n, q))
    return X, Y if q > 1 else Y[:, 0]


def boost(X, y, weight=None, **params):
    return OKBoost(20, learning_rate=0.2, random_state=0, **params).fit(X, y, weight)


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("growth", ["variance", "gain"])
def test_few_values_are_split_exactly(q, growth):
    """With at most 255 values of each feature, bins grow the exact trees."""
    X, y = friedman(1200, n_values=100, q=q)
    binned, exact = (boost(X, y, growth=growth, max_bins=bins) for bins in (255, None))
    np.testing.assert_array_equal(binned.trees_.threshold, exact.trees_.threshold)
    np.testing.assert_array_equal(binned.trees_.members, exact.trees_.members)
    np.testing.assert_array_equal(binned.training_leaves_, exact.training_leaves_)
    np.testing.assert_allclose(binned.leaf_means_, exact.leaf_means_, atol=1e-12)
    np.testing.assert_allclose(binned.train_loss_, exact.train_loss_)


def test_fewer_bins_lose_little():
    """Trees differ, and predictions are about as good; two bins are too few."""
    X, y = friedman(3000)
    X_test, y_test = friedman(1000, seed=1)
    scores = {bins: boost(X, y, max_bins=bins).score(X_test, y_test) for bins in (2, 32, 255, None)}
    assert scores[255] == pytest.approx(scores[None], abs=0.01)
    assert scores[32] == pytest.approx(scores[None], abs=0.03)
    assert scores[2] < scores[None] - 0.05
    assert boost(X, y).score(X_test, y_test) == scores[255]  # the default
    assert scores[255] != scores[None]


def test_what_has_no_bins_is_split_exactly():
    """Few rows, wide outputs, sparse inputs, categories and random splits do not change."""
    X, y = friedman(2000)
    wide = friedman(2000, q=21)[1]
    frame = pd.DataFrame(X[:, :3], columns=[*"xyz"]).assign(c=pd.Categorical(np.floor(X[:, 3] * 4)))
    for inputs, outputs, more in (
        (X[:999], y[:999], {}),
        (X, wide, {}),
        (sp.csr_array(X), y, {}),
        (frame, y, {}),
        (X, y, {"splitter": "random"}),
    ):
        default, exact = (boost(inputs, outputs, max_bins=bins, **more) for bins in (255, None))
        np.testing.assert_array_equal(default.trees_.threshold, exact.trees_.threshold)
        np.testing.assert_array_equal(default.leaf_means_, exact.leaf_means_)


def test_weights_are_repeated_rows():
    """A row of weight 3 equals three copies of it, in the quantiles too."""
    X, y = friedman(1500)
    weight = np.random.default_rng(0).integers(0, 4, len(X)).astype(float)
    times = weight.astype(int)
    weighted = boost(X, y, weight, max_bins=20, min_samples_leaf=7)
    repeated = boost(X.repeat(times, 0), y.repeat(times), max_bins=20, min_samples_leaf=7)
    np.testing.assert_array_equal(weighted.trees_.feature, repeated.trees_.feature)
    np.testing.assert_allclose(weighted.trees_.threshold, repeated.trees_.threshold)
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X))


@pytest.mark.parametrize(
    "params",
    [{}, {"subsample": 0.5}, {"n_iter_no_change": 5}, {"max_features": 2, "growth": "gain"}],
    ids=["plain", "subsample", "early stopping", "some features"],
)
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_fitted_models_agree_with_themselves(params, missing):
    """Training leaves are reached, weights predict as leaf means do, warm starts as single fits."""
    X, y = friedman(1500)
    X[np.random.default_rng(1).uniform(size=X.shape) < missing] = np.nan
    model = boost(X, y, max_bins=30, **params)
    leaves = model.apply(X)
    for m in range(model.n_estimators_):
        order = np.argsort(model.trees_[m].begin[leaves[:, m]], kind="stable")
        assert (np.diff(model.training_leaves_[m][order].astype(int)) >= 0).all()
    predicted = model.predict(X[:50])
    np.testing.assert_allclose(model.predict_weights(X[:50]) @ y, predicted)
    np.testing.assert_allclose([*model.staged_predict(X[:50])][-1], predicted)
    residual = (y - model.predict(X)) ** 2
    assert model.train_loss_[-1] == pytest.approx(np.average(residual, weights=model.row_weight_))
    if "n_iter_no_change" not in params:
        warm = OKBoost(8, learning_rate=0.2, random_state=0, warm_start=True, max_bins=30, **params)
        warm.fit(X, y).set_params(n_estimators=20).fit(X, y)
        np.testing.assert_array_equal(warm.trees_.threshold, model.trees_.threshold)
        np.testing.assert_allclose(warm.predict(X), model.predict(X))


def test_predictions_add_up_means_of_leaves():
    """The sum of leaf means is that of the weights, also after attributes have been set."""
    X, y = friedman(1200, q=3)
    model = boost(X, y)
    for rows in (X[:1], X[:700]):
        W = model.weight_matrix(rows)
        span = model.span_
        expected = as_decoder("auto", span.kernel).decode(W, span)
        np.testing.assert_allclose(model.predict(rows), expected, rtol=1e-12)
    model.leaf_means_ = 2.0 * model.leaf_means_
    mean = y.mean(axis=0)
    np.testing.assert_allclose(model.predict(X[:9]) - mean, 2.0 * (expected[:9] - mean))


@pytest.mark.parametrize("bins", [1, 256, 3.5])
def test_impossible_numbers_of_bins_are_refused(bins):
    """The message names the parameter and its range."""
    with pytest.raises(ValueError, match="max_bins"):
        boost(*friedman(50), max_bins=bins)
