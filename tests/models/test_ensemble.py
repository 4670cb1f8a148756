"""The mean of several models."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import get_tags

import okforest
from okforest import (
    OKBoost,
    OKEnsemble,
    OKExtraTrees,
    OKNeighbors,
    OKRandomForest,
    OKRidge,
    OKTree,
)
from okforest.kernels import RBF, Precomputed

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
Y = np.column_stack([X[:, 0] ** 2, X[:, 1]])
MODELS = [OKExtraTrees(10, random_state=0), OKBoost(10, random_state=0), OKNeighbors(3)]


@pytest.mark.parametrize("kernel", ["linear", RBF(1.0)], ids=repr)
def test_weights_are_averaged(kernel, tmp_path):
    """Weights, scores and predictions follow from the weighted mean of the models' weights."""
    model = OKEnsemble(MODELS, kernel=kernel, weights=[2, 1, 1]).fit(X, Y)
    parts = [part.predict_weights(X).toarray() for part in model.estimators_]
    expected = 0.5 * parts[0] + 0.25 * parts[1] + 0.25 * parts[2]
    np.testing.assert_allclose(model.predict_weights(X).toarray(), expected, atol=1e-12)
    if kernel == "linear":
        np.testing.assert_allclose(model.predict(X), expected @ Y, atol=1e-10)
    K = model.span_.kernel(Y)
    square = np.einsum("ij,jk,ik->i", expected, K, expected)
    losses = np.diag(K) - 2 * np.einsum("ij,ji->i", expected, K) + square
    spread = (np.diag(K) - K.mean()).sum()
    assert model.score(X, Y) == pytest.approx(1 - losses.sum() / spread)
    okforest.save(model, tmp_path / "model")
    np.testing.assert_array_equal(okforest.load(tmp_path / "model").predict(X), model.predict(X))


def test_survival():
    """The mean of survival models is the mean of their curves."""
    y = np.rec.fromarrays([rng.random(80) < 0.7, np.exp(X[:, 0])], names="event,time")
    forests = [OKRandomForest(10, random_state=0), OKExtraTrees(10, random_state=0)]
    model = OKEnsemble(forests, kernel="survival").fit(X, y)
    curves = [part.predict_survival_function(X, return_array=True) for part in model.estimators_]
    found = model.predict_survival_function(X, return_array=True)
    np.testing.assert_allclose(found, np.mean(curves, axis=0), atol=1e-12)


def test_compact():
    """A compact ensemble predicts the same outputs from a smaller Gram matrix."""
    K = np.eye(500)
    model = OKEnsemble(MODELS[:1], kernel=Precomputed(K)).fit(X, np.arange(80))
    small = model.compact()
    assert len(pickle.dumps(small)) < len(pickle.dumps(model)) / 2
    np.testing.assert_array_equal(small.predict(X), model.predict(X))


def test_frames():
    """Names of features come from the models."""
    frame = pd.DataFrame(X, columns=list("abc"))
    assert OKEnsemble(MODELS[:2]).fit(frame, Y).feature_names_in_.tolist() == list("abc")


def test_errors():
    """Each misuse has its own error."""
    with pytest.raises(ValueError, match="a list of at least one model"):
        OKEnsemble([]).fit(X, Y)
    with pytest.raises(ValueError, match="a list of at least one model"):
        OKEnsemble(MODELS[0]).fit(X, Y)
    with pytest.raises(TypeError, match="pass models of okforest"):
        OKEnsemble(["forest"]).fit(X, Y)
    for weights in ([1.0], [-1.0, 1.0, 1.0], [0.0, 0.0, 0.0]):
        with pytest.raises(ValueError, match="one non-negative number for each of the 3"):
            OKEnsemble(MODELS, weights=weights).fit(X, Y)


def test_damaged_state():
    """What a file may hold is checked."""
    model = OKEnsemble(MODELS).fit(X, Y)
    model.check_state()
    model.shares_ = model.shares_[:-1]
    with pytest.raises(ValueError, match="as many models as shares_"):
        model.check_state()
    model = OKEnsemble(MODELS).fit(X, Y)
    model.estimators_[1] = MODELS[2].fit(X[:50], Y[:50])
    with pytest.raises(ValueError, match="different outputs"):
        model.check_state()


def test_ensemble_weights_of_rows():
    """Weights of rows reach the models."""
    weight = rng.uniform(0.1, 3.0, 80)
    model = OKEnsemble([OKRandomForest(5, random_state=0)]).fit(X, Y, weight)
    expected = OKRandomForest(5, random_state=0).fit(X, Y, weight).predict(X)
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-10)


def test_ensemble_with_a_share_of_zero():
    """A model may have no share."""
    model = OKEnsemble(MODELS[::2], weights=[1.0, 0.0]).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), MODELS[0].fit(X, Y).predict(X), atol=1e-10)


def test_ensemble_models_have_kernels_of_their_own():
    """Models do not share the kernel object."""
    kernel = RBF(1.0)
    model = OKEnsemble(MODELS, kernel=kernel).fit(X, Y)
    assert all(part.kernel is not kernel for part in model.estimators_)


@pytest.mark.parametrize("damage", ["tuple", "no model", "broken model"])
def test_ensemble_damage(damage):
    """A damaged ensemble is found when it is read."""
    model = OKEnsemble(MODELS).fit(X, Y)
    if damage == "tuple":
        model.estimators_ = tuple(model.estimators_)
    elif damage == "no model":
        model.estimators_[1] = "model"
    else:
        model.estimators_[0].trees_ = None
    with pytest.raises(ValueError, match=r"estimators_|trees_"):
        model.check_state()


def test_ensemble_tags():
    """An ensemble takes what all its models take."""
    both = get_tags(OKEnsemble([OKTree(), OKRidge()])).input_tags
    assert get_tags(OKTree()).input_tags.allow_nan
    assert both.allow_nan == get_tags(OKRidge()).input_tags.allow_nan
    sparse = [get_tags(model).input_tags.sparse for model in (OKTree(), OKRidge())]
    assert both.sparse == all(sparse)


@pytest.mark.parametrize("share", [np.nan, np.inf])
def test_shares_are_finite(share):
    """Shares that are not numbers are refused."""
    with pytest.raises(ValueError, match="pass one non-negative number for each of the 3"):
        OKEnsemble(MODELS, weights=[1.0, share, 1.0]).fit(X, Y)
