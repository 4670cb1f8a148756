"""Ridge regression on similarities that are not quite positive semi-definite."""

import warnings

import numpy as np
import pytest

from okforest import OKRidge
from okforest.models.spectrum import ScaledRows, landmark_spectrum
from reference.averagers import ridge_weights
from ridge_data import NEW, WEIGHTS, X, Y, intercepts

rng = np.random.default_rng(0)


def similarities(smallest, seed=0):
    """Return a matrix with 28 eigenvalues of up to 40, and 12 equal to ``smallest`` times 40."""
    Q = np.linalg.qr(np.c_[np.ones(40), np.random.default_rng(seed).normal(size=(40, 39))])[0]
    values = np.arange(1.0, 41.0)
    values[1:13] = 40.0 * smallest
    return Q * values @ Q.T


@intercepts
@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
def test_slightly_indefinite_similarities(weight, intercept):
    """Negative eigenvalues are set to zero with a warning, however the penalty is chosen."""
    S, new = similarities(-0.005), rng.normal(size=(6, 40))
    omega = np.ones(40) if weight is None else np.asarray(weight, float)
    root = np.sqrt(omega)[:, None]
    centre = np.eye(40) - intercept * omega / omega.sum()
    values, vectors = np.linalg.eigh(root * (centre @ S @ centre.T) * root.T)
    lifted = vectors[:, values > 1e-12]  # directions that are kept
    centred = (new - intercept * (omega @ S) / omega.sum()) @ centre.T
    for alpha in (0.5, [0.5]):
        model = OKRidge(alpha, input_kernel="precomputed", fit_intercept=intercept)
        with pytest.warns(UserWarning, match=r"slightly indefinite: its smallest eigenvalue is -0"):
            model.fit(S, Y, weight)
        W = model.predict_weights(new).toarray()
        kept = lifted / (values[values > 1e-12] + 0.5) @ lifted.T
        expected = (centred * root.T) @ kept * root.T @ centre + intercept * omega / omega.sum()
        np.testing.assert_allclose(W, expected, atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"alpha": "loo"}, {"n_landmarks": 40}], ids=str)
def test_how_indefinite_similarities_may_be(options):
    """Down to -1 % of the largest eigenvalue; rounding errors do not warn."""
    model = OKRidge(input_kernel="precomputed", **options)
    with pytest.warns(UserWarning, match="Negative eigenvalues are set to zero") as warned:
        model.fit(similarities(-0.0099), Y)
    assert warned[0].filename == __file__
    assert np.isfinite(model.predict(similarities(-0.0099))).all()
    with pytest.raises(ValueError, match=r"range from -0\.404 to 40.*add 0\.404 to its diagonal"):
        model.fit(similarities(-0.0101), Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(similarities(-0.0101) + 0.404 * np.eye(40), Y)  # the remedy works
        model.fit(similarities(-1e-14), Y)


@intercepts
def test_a_large_mean_does_not_make_similarities_worse(intercept):
    """An eigenvalue that is small beside the largest is accepted, also if centring removes that."""
    S = similarities(-0.05) + 500 / 40  # eigenvalues −2, 14 to 40, and 501 of the mean
    model = OKRidge(input_kernel="precomputed", fit_intercept=intercept)
    with pytest.warns(UserWarning, match=r"smallest eigenvalue is -2, its largest 501"):
        model.fit(S, Y)


def test_leave_one_out_of_slightly_indefinite_similarities():
    """The loss is measured with the matrix without its negative eigenvalues."""
    S = similarities(-0.005)
    values, vectors = np.linalg.eigh(S)
    clipped = vectors * np.maximum(values, 0.0) @ vectors.T
    for intercept in (False, True):
        model = OKRidge([0.01, 1.0], input_kernel="precomputed", fit_intercept=intercept)
        with pytest.warns(UserWarning, match="slightly indefinite"):
            losses = model.fit(S, Y).loo_loss_
        np.testing.assert_allclose(losses, model.fit(clipped, Y).loo_loss_, rtol=1e-8)


def test_landmarks_of_slightly_indefinite_similarities():
    """Eigenvalues no larger than a negative one are dropped: dividing by them adds noise."""
    S = np.eye(10)
    S[2, 2], S[3, 3] = 1e-9, -0.005
    S[2, 9] = S[9, 2] = 0.05
    with pytest.warns(UserWarning, match="slightly indefinite"):
        spectrum = landmark_spectrum(S[:, :4], np.arange(4), ScaledRows(np.ones(10), False))
    np.testing.assert_allclose(spectrum.values, [1.0, 1.0])


def test_an_intercept_makes_negative_distances_a_kernel():
    """−‖x − z‖ is indefinite, and positive semi-definite once centred."""
    D, D_new = (np.linalg.norm(Z[:, None] - X, axis=2) for Z in (X, NEW))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = OKRidge("loo", input_kernel="precomputed").fit(-D, Y)
    assert model.score(-D, Y) > 0.5
    W = ridge_weights(10 - D, 10 - D_new, model.alpha_, np.ones(40, int), True)
    np.testing.assert_allclose(model.predict_weights(-D_new).toarray(), W, atol=1e-7)
    with pytest.raises(ValueError, match="indefinite"):
        model.set_params(fit_intercept=False).fit(-D, Y)
