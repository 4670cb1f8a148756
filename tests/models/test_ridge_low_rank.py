"""Ridge regression on landmarks and on principal components, compared with NumPy and refits."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import pairwise_kernels

from okforest import OKRidge
from okforest.kernels import RBF
from reference.averagers import (
    confined,
    leave_one_out,
    nystrom_weights,
    principal_projection,
    ridge_weights,
)
from ridge_data import COUNTS, NEW, WEIGHTS, X, Y, intercepts

rng = np.random.default_rng(0)
VALUES, VECTORS = np.linalg.eigh(RBF(1.0)(Y))
FEATURES = VECTORS * np.sqrt(np.maximum(VALUES, 0.0))  # inner products: the kernel


@intercepts
@pytest.mark.parametrize("kernel", ["linear", RBF(1.0)], ids=["features", "gram"])
@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
def test_leave_one_out_with_landmarks(kernel, weight, intercept):
    """The landmarks stay, even if the row that is left out is one."""
    omega = np.ones(40) if weight is None else np.asarray(weight, float)
    alphas = np.array([1e-2, 1.0])
    options = {"n_landmarks": 12, "random_state": 0, "fit_intercept": intercept}
    model = OKRidge(alphas, kernel=kernel, **options).fit(X, Y, weight)
    K = pairwise_kernels(X, X[model.landmarks_], metric="rbf")

    def weights_without(i, alpha):
        rest = np.where(np.arange(40) == i, 0.0, omega)
        return nystrom_weights(K, K[model.landmarks_], K[[i]], alpha, rest, intercept)[0]

    expected = [
        leave_one_out(lambda i, a=alpha: weights_without(i, a), model.kernel_(Y), omega)
        for alpha in alphas
    ]
    np.testing.assert_allclose(model.loo_loss_, expected, rtol=1e-6)


@intercepts
@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
def test_landmarks_against_the_oracle(weight, intercept):
    """The Nyström method is ridge regression on k(x, z) of landmarks z."""
    omega = np.ones(40) if weight is None else np.asarray(weight, float)
    options = {"n_landmarks": 8, "random_state": 1, "fit_intercept": intercept}
    model = OKRidge(0.3, kernel="rbf", **options).fit(X, Y, weight)
    assert len(model.landmarks_) == 8
    assert (omega[model.landmarks_] > 0).all()
    K, K_new = (pairwise_kernels(Z, X[model.landmarks_], metric="rbf") for Z in (X, NEW))
    expected = nystrom_weights(K, K[model.landmarks_], K_new, 0.3, omega, intercept)
    np.testing.assert_allclose(model.predict_weights(NEW).toarray(), expected, atol=1e-9)
    assert model.dual_.size + model.basis_.size <= 9 * 9 + 9 * 40


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian"])
def test_all_landmarks_are_exact(kernel, weight):
    """Even if more are requested than there are rows, and if the penalty is chosen."""
    for alpha in (0.1, [0.01, 0.3, 10.0]):
        for intercept in (False, True):
            options = {"kernel": "rbf", "input_kernel": kernel, "fit_intercept": intercept}
            exact = OKRidge(alpha, **options).fit(X, Y, weight)
            for m in (40, 1000):
                model = OKRidge(alpha, n_landmarks=m, **options)
                W = model.fit(X, Y, weight).predict_weights(NEW).toarray()
                assert model.alpha_ == pytest.approx(exact.alpha_)
                np.testing.assert_allclose(W, exact.predict_weights(NEW).toarray(), atol=1e-7)


def test_more_landmarks_come_nearer():
    """The distance to the exact prediction falls, in the mean over seeds."""
    exact = OKRidge(0.1).fit(X, Y).predict(NEW)
    errors = [
        np.mean(
            [
                np.abs(OKRidge(0.1, n_landmarks=m, random_state=s).fit(X, Y).predict(NEW) - exact)
                for s in range(10)
            ]
        )
        for m in (2, 10, 25, 40)
    ]
    assert errors[0] > 1.5 * errors[1] > 3 * errors[2]
    assert errors[3] < 1e-9


def test_no_square_matrix_with_landmarks(monkeypatch):
    """Neither of inputs nor of outputs, if the penalty is chosen and with components."""
    import okforest.weights.output_set as output_set
    import okforest.weights.span as span_module
    from okforest.models import ridge

    sides = []
    gram, call = ridge.input_gram, RBF.__call__
    monkeypatch.setattr(span_module, "BLOCK_BYTES", 8 * 40 * 5)
    monkeypatch.setattr(output_set, "KEPT_BYTES", 0)
    monkeypatch.setattr(ridge, "input_gram", lambda *a: sides.append((K := gram(*a)).shape) or K)
    monkeypatch.setattr(RBF, "__call__", lambda *a: sides.append((K := call(*a)).shape) or K)
    for params in ({}, {"n_components": 3}):
        model = OKRidge("loo", kernel=RBF(1.0), n_landmarks=6, random_state=0, **params)
        model.fit(X, Y).predict(NEW)
    assert {min(shape) for shape in sides} <= {5, 6}


@intercepts
@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("n_landmarks", [None, 15])
@pytest.mark.parametrize("alpha", [0.2, [0.2]])
def test_components_against_the_oracle(alpha, n_landmarks, weight, intercept):
    """Predictions are projected on the leading directions of the outputs, in feature space."""
    omega = np.ones(40) if weight is None else np.asarray(weight, float)
    options = {"n_landmarks": n_landmarks, "random_state": 0, "fit_intercept": intercept}
    whole = OKRidge(alpha, kernel=RBF(1.0), **options).fit(X, Y, weight).predict_weights(NEW)
    for c in (1, 4, 40):
        model = OKRidge(alpha, kernel=RBF(1.0), n_components=c, **options).fit(X, Y, weight)
        F = model.predict_weights(NEW) @ FEATURES
        projection = principal_projection(FEATURES, omega, c, intercept)
        expected = confined(whole @ FEATURES, FEATURES, omega, projection, intercept)
        np.testing.assert_allclose(F, expected, atol=1e-7)
        assert model.dual_.shape[1] <= min(c + intercept, 40)


@intercepts
def test_components_of_vectors(intercept):
    """Few features: principal directions of y itself, around its mean with an intercept."""
    y = Y @ rng.normal(size=(2, 5)) + 0.1 * rng.normal(size=(40, 5)) + 3.0
    whole = OKRidge(fit_intercept=intercept).fit(X, y).predict(NEW)
    for c in (1, 2, 5, 9):
        predicted = OKRidge(n_components=c, fit_intercept=intercept).fit(X, y).predict(NEW)
        projection = principal_projection(y, np.ones(40), c, intercept)
        expected = confined(whole, y, np.ones(40), projection, intercept)
        np.testing.assert_allclose(predicted, expected, atol=1e-9)


@intercepts
@pytest.mark.parametrize("n_components", [3, 40])
@pytest.mark.parametrize("explicit", [False, True], ids=["gram", "features"])
def test_leave_one_out_with_components(explicit, n_components, intercept):
    """The directions stay; what they leave out of an output is part of its loss."""
    features = rng.normal(size=(40, 5)) * [3, 2, 1, 1, 1] + 4.0 if explicit else FEATURES
    y, kernel = (features, "linear") if explicit else (Y, RBF(1.0))
    projection = principal_projection(features, COUNTS, n_components, intercept)
    K = pairwise_kernels(X, metric="rbf")
    options = {"n_components": n_components, "fit_intercept": intercept}
    model = OKRidge([0.05, 2.0], kernel=kernel, **options).fit(X, y, COUNTS)
    for alpha, loss in zip(model.alphas_, model.loo_loss_, strict=True):
        total = 0.0
        for i in np.flatnonzero(COUNTS):
            rest = np.where(np.arange(40) == i, 0, COUNTS)
            F = ridge_weights(K, K[[i]], alpha, rest, intercept) @ features
            F = confined(F, features, rest, projection, intercept)
            total += COUNTS[i] * ((features[i] - F) ** 2).sum()
        assert loss == pytest.approx(total / COUNTS.sum())
