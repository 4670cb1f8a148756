"""Weights raised to a power, and the choice of the power out of bag."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from okforest import OKRandomForest, OKTree, select_power
from okforest.decode import CandidateLists, Mean, Sharpened
from okforest.kernels import RBF, Linear
from okforest.weights import DenseWeights, SharpenedWeights, Span, as_weights

rng = np.random.default_rng(0)


def test_powers_of_weights():
    """Signs are kept, zeros stay zero, and absolute values keep their sum."""
    W = np.array([[0.2, 0.8, 0.0], [-0.5, 0.25, 0.25], [0.0, 0.0, 0.0]])
    for power in (0.0, 0.5, 2.0):
        sharp = np.sign(W) * np.where(W == 0, 0.0, np.abs(W) ** power)
        totals = np.abs(sharp).sum(axis=1, keepdims=True)
        sharp *= np.abs(W).sum(axis=1, keepdims=True) / np.where(totals > 0, totals, 1.0)
        for form in (W, sp.csr_array(W)):
            found = SharpenedWeights(as_weights(form), power)
            np.testing.assert_allclose(found.tocsr().toarray(), sharp)
            np.testing.assert_allclose(found @ np.eye(3), sharp)
            np.testing.assert_allclose(found[1:].tocsr().toarray(), sharp[1:])
            assert found.max_entries >= np.count_nonzero(W)


def test_high_powers_do_not_underflow():
    """Only the largest weight is left."""
    W = np.array([[1e-3, 2e-3, 4e-3]])
    found = SharpenedWeights(DenseWeights(W), 500.0).tocsr().toarray()
    np.testing.assert_allclose(found, [[0.0, 0.0, 7e-3]], atol=1e-12)


def test_the_decoder_sees_sharpened_weights():
    """Power 1 changes nothing; other powers decode the powers of the weights."""
    y, W = rng.normal(size=(8, 2)), rng.dirichlet(np.ones(8), size=3)
    span = Span(Linear(), y)
    same = Sharpened("mean", 1.0).decode(DenseWeights(W), span)
    np.testing.assert_allclose(same, Mean().decode(DenseWeights(W), span))
    cubes = W**3 / (W**3).sum(axis=1, keepdims=True)
    found = Sharpened(Mean(), 3.0).decode(DenseWeights(W), span)
    np.testing.assert_allclose(found, cubes @ y)


def test_models_use_it():
    """As a parameter of models, in predict_top, and with candidates."""
    X = rng.normal(size=(30, 2))
    model = OKRandomForest(10, kernel=RBF(1.0), decoder=Sharpened(), random_state=0)
    model = clone(model).set_params(decoder__power=3.0).fit(X, X)
    outputs, losses = model.predict_top(X[:4], k=2)
    assert (outputs[:, 0] == model.predict(X[:4])).all()
    W = SharpenedWeights(model.weight_matrix(X[:4]), 3.0)
    np.testing.assert_allclose(losses[:, 0], model.span_.losses(W, outputs[:, 0]))
    one = model.predict(X[:1], candidates=X[:5])
    assert (one == model.predict(X[:1], candidates=CandidateLists([X[:5]]))).all()


@pytest.mark.parametrize("power", [-1.0, np.inf, "2", None], ids=repr)
def test_bad_powers(power):
    """A power is a number of at least 0."""
    with pytest.raises(ValueError, match="'power' parameter of Sharpened must be a float"):
        OKTree(decoder=Sharpened(power=power)).fit([[0.0], [1.0]], [0.0, 1.0])


def squared_error(true, predicted):
    return float(np.sum((true - predicted) ** 2))


def test_power_chosen_out_of_bag():
    """The losses are measured on out-of-bag predictions with each power; the least is chosen."""
    X = rng.normal(size=(60, 2))
    y = 5.0 * X[:, 0]
    forest = OKRandomForest(30, oob_score=True, min_samples_leaf=10, random_state=0).fit(X, y)
    choice = select_power(forest, squared_error, powers=[4.0, 1.0, 2.0])
    assert choice.values.tolist() == [1.0, 2.0, 4.0]
    for power, loss in zip(choice.values, choice.losses, strict=True):
        W = forest.oob_weights_.toarray() ** power
        predicted = W @ y / W.sum(axis=1)
        np.testing.assert_allclose(loss, np.mean((predicted - y) ** 2))
    assert choice.best == choice.values[choice.losses.argmin()] > 1.0
    sharpened = forest.set_params(decoder=Sharpened(power=choice.best))
    assert select_power(sharpened, squared_error, [1.0, 2.0, 4.0]).best == choice.best
    assert select_power(forest, lambda true, predicted: 0.0).best == 1.0


def test_errors_of_the_choice():
    """Without out-of-bag weights, a function or powers, the error names the remedy."""
    X, y = np.arange(20.0).reshape(-1, 1), np.arange(20.0)
    with pytest.raises(ValueError, match="this OKTree has no out-of-bag weights"):
        select_power(OKTree().fit(X, y), squared_error)
    forest = OKRandomForest(20, oob_score=True, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="loss='mse' is not a function"):
        select_power(forest, "mse")
    for powers in ([], [-1.0], [np.nan]):
        with pytest.raises(ValueError, match="pass one or more numbers of at least 0"):
            select_power(forest, squared_error, powers)
