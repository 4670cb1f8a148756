"""Parts of the semi-supervised refit: missing outputs, growth, weights, and the second forest."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from okforest import OKBoost, OKExtraTrees, OKRandomForest, OKTotallyRandomTrees
from okforest.kernels import RBF, as_kernel
from okforest.refit import Bounds, SemiSupervisedForest, knn_laplacian
from okforest.refit.labels import labelled_rows, select
from okforest.refit.laplacian import completed_means, grow_labelled
from okforest.refit.leaves import LeafExpansion

INF = np.inf
INPUTS, SPECIES = load_iris(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(150)
XI, LABELS = INPUTS[ORDER], SPECIES[ORDER]
YI = np.where(np.arange(150) < 30, LABELS, -1)
X = np.random.default_rng(0).uniform(size=(150, 3))
WEIGHT = np.random.default_rng(1).uniform(0.2, 3.0, 150)
DIRAC = OKExtraTrees(15, kernel="dirac", min_samples_leaf=2, random_state=0)
TREES = OKTotallyRandomTrees(10, min_samples_leaf=5, random_state=0)


@pytest.mark.parametrize("priors", [[], [Bounds(-100.0)]], ids=["direct", "priors"])
def test_weights_scale_the_loss(priors):
    """The derivative by every leaf value vanishes, with weights of rows."""
    if priors:
        pytest.importorskip("clarabel", reason="Clarabel is not installed")
    y = np.where(np.arange(150) < 40, X[:, 0], np.nan)
    model = SemiSupervisedForest(TREES, laplacian_penalty=0.3, leaf_penalty=0.5, priors=priors).fit(
        X, y, WEIGHT
    )
    L = LeafExpansion(model.estimator_.trees_).rows(model.estimator_.apply(X))
    f = model.predict(X)
    change = (model.leaf_adjustments_ @ model.basis_) @ y[:40]
    slope = np.where(np.arange(150) < 40, WEIGHT * (f - np.nan_to_num(y)), 0.0)
    away = f - np.average(y[:40], weights=WEIGHT[:40])
    gradient = L.T @ (slope + 0.3 * knn_laplacian(X) @ away) + 0.5 / 10 * change
    np.testing.assert_allclose(gradient, 0.0, atol=1e-6)


def test_trees_are_grown_with_weights():
    """Weights of rows count in growth."""
    model = SemiSupervisedForest(DIRAC).fit(XI, YI, WEIGHT)
    plain = clone(DIRAC).fit(XI[:30], LABELS[:30], WEIGHT[:30]).predict_weights(XI)
    assert abs(model.estimator_.predict_weights(XI) - plain).max() == 0


def test_leaves_with_few_labels_are_renormalised():
    """Weights sum to 1 where few leaves have labels."""
    y = np.where(np.arange(150) < 25, X[:, 0], np.nan)
    trees = OKTotallyRandomTrees(20, min_samples_leaf=5, random_state=0)
    model = SemiSupervisedForest(trees, laplacian=None, leaf_penalty=1e12).fit(X, y)
    rows = LeafExpansion(model.estimator_.trees_).rows(model.estimator_.apply(X))
    sums = (rows @ model.leaf_means_).sum(axis=1)
    assert 0 < sums.min() < 0.5
    np.testing.assert_allclose(model.predict_weights(X).sum(axis=1), 1.0, atol=1e-9)


MISSING = {
    "negative labels": (np.array([-2, -1, 0]), "dirac", [True, False, True]),
    "integer vectors": (np.array([[-1, -1], [0, 1]]), "linear", [True, True]),
    "NaN object": (np.array(["a", np.nan, None], dtype=object), "dirac", [True, False, False]),
    "NaN vectors": ([np.array([1.0, 2.0]), np.array([np.nan, np.nan])], "linear", [True, False]),
    "censored times": (
        np.array([[1.0, INF], [-INF, 2.0], [-INF, INF]]),
        "survival",
        [True, True, False],
    ),
    "events": (
        np.rec.fromarrays([[True, False], [1.0, 2.0]], names="e,t"),
        "survival",
        [True, True],
    ),
}


@pytest.mark.parametrize(("y", "kernel", "expected"), MISSING.values(), ids=MISSING)
def test_missing_outputs(y, kernel, expected):
    """Missing are only the outputs that the rules name."""
    assert labelled_rows(y, as_kernel(kernel)).tolist() == expected


def test_partly_masked():
    """An output is masked as a whole."""
    y = np.ma.masked_array(np.ones((3, 2)), mask=[[0, 0], [0, 1], [1, 1]])
    with pytest.raises(ValueError, match=r"y\[1\] is partly masked"):
        labelled_rows(y, as_kernel("linear"))


def test_selection_by_position():
    """Rows are selected by position, whatever the index."""
    y = pd.Series([1.0, 2.0, 3.0], index=[2, 0, 1])
    assert select(y, np.array([0, 2])).tolist() == [1.0, 3.0]
    frame = y.to_frame().assign(b=0.0)
    assert select(frame, np.array([0, 2]))[0].tolist() == [1.0, 3.0]
    assert select(np.array(["a", "b", None], dtype=object), np.array([0, 1])).dtype.kind == "U"


def test_regrow_and_again():
    """A second fit leaves nothing of the first one."""
    model = SemiSupervisedForest(DIRAC, regrow=True).fit(XI, YI)
    model.set_params(regrow=False).fit(XI, YI)
    plain = SemiSupervisedForest(DIRAC, regrow=False).fit(XI, YI)
    weights, expected = (m.predict_weights(XI).toarray() for m in (model, plain))
    np.testing.assert_array_equal(weights, expected)
    assert not hasattr(model, "regrown_")
    assert not hasattr(model, "regrown_on_")


def test_regrown_on_feature_space():
    """With a kernel without features, distances of the predictions are those in H."""
    y = np.where(np.arange(150)[:, None] < 30, X[:, :2], np.nan)
    forest = OKExtraTrees(5, kernel=RBF(1.0), min_samples_leaf=2, random_state=0)
    model = SemiSupervisedForest(forest, regrow=True).fit(X, y)
    W, K = model.regrown_on_, model.kernel_(model.outputs_)
    Z = model.regrown_.outputs_
    np.testing.assert_allclose(Z @ Z.T, W @ K @ W.T, atol=1e-8)


def test_damaged_regrown():
    """A damaged second forest is found when a model is read."""
    model = SemiSupervisedForest(DIRAC, regrow=True).fit(XI, YI)
    model.regrown_on_ = model.regrown_on_[:-1]
    with pytest.raises(ValueError, match="regrown_on_ has shape"):
        model.check_state()
    model = SemiSupervisedForest(DIRAC, regrow=True).fit(XI, YI)
    model.regrown_ = OKBoost()
    with pytest.raises(ValueError, match=r"regrown_ is OKBoost\(\), not a TreeModel"):
        model.check_state()
    model = SemiSupervisedForest(DIRAC, regrow=True).fit(XI, YI)
    model.regrown_.trees_ = None
    with pytest.raises(ValueError, match="trees_"):
        model.check_state()


def test_warns_if_it_stops_early(monkeypatch):
    """A refit that stops early gives a warning, and its gap."""
    monkeypatch.setattr("okforest.refit.laplacian.DENSE", 10)
    with pytest.warns(ConvergenceWarning, match="after 2 steps"):
        model = SemiSupervisedForest(DIRAC, max_iter=2).fit(XI, YI)
    assert model.n_iter_ == 2
    assert model.gradient_norm_ > model.tol
    assert SemiSupervisedForest(DIRAC).fit(XI, YI).gradient_norm_ <= 1e-6


def test_compact_leaves_the_model():
    """The model and its forest do not change."""
    forest = clone(DIRAC)
    model = SemiSupervisedForest(forest).fit(XI, YI)
    small = model.compact()
    assert forest.kernel == "dirac"
    assert small.estimator is not forest


@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("weight", [None, np.linspace(0.5, 40.0, 60)])
def test_adjusted_outputs_without_unlabelled_rows(bootstrap, weight):
    """Without unlabelled rows nothing is adjusted: it is the plain forest, also a weighted one."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    forest = OKRandomForest(10, bootstrap=bootstrap, min_samples_leaf=4, random_state=0)
    model = SemiSupervisedForest(forest, adjust="outputs").fit(X, y, weight)
    expected = forest.fit(X, y, weight)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-12)


