"""Boosting of other base learners than trees, and the protocol that they keep."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

import okforest
from okforest import DirectionBase, OKBoost, OKExtraTrees, OKNeighbors, OKRidge
from okforest.kernels import RBF
from okforest.metrics import kernel_loss
from reference.averagers import neighbor_weights, ridge_weights
from reference.boosting import learning_stage, prediction_stage

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 4))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 2] > 0, 0.1 * rng.normal(size=40)]
NEW = rng.normal(size=(11, 4))
Y_NEW = np.c_[NEW[:, 0] * NEW[:, 1], NEW[:, 2] > 0, rng.normal(size=11)]
KERNELS = [pytest.param("linear", id="linear"), pytest.param(RBF(1.0), id="rbf")]


class Smoother(BaseEstimator):
    """A base learner of the user's own: weights by distance, of the rows that weigh something."""

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
    "ridge": (OKRidge(0.5), lambda A: ridge_weights(gram(X, X), gram(A, X), 0.5, np.ones(40, int))),
    "own": (Smoother(2.0), lambda A: Smoother(2.0).fit(X, None).predict_weights(A).toarray()),
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("line_search", [False, True])
@pytest.mark.parametrize("base", BASES)
def test_averagers_by_the_papers_algorithms(base, kernel, line_search):
    """Weights of every stage are those of Algorithms 3 and 4, with the scales of the rounds."""
    base, weights = BASES[base]
    model = OKBoost(5, kernel=kernel, base=base, learning_rate=0.4, line_search=line_search)
    model.fit(X, Y)
    K = model.kernel_(Y)

    def scale(m):
        return model.scales_[m]

    models = learning_stage(K, X, lambda K, m: weights, np.ones(40), scale, 5)
    stages = prediction_stage(models, X, NEW, np.ones(40), scale)
    for W, expected in zip(model.staged_weights(NEW), stages, strict=True):
        np.testing.assert_allclose(W.toarray(), expected, atol=1e-9)
    np.testing.assert_allclose(model.predict_weights(NEW).toarray(), stages[-1], atol=1e-9)
    np.testing.assert_allclose(model._weights(NEW) @ K[0], stages[-1] @ K[0], atol=1e-9)
    losses = [loss.mean() for loss in model.staged_losses(X, Y)]
    np.testing.assert_allclose(model.train_loss_, losses, atol=1e-9)
    assert model.score(NEW, Y_NEW) == pytest.approx(list(model.staged_score(NEW, Y_NEW))[-1])
    assert line_search or (model.scales_ == 0.4).all()


@pytest.mark.parametrize("base", [base for base, _ in BASES.values()], ids=BASES)
def test_line_search_is_the_best_scale(base):
    """No other scale of the first round leaves less; the loss never rises with it."""
    model = OKBoost(8, kernel=RBF(1.0), base=base, learning_rate=1.0, line_search=True).fit(X, Y)
    best = model.scales_[0]
    losses = [
        OKBoost(1, kernel=RBF(1.0), base=base, learning_rate=scale).fit(X, Y).train_loss_[0]
        for scale in (best * 0.99, best, best * 1.01)
    ]
    assert losses[1] == pytest.approx(model.train_loss_[0])
    assert losses[1] < min(losses[0], losses[2])
    assert (np.diff(model.train_loss_) <= 1e-12).all()


