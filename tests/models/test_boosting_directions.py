"""Base learners that fit a regressor in one direction of feature space."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

import okforest
from okforest import DirectionBase, OKBoost, OKTree
from okforest.kernels import RBF
from okforest.metrics import kernel_loss
from okforest.models.boosting import bases

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 4))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 2] > 0, 0.1 * rng.normal(size=40)]
NEW = rng.normal(size=(11, 4))
KERNELS = [pytest.param("linear", id="linear"), pytest.param(RBF(1.0), id="rbf")]


@pytest.mark.parametrize("direction", ["principal", "random", "sample"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_directions_by_hand(direction, kernel):
    """Each round adds f(x) v, where v is a unit vector and f is fitted to the projections on it."""
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
    np.testing.assert_allclose(model.weight_matrix(NEW) @ Y[:, 0], W @ Y[:, 0], atol=1e-9)
    assert model.train_loss_[-1] == pytest.approx(kernel_loss(model, X, Y))
    if direction != "principal":
        assert not np.allclose(model.bases_[0].coefficients_, model.bases_[1].coefficients_)


@pytest.mark.parametrize("direction", ["principal", "random", "sample"])
def test_one_output_is_gradient_boosting(direction):
    """With one output all directions are equal, and the regressor itself is boosted."""
    base = DirectionBase(DecisionTreeRegressor(max_depth=3), direction)
    ours = OKBoost(30, base=base, learning_rate=0.1, random_state=0).fit(X, Y[:, 0])
    theirs = GradientBoostingRegressor(n_estimators=30, max_depth=3, random_state=0)
    theirs.fit(X, Y[:, 0])
    np.testing.assert_allclose(ours.train_loss_, theirs.train_score_, rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_linear_regression_in_many_directions(seed):
    """Random directions, one after the other, give the least-squares fit of all outputs."""
    base = DirectionBase(LinearRegression(), "random")
    model = OKBoost(200, base=base, learning_rate=1.0, random_state=seed).fit(X, Y)
    expected = LinearRegression().fit(X, Y).predict(NEW)
    np.testing.assert_allclose(model.predict(NEW), expected, atol=1e-6)


def test_regressors_without_sample_weight():
    """They are fitted to the rows that were drawn; unequal weights are an error."""
    weight = np.where(np.arange(40) % 3 == 0, 0.0, 2.0)
    base = DirectionBase(KNeighborsRegressor(3)).fit(X, Y, weight)
    target = Y @ (base.coefficients_ @ Y)
    alone = KNeighborsRegressor(3).fit(X[weight > 0], target[weight > 0])
    np.testing.assert_array_equal(base.regressor_.predict(NEW), alone.predict(NEW))
    for params in ({"subsample": 0.5}, {"n_iter_no_change": 5}):
        OKBoost(5, base=DirectionBase(KNeighborsRegressor()), **params).fit(X, Y).predict(NEW)
    with pytest.raises(ValueError, match="does not support sample_weight, and the weights"):
        DirectionBase(KNeighborsRegressor()).fit(X, Y, np.arange(1.0, 41.0))


@pytest.mark.parametrize("shape", [(60, 40), (40, 60), (40, 40)], ids=["long", "wide", "square"])
def test_principal_coefficients(shape, monkeypatch):
    """They maximise the weighted sum of squares, by either method."""
    rng = np.random.default_rng(0)
    y, weight = rng.normal(size=shape), rng.integers(0, 3, shape[0]).astype(float)
    covariance = (weight[:, None] * y).T @ y
    dense = bases.principal_coefficients(y, weight)
    monkeypatch.setattr(bases, "DENSE", 10)
    iterated = bases.principal_coefficients(y, weight)
    np.testing.assert_allclose(iterated, dense, atol=1e-12)
    v = iterated @ y
    assert v @ v == pytest.approx(1.0)
    assert v @ covariance @ v == pytest.approx(np.linalg.eigvalsh(covariance)[-1])
    assert iterated.sum() >= 0
    assert (iterated[weight == 0] == 0).all()


def test_principal_coefficients_of_low_rank(monkeypatch):
    """Restarts of the iterations, which low ranks need, do not make results random."""
    monkeypatch.setattr(bases, "DENSE", 10)
    rng = np.random.default_rng(0)
    y = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 70))
    first, *others = (bases.principal_coefficients(y, np.ones(80)) for _ in range(5))
    assert all(np.array_equal(first, other) for other in others)
    v = first @ y
    assert v @ y.T @ y @ v == pytest.approx(np.linalg.eigvalsh(y.T @ y)[-1])


@pytest.mark.parametrize("direction", ["principal", "random", "sample"])
def test_zero_residuals(direction):
    """They have no direction, and predictions are zero."""
    base = DirectionBase(LinearRegression(), direction).fit(X, np.zeros((40, 2)))
    assert (base.predict_weights(NEW).entries() == 0).all()


def test_parameters_are_checked():
    """A wrong direction and a regressor without predict are errors."""
    with pytest.raises(ValueError, match="'direction' parameter of DirectionBase"):
        DirectionBase(LinearRegression(), "best").fit(X, Y)
    with pytest.raises(ValueError, match="'regressor' parameter of DirectionBase"):
        DirectionBase("tree").fit(X, Y)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda base: setattr(base, "coefficients_", np.ones(3, int)),
            "of int64, not an array of floats",
        ),
        (lambda base: setattr(base, "coefficients_", np.ones((2, 2))), "coefficients_ has shape"),
        (lambda base: setattr(base, "regressor_", 3), "regressor_ is of type int, which has no"),
        (lambda base: setattr(base.regressor_, "outputs_", np.ones(3)), "outputs_ has 3 entries"),
    ],
)
def test_damaged_state(damage, message):
    """Coefficients and regressor are checked; a regressor of okforest checks itself."""
    base = DirectionBase(OKTree(max_depth=2)).fit(X, Y)
    base.check_state()
    DirectionBase(LinearRegression()).fit(X, Y).check_state()
    damage(base)
    with pytest.raises(ValueError, match=message):
        base.check_state()


def test_a_model_as_regressor_is_saved(tmp_path):
    """A direction of a model of okforest can be saved with the boosted model, and loaded."""
    base = DirectionBase(OKTree(max_depth=2, random_state=0))
    model = OKBoost(3, base=base, kernel=RBF(1.0), random_state=0).fit(X, Y)
    okforest.save(model, tmp_path / "model")
    loaded = okforest.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))