@pytest.mark.parametrize("forest", [OKRandomForest, OKTotallyRandomTrees])
def test_completed_means(forest):
    """A leaf averages labelled rows as the forest does, and unlabelled ones as average rows."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    weight = np.where(np.arange(60) % 7 == 0, 0.0, 5.0)
    known = np.arange(60) < 40
    parameters = {"bootstrap": False} if forest is OKRandomForest else {}
    new = forest(4, min_samples_leaf=6, random_state=0, **parameters)
    grown = grow_labelled(new, X, y[known], known, weight)
    labelled, unlabelled = (part.toarray() for part in completed_means(grown))
    expected = (grown.L.toarray() > 0).T * np.append(weight[:40], np.full(20, 5.0))
    expected /= np.maximum(expected.sum(axis=1, keepdims=True), 1e-300)
    np.testing.assert_allclose(labelled, expected[:, :40], atol=1e-12)
    np.testing.assert_allclose(unlabelled, expected[:, 40:], atol=1e-12)


@pytest.mark.parametrize("adjust", ["leaves", "outputs"])
def test_weights_with_totally_randomised_trees(adjust):
    """Trees that are grown without outputs average outputs of labelled rows by weight."""
    weight = np.where(np.arange(150) % 3 == 0, 0.0, WEIGHT)
    y = np.where(np.arange(150) < 40, X[:, 0], np.nan)
    model = SemiSupervisedForest(TREES, adjust=adjust)
    expected = model.fit(X, y, weight).predict(X)
    y[:40:3] = 50.0
    np.testing.assert_allclose(model.fit(X, y, weight).predict(X), expected, atol=1e-8)
    plain = SemiSupervisedForest(TREES, leaf_penalty=1e12).fit(X, y, weight)
    L = LeafExpansion(plain.estimator_.trees_).rows(plain.estimator_.apply(X)).toarray()[:, :, None]
    shares = (L[:40] > 0) * weight[:40, None, None]
    totals = shares.sum(axis=0)
    means = (shares * y[:40, None, None]).sum(axis=0) / np.where(totals > 0, totals, 1.0)
    f = (L * means).sum(axis=1) / (L * (totals > 0)).sum(axis=1)
    np.testing.assert_allclose(plain.predict(X), f[:, 0], atol=1e-8)