@pytest.mark.parametrize("direction", ["principal", "random", "sample"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_directions_by_hand(direction, kernel):
    """Each round adds f(x) v, v a unit vector among the residuals, f fitted to ⟨φ, v⟩."""
    base = DirectionBase(KNeighborsRegressor(3), direction)
    model = OKBoost(6, kernel=kernel, base=base, learning_rate=0.5, random_state=0).fit(X, Y)
    K = model.kernel_(Y)
    O = np.eye(40) - 1 / 40  # noqa: E741
    W = np.full((11, 40), 1 / 40)
    for m, learnt in enumerate(model.bases_):
        K_m = O @ K @ O.T
        a = learnt.coefficients_
        assert a @ K_m @ a == pytest.approx(1.0)
        if direction == "principal":
            largest = np.linalg.eigvalsh(K_m)[-1]
            assert ((K_m @ a) ** 2).sum() == pytest.approx(largest)
        elif direction == "sample":
            assert (a != 0).sum() == 1
        f = KNeighborsRegressor(3).fit(X, K_m @ a)
        W = W + 0.5 * np.outer(f.predict(NEW), a @ O)
        O = O - 0.5 * np.outer(f.predict(X), a @ O)  # noqa: E741
        np.testing.assert_allclose(list(model.staged_weights(NEW))[m].toarray(), W, atol=1e-9)
    np.testing.assert_allclose(model.predict_weights(NEW).toarray(), W, atol=1e-9)
    np.testing.assert_allclose(model._weights(NEW) @ Y[:, 0], W @ Y[:, 0], atol=1e-9)
    assert model.train_loss_[-1] == pytest.approx(kernel_loss(model, X, Y))
    if direction != "principal":
        assert not np.allclose(model.bases_[0].coefficients_, model.bases_[1].coefficients_)


@pytest.mark.parametrize("direction", ["principal", "random", "sample"])
def test_one_output_is_gradient_boosting(direction):
    """In one dimension all directions are the same: boosting of the regressor itself."""
    base = DirectionBase(DecisionTreeRegressor(max_depth=3), direction)
    ours = OKBoost(30, base=base, learning_rate=0.1, random_state=0).fit(X, Y[:, 0])
    theirs = GradientBoostingRegressor(n_estimators=30, max_depth=3, random_state=0)
    theirs.fit(X, Y[:, 0])
    np.testing.assert_allclose(ours.train_loss_, theirs.train_score_, rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_linear_regression_in_many_directions(seed):
    """Random directions, one after the other, make the least-squares fit of all outputs."""
    base = DirectionBase(LinearRegression(), "random")
    model = OKBoost(200, base=base, learning_rate=1.0, random_state=seed).fit(X, Y)
    expected = LinearRegression().fit(X, Y).predict(NEW)
    np.testing.assert_allclose(model.predict(NEW), expected, atol=1e-6)


@pytest.mark.parametrize(
    "base",
    [OKNeighbors(3), OKRidge(), Smoother(), OKExtraTrees(5), DirectionBase(LinearRegression())],
    ids=["neighbours", "ridge", "own", "forest", "direction"],
)
def test_weights_held_out_rows_subsamples_and_going_on(base):
    """Rows of weight zero have no part in predictions, and rounds can be added."""
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
        (X[:30], Y[:30], "X has 30 rows, other than before"),
        (-X, Y, "X is another than before"),
        (X, -Y, "y is another than before"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X_new, Y_new)


def test_a_forest_as_base_learner():
    """Small forests are base learners, too."""
    base = OKExtraTrees(10, max_leaf_nodes=6, random_state=5)
    model = OKBoost(20, base=base, kernel=RBF(1.0), learning_rate=0.3, random_state=0).fit(X, Y)
    assert model.train_loss_[-1] < 0.5 * model.train_loss_[0]
    trees = [learnt.trees_.threshold for learnt in model.bases_[:2]]
    assert not np.array_equal(*trees)  # each round draws anew


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
    loaded.bases_.pop()
    with pytest.raises(ValueError, match="bases_ has 3 entries, not 4"):
        okforest.persistence.consistency.check_model(loaded)


def test_inputs_are_ours():
    """A model does not change with the array that it was fitted to."""
    own = X.copy()
    model = OKBoost(3, base=OKRidge()).fit(own, Y)
    before = model.predict(NEW)
    own[:] = 0.0
    np.testing.assert_array_equal(model.predict(NEW), before)


def test_what_bases_cannot_do():
    """Errors say what to do."""
    with pytest.raises(ValueError, match="residuals are vectors, whose kernel is 'linear'"):
        OKBoost(2, base=OKRidge(kernel="rbf")).fit(X, Y)
    with pytest.raises(ValueError, match="embedding='gram' has none"):
        OKBoost(2, base=OKRidge(), embedding="gram").fit(X, Y)
    model = OKBoost(2, base=OKRidge()).fit(X, Y)
    with pytest.raises(ValueError, match="has no trees, and no leaves; use base='tree'"):
        model.apply(X)
    assert not hasattr(model, "feature_importances_")
    with pytest.raises(AttributeError, match="is no tree, and has no feature_importances_"):
        model.feature_importances_  # noqa: B018
    with pytest.raises(ValueError, match="'base' parameter of OKBoost"):
        OKBoost(2, base=LinearRegression()).fit(X, Y)
    with pytest.raises(ValueError, match="missing values"):
        OKBoost(2, base=OKRidge()).fit(np.where(X > 1, np.nan, X), Y)
    with pytest.raises(ValueError, match="'direction' parameter of DirectionBase"):
        DirectionBase(LinearRegression(), "best").fit(X, Y)
    model = OKBoost(2, warm_start=True).fit(X, Y)
    with pytest.raises(ValueError, match="base is another than before"):
        model.set_params(base=OKRidge(), n_estimators=3).fit(X, Y)
    nothing = DirectionBase(LinearRegression(), "sample").fit(X, np.zeros((40, 2)))
    assert (nothing.predict_weights(NEW).dense == 0).all()


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
    """A wrong parameter is an error here as it is of the base learner alone."""
    with pytest.raises(ValueError, match=message):
        OKBoost(2, base=base).fit(X, Y)


class Wrong(Smoother):
    """A base learner whose weights are not as they should be."""

    def __init__(self, change=None, kernel="triangle"):
        self.width, self.change, self.kernel = 1.0, change, kernel

    def predict_weights(self, X):
        return self.change(super().predict_weights(X))


def test_weights_of_own_bases_are_checked():
    """What a base learner returns is looked at, at once; its kernel is its own business."""
    for change in (lambda W: W.toarray(), lambda W: W[:, :-1]):
        with pytest.raises(TypeError, match=r"must return a sparse matrix .*, of shape \(40, 40\)"):
            OKBoost(2, base=Wrong(change)).fit(X, Y)
    with pytest.raises(ValueError, match="predicts weights that are not finite"):
        OKBoost(2, base=Wrong(lambda W: W * np.nan)).fit(X, Y)
    same = OKBoost(3, base=Wrong(lambda W: W), random_state=0).fit(X, Y)
    np.testing.assert_array_equal(
        same.predict(NEW), OKBoost(3, base=Smoother(), random_state=0).fit(X, Y).predict(NEW)
    )


def test_regressors_without_weights():
    """They are fitted to the rows drawn; other weights are refused."""
    weight = np.where(np.arange(40) % 3 == 0, 0.0, 2.0)
    base = DirectionBase(KNeighborsRegressor(3)).fit(X, Y, weight)
    target = Y @ (base.coefficients_ @ Y)
    alone = KNeighborsRegressor(3).fit(X[weight > 0], target[weight > 0])
    np.testing.assert_array_equal(base.regressor_.predict(NEW), alone.predict(NEW))
    for params in ({"subsample": 0.5}, {"n_iter_no_change": 5}):
        OKBoost(5, base=DirectionBase(KNeighborsRegressor()), **params).fit(X, Y).predict(NEW)
    with pytest.raises(ValueError, match="takes no sample_weight, and the rows' weights differ"):
        DirectionBase(KNeighborsRegressor()).fit(X, Y, np.arange(1.0, 41.0))
