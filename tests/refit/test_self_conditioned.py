"""Survival forests conditioned on their own curves."""

import numpy as np
import pytest
from sklearn.base import clone

import okforest
from okforest import OKExtraTrees, OKRandomForest
from okforest.kernels.survival import conditional_curves
from okforest.metrics import concordance_scorer
from okforest.refit import SelfConditionedForest
from reference import survival as reference

rng = np.random.default_rng(0)
X = rng.uniform(size=(200, 2))
TIME, LIMIT = np.exp(2 * X[:, 0] + rng.normal(0, 0.2, 200)), rng.exponential(6.0, size=200)
Y = np.rec.fromarrays([TIME <= LIMIT, np.minimum(TIME, LIMIT)], names="event,time")
FOREST = OKRandomForest(40, kernel="survival", min_samples_leaf=8, random_state=0)


def test_curves_are_conditioned_on_out_of_bag_predictions():
    """Exact cases keep their curves; censored ones continue as predicted without them."""
    model = SelfConditionedForest(FOREST).fit(X, Y)
    first = OKRandomForest(
        40, kernel="survival", min_samples_leaf=8, oob_score=True, random_state=0
    ).fit(X, Y)
    kernel = first.kernel_
    start = kernel.curves(first.outputs_)
    np.testing.assert_array_equal(model.curves_[Y.event], start[Y.event])
    predicted = first.oob_weights_ @ start
    for i in np.flatnonzero(~Y.event)[:5]:

        def S(t, row=predicted[i]):
            return 1.0 if t < kernel.times[0] else row[np.flatnonzero(kernel.times <= t)[-1]]

        expected = [reference.curve(*first.outputs_[i], t, S) for t in kernel.times]
        np.testing.assert_allclose(model.curves_[i], expected, atol=1e-12)
    assert np.abs(model.curves_ - start).max() > 0.1


def test_predictions(tmp_path):
    """Functions are weighted means of the new curves; models rank cases and are saved."""
    model = SelfConditionedForest(FOREST, n_iter=2).fit(X[:150], Y[:150])
    curves = model.predict_survival_function(X, return_array=True)
    np.testing.assert_allclose(curves, model.predict_weights(X) @ model.curves_, atol=1e-12)
    area = curves[:, :-1] @ np.diff(model.event_times_) + model.event_times_[0]
    np.testing.assert_allclose(model.predict(X), area)
    assert model.predict(X, candidates=[[1.0, 1.0]]).shape == (200, 2)
    assert concordance_scorer(model, X[150:], Y[150:]) > 0.8
    okforest.save(model, tmp_path / "model")
    same = okforest.load(tmp_path / "model")
    np.testing.assert_array_equal(same.predict_risk(X), model.predict_risk(X))
    model.curves_ = model.curves_[:, 1:]
    with pytest.raises(ValueError, match="curves_ has shape"):
        model.check_state()


def test_errors():
    """Out-of-bag curves need bootstrap and the survival kernel."""
    for forest in (OKExtraTrees(kernel="survival"), OKRandomForest()):
        with pytest.raises(ValueError, match="needs kernel='survival' and bootstrap=True"):
            SelfConditionedForest(forest).fit(X, Y)


WEIGHT = np.random.default_rng(1).uniform(0.2, 3.0, 200)


def self_conditioned(n_iter, weight, forest=FOREST):
    """Return the last forest and its curves, by definition."""
    model = clone(forest).set_params(oob_score=True).fit(X, Y, weight)
    kernel, outputs = model.kernel_, model.outputs_
    curves = kernel.curves(outputs)
    for _ in range(n_iter):
        W = model.oob_weights_.toarray()
        predicted = np.where(W.any(axis=1)[:, None], W @ curves, kernel.survival)
        curves = conditional_curves(kernel.times, predicted, outputs)
        model = clone(forest).set_params(kernel="linear", oob_score=True)
        model.fit(X, curves * np.sqrt(kernel.falls), weight)
    return model, curves


@pytest.mark.parametrize(("n_iter", "weight"), [(1, WEIGHT), (2, None)])
def test_self_conditioned_iterations(n_iter, weight):
    """Every iteration conditions on the forest before; weights of rows count in all of them."""
    expected, curves = self_conditioned(n_iter, weight)
    model = SelfConditionedForest(clone(FOREST), n_iter=n_iter).fit(X, Y, weight)
    np.testing.assert_allclose(model.curves_, curves, atol=1e-12)
    np.testing.assert_allclose(
        model.predict_weights(X).toarray(), expected.predict_weights(X).toarray(), atol=1e-12
    )


@pytest.mark.filterwarnings("ignore:.*out-of-bag")
def test_self_conditioned_cases_in_every_sample():
    """A case that no tree leaves out continues as the curve of all cases."""
    few = OKRandomForest(2, kernel="survival", min_samples_leaf=8, random_state=0)
    _, curves = self_conditioned(1, None, few)
    model = SelfConditionedForest(few).fit(X, Y)
    np.testing.assert_allclose(model.curves_, curves, atol=1e-12)
    assert not few.oob_score
    assert not hasattr(few, "trees_")
