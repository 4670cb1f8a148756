"""Boosting of base learners other than trees, and what it requires of them."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression

import okforest
from okforest import DirectionBase, OKBoost, OKExtraTrees, OKNeighbors, OKRidge
from okforest.kernels import RBF
from reference.averagers import neighbor_weights, ridge_weights
from reference.boosting import learning_stage, prediction_stage

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 4))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 2] > 0, 0.1 * rng.normal(size=40)]
NEW = rng.normal(size=(11, 4))
Y_NEW = np.c_[NEW[:, 0] * NEW[:, 1], NEW[:, 2] > 0, rng.normal(size=11)]
KERNELS = [pytest.param("linear", id="linear"), pytest.param(RBF(1.0), id="rbf")]


class Smoother(BaseEstimator):
    """A base learner of the user: weights decrease with the distance."""

    def __init__(self, width=1.0):
        self.width = width

    def fit(self, X, y, sample_weight=None):
        self.X_, self.weight_ = X, np.ones(len(X)) if sample_weight is None else sample_weight
        return self

    def predict_weights(self, X):
        squares = ((X[:, None] - self.X_[None]) ** 2).sum(axis=2)
        W = np.exp(-squares / self.width) * self.weight_
        return sp.csr_array(W / W.sum(axis=1, keepdims=True))


def distances(A, B):
    return np.sqrt(((A[:, None] - B[None]) ** 2).sum(axis=2))


def gram(A, B):
    return np.exp(-0.25 * distances(A, B) ** 2)


BASES = {
    "neighbours": (
        OKNeighbors(3),
        lambda A: neighbor_weights(distances(A, X), 3, np.ones(40, int)),
    ),
    "ridge": (
        OKRidge(0.5),
        lambda A: ridge_weights(gram(X, X), gram(A, X), 0.5, np.ones(40, int), intercept=True),
    ),
    "own": (Smoother(2.0), lambda A: Smoother(2.0).fit(X, None).predict_weights(A).toarray()),
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("base", BASES)
def test_averagers_by_the_papers_algorithms(base, kernel):
    """Weights of every stage follow Algorithms 3 and 4, with the scales of the rounds."""
    base, weights = BASES[base]
    model = OKBoost(5, kernel=kernel, base=base, learning_rate=0.4)
    model.fit(X, Y)
    K = model.kernel_(Y)

    def scale(m):
        return model.scales_[m]

    models = learning_stage(K, X, lambda K, m: weights, np.ones(40), scale, 5)
    stages = prediction_stage(models, X, NEW, np.ones(40), scale)
    for W, expected in zip(model.staged_weights(NEW), stages, strict=True):
        np.testing.assert_allclose(W.toarray(), expected, atol=1e-9)
    np.testing.assert_allclose(model.predict_weights(NEW).toarray(), stages[-1], atol=1e-9)
    np.testing.assert_allclose(model.weight_matrix(NEW) @ K[0], stages[-1] @ K[0], atol=1e-9)
    losses = [loss.mean() for loss in model.staged_losses(X, Y)]
    np.testing.assert_allclose(model.train_loss_, losses, atol=1e-9)
    assert model.score(NEW, Y_NEW) == pytest.approx(list(model.staged_score(NEW, Y_NEW))[-1])
    assert (model.scales_ == 0.4).all()


@pytest.mark.parametrize(
    "base",
    [OKNeighbors(3), OKRidge(), Smoother(), OKExtraTrees(5), DirectionBase(LinearRegression())],
    ids=["neighbours", "ridge", "own", "forest", "direction"],
)
def test_weights_of_zero_and_warm_starts(base):
    """Rows that are held out have no effect on predictions, and rounds can be added."""
    params = {"subsample": 0.7, "n_iter_no_change": 50, "random_state": 0, "kernel": RBF(1.0)}
    at_once = OKBoost(6, base=base, **params).fit(X, Y)
    model = OKBoost(3, base=base, warm_start=True, **params).fit(X, Y)
    model.set_params(n_estimators=6).fit(X, Y)
    for name in ("train_loss_", "validation_loss_", "oob_improvement_", "scales_"):
        assert np.array_equal(getattr(model, name), getattr(at_once, name)), name
    W = model.predict_weights(NEW).toarray()
    np.testing.assert_allclose(W[:, model.held_out_], 0.0, atol=1e-15)
    np.testing.assert_allclose(W.sum(axis=1), 1.0)
    losses = [loss[model.held_out_].mean() for loss in model.staged_losses(X, Y)]
    np.testing.assert_allclose(model.validation_loss_, losses)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(again.predict_weights(NEW).toarray(), W)
    model.set_params(n_estimators=8)
    for X_new, Y_new, message in (
        (X[:30], Y[:30], "X has 30 rows and differs from the previous fit"),
        (-X, Y, "X differs from the previous fit"),
        (X, -Y, "y differs from the previous fit"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X_new, Y_new)


def test_a_forest_as_base_learner():
    """Small forests can be boosted; each has its own seed."""
    base = OKExtraTrees(10, max_leaf_nodes=6, random_state=5)
    model = OKBoost(20, base=base, kernel=RBF(1.0), learning_rate=0.3, random_state=0).fit(X, Y)
    assert model.train_loss_[-1] < 0.5 * model.train_loss_[0]
    trees = [learnt.trees_.threshold for learnt in model.bases_[:2]]
    assert not np.array_equal(*trees)


@pytest.mark.parametrize("base", [OKNeighbors(3), OKRidge()], ids=["neighbours", "ridge"])
def test_sparse_inputs_and_saving(base, tmp_path):
    """Sparse inputs give the model of dense ones, and models are saved with their bases."""
    dense = np.where(np.abs(X) > 0.5, X, 0.0)
    model = OKBoost(4, base=base, kernel=RBF(1.0)).fit(sp.csr_array(dense), Y)
    expected = OKBoost(4, base=base, kernel=RBF(1.0)).fit(dense, Y).predict_weights(NEW)
    np.testing.assert_allclose(model.predict_weights(NEW).toarray(), expected.toarray(), atol=1e-10)
    okforest.save(model, tmp_path / "model")
    loaded = okforest.load(tmp_path / "model")
    np.testing.assert_allclose(
        loaded.predict_weights(NEW).toarray(), expected.toarray(), atol=1e-10
    )


def test_inputs_are_copied():
    """A change of the training array does not change the model."""
    inputs = X.copy()
    model = OKBoost(3, base=OKRidge()).fit(inputs, Y)
    before = model.predict(NEW)
    inputs[:] = 0.0
    np.testing.assert_array_equal(model.predict(NEW), before)


def test_trees_are_needed():
    """Leaves and importances of other base learners are errors."""
    model = OKBoost(2, base=OKRidge()).fit(X, Y)
    with pytest.raises(ValueError, match=r"fitted with base=OKRidge\(\), which has no leaves; use"):
        model.apply(X)
    assert not hasattr(model, "feature_importances_")
    with pytest.raises(AttributeError, match="feature_importances_ needs trees, but this model"):
        model.feature_importances_  # noqa: B018


class NotAnEstimator:
    """It can be fitted, but not cloned."""

    def fit(self, X, y):
        return self

    def predict_weights(self, X):
        return None


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("forest", "base='forest' is not known; use base='tree' or an estimator, such as"),
        (OKRidge, r"base=OKRidge is a class; pass an object, such as OKRidge\(\)"),
        (LinearRegression(), r"has no predict_weights; .* base=DirectionBase\(LinearRegression"),
        (3, "base=3 has no fit and no predict_weights and no get_params; use base='tree'"),
        (None, "base=None has no fit and no predict_weights"),
        (NotAnEstimator(), "has no get_params; .* derived from sklearn.base.BaseEstimator"),
        (OKRidge(kernel="rbf"), "has kernel='rbf', but .* Pass the kernel to OKBoost, and leave"),
    ],
    ids=["name", "class", "regressor", "number", "none", "no estimator", "kernel"],
)
def test_bases_are_checked(base, message):
    """What cannot be boosted is an error that names the remedy."""
    with pytest.raises(ValueError, match=message):
        OKBoost(2, base=base).fit(X, Y)


def test_inputs_and_outputs_of_bases_are_checked():
    """Residuals are vectors, and missing values are up to the base learner."""
    with pytest.raises(ValueError, match=r"'gram' gives no vectors.* use embedding='auto'"):
        OKBoost(2, base=OKRidge(), embedding="gram").fit(X, Y)
    with pytest.raises(ValueError, match="missing values"):
        OKBoost(2, base=OKRidge()).fit(np.where(X > 1, np.nan, X), Y)


@pytest.mark.parametrize(
    ("base", "message"),
    [
        (DirectionBase(LinearRegression(), "main"), "'direction' parameter of DirectionBase"),
        (OKRidge(alpha=0.0), "'alpha' parameter of OKRidge"),
        (OKNeighbors(weights="near"), "'weights' parameter of OKNeighbors"),
        (OKExtraTrees(0), "'n_estimators' parameter of OKExtraTrees"),
    ],
)
def test_parameters_of_bases_are_checked(base, message):
    """A wrong parameter is the same error as without boosting."""
    with pytest.raises(ValueError, match=message):
        OKBoost(2, base=base).fit(X, Y)


class Wrong(Smoother):
    """A base learner with wrong weights."""

    def __init__(self, change=None, kernel="triangle"):
        self.width, self.change, self.kernel = 1.0, change, kernel

    def predict_weights(self, X):
        return self.change(super().predict_weights(X))


def test_weights_of_own_bases_are_checked():
    """Their shape and values are checked in the first round; a kernel of their own is not."""
    with pytest.raises(TypeError, match=r"of shape \(40, 39\) for .* expected \(40, 40\)"):
        OKBoost(2, base=Wrong(lambda W: W[:, :-1])).fit(X, Y)
    with pytest.raises(ValueError, match="predicts weights that are not finite"):
        OKBoost(2, base=Wrong(lambda W: W * np.nan)).fit(X, Y)
    expected = OKBoost(3, base=Smoother(), random_state=0).fit(X, Y).predict(NEW)
    for form in (lambda W: W, lambda W: W.toarray()):
        same = OKBoost(3, base=Wrong(form), random_state=0).fit(X, Y)
        np.testing.assert_allclose(same.predict(NEW), expected)


def test_bases_without_sample_weight():
    """They are told where boosting needs weights."""

    class Unweighted(Smoother):
        def fit(self, X, y):
            return super().fit(X, y)

    OKBoost(2, base=Unweighted()).fit(X, Y)
    with pytest.raises(ValueError, match="has no parameter sample_weight, which subsample"):
        OKBoost(2, base=Unweighted(), subsample=0.5).fit(X, Y)
