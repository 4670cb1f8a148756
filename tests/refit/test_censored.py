"""Forests refitted to intervals: against definitions, Clarabel and linear programming."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.datasets import make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

import okforest
from okforest import OKBoost, OKExtraTrees, OKRandomForest, OKTree
from okforest.refit import CensoredForest
from okforest.refit.convex import Programme, solve
from okforest.refit.intervals import IntervalLoss, minimise
from okforest.refit.leaves import Adjustments, LeafExpansion
from okforest.survival import concordance_index, integrated_brier_scorer
from okforest.survival.estimates import kaplan_meier
from reference import refit as reference

INF = np.inf
FOREST = OKExtraTrees(8, min_samples_leaf=4, max_features="sqrt", random_state=0)


def survival(n=150, seed=0, censored=0.4):
    """Return inputs and right-censored times."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 3))
    time = np.exp(2.0 * X[:, 0] + rng.normal(0.0, 0.3, size=n))
    limit = np.where(rng.random(n) < censored, rng.uniform(0.3, 1.0, n), 2.0) * time
    return X, np.rec.fromarrays([time <= limit, np.minimum(time, limit)], names="event,time")


X, Y = survival()


def programme(seed, adjust, n=40):
    """Return a small random programme: the operator, predictions without it, and intervals."""
    rng = np.random.default_rng(seed)
    inputs, y = rng.normal(size=(n, 3)), rng.normal(size=n)
    grown = OKExtraTrees(5, min_samples_leaf=3, random_state=seed).fit(inputs[:25], y[:25])
    expansion = LeafExpansion(grown.trees_)
    L = expansion.rows(grown.apply(inputs))
    B = Adjustments.create(L, expansion.means, adjust, 2.0, 0.1)
    lower = np.where(np.arange(n) % 7 == 0, -INF, y)
    upper = np.where(np.arange(n) % 3 == 0, INF, y + np.where(np.arange(n) % 5, 0.0, 0.3))
    weight = rng.uniform(0.1, 2.0, n)
    return B, L @ (expansion.means @ y[:25]), lower, upper, weight


@pytest.mark.parametrize("bootstrap", [False, True])
def test_expansion_is_the_forest(bootstrap):
    """L times the means of leaves is what the forest predicts, and L A its weights."""
    forest = OKRandomForest(10, bootstrap=bootstrap, min_samples_leaf=3, random_state=0)
    forest.fit(X, Y.time)
    expansion = LeafExpansion(forest.trees_)
    L = expansion.rows(forest.apply(X))
    np.testing.assert_allclose(L @ (expansion.means @ Y.time), forest.predict(X), atol=1e-10)
    K = (L @ expansion.means).toarray()
    np.testing.assert_allclose(K, forest.predict_weights(X).toarray(), atol=1e-12)
    if not bootstrap:
        np.testing.assert_allclose(K, reference.weights(forest, X, X), atol=1e-12)
        np.testing.assert_allclose(expansion.means_over(L).toarray(), expansion.means.toarray())
    dense = reference.leaf_matrix(forest, X)
    np.testing.assert_allclose((L @ L.T).toarray(), dense @ dense.T, atol=1e-12)


@given(st.integers(0, 50), st.sampled_from(["leaves", "outputs", "both"]))
def test_operator(seed, adjust):
    """Products with the operator are those with its matrix; the adjoint is its transpose."""
    B, *_ = programme(seed, adjust)
    matrix = B.matrix().toarray()
    rng = np.random.default_rng(seed)
    v, u = rng.normal(size=B.size), rng.normal(size=matrix.shape[0])
    np.testing.assert_allclose(B.forward(v), matrix @ v, atol=1e-12)
    np.testing.assert_allclose(B.adjoint(u), matrix.T @ u, atol=1e-12)
    np.testing.assert_allclose(B.forward(np.c_[v, 2 * v]), matrix @ np.c_[v, 2 * v], atol=1e-12)


@given(st.integers(0, 1000), st.sampled_from(["leaves", "outputs", "both"]))
def test_newton_is_optimal(seed, adjust):
    """The duality gap closes, and the objective equals Clarabel's and the definition."""
    pytest.importorskip("clarabel", reason="Clarabel is not installed")
    B, f0, lower, upper, weight = programme(seed, adjust)
    found = minimise(B, f0, IntervalLoss(lower, upper, weight), tol=1e-9, max_iter=100)
    assert found.converged
    assert found.gap <= 1e-9
    f = f0 + B.forward(found.v)
    penalty = 0.5 * found.v @ found.v
    expected = reference.objective(f, lower, upper, weight, penalty)
    assert found.objective == pytest.approx(expected, rel=1e-12)
    columns = (array[:, None] for array in (f0, lower, upper, weight))
    peer = solve(Programme(B, *columns, None, [], "l2"), tol=1e-10, max_iter=100)
    assert found.objective == pytest.approx(peer.objective, rel=1e-6)
    np.testing.assert_allclose(B.forward(found.v), B.forward(peer.v)[:, 0], atol=1e-4)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("leaf_penalty", [1e-3, 1.0, 1e3])
def test_units_do_not_matter(unit, leaf_penalty):
    """Outputs in other units give predictions in these units."""
    expected = CensoredForest(FOREST, scale=None, leaf_penalty=leaf_penalty, tol=1e-9).fit(X, Y)
    y = np.column_stack([Y.time, np.where(Y.event, Y.time, INF)]) * unit
    model = CensoredForest(FOREST, scale=None, leaf_penalty=leaf_penalty, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.predict(X), expected.predict(X) * unit, rtol=1e-3)


@given(st.integers(0, 1000))
def test_laplacian_term(seed):
    """With a Laplacian the gradient vanishes, and the objective is Clarabel's."""
    pytest.importorskip("clarabel", reason="Clarabel is not installed")
    B, f0, lower, upper, weight = programme(seed, "leaves")
    ring = np.roll(np.eye(40), 1, axis=1)
    smooth = sp.csr_array(0.5 * (2 * np.eye(40) - ring - ring.T))
    found = minimise(B, f0, IntervalLoss(lower, upper, weight, smooth), tol=1e-8, max_iter=100)
    assert found.converged
    columns = (array[:, None] for array in (f0, lower, upper, weight))
    peer = solve(Programme(B, *columns, smooth, [], "l2"), tol=1e-10, max_iter=100)
    assert found.objective == pytest.approx(peer.objective, rel=1e-6)


@pytest.mark.parametrize("adjust", ["leaves", "outputs", "both"])
def test_linear_programme(adjust):
    """With L1 norms the objective equals HiGHS's and the definition."""
    pytest.importorskip("clarabel", reason="Clarabel is not installed")
    B, f0, lower, upper, weight = programme(3, adjust)
    columns = (array[:, None] for array in (f0, lower, upper, weight))
    found = solve(Programme(B, *columns, None, [], "l1"), tol=1e-9, max_iter=100)
    assert found.gap <= 1e-6
    matrix, cost = B.matrix().toarray(), B.root_penalties()
    n = len(matrix)
    low, high = np.isfinite(lower), np.isfinite(upper)
    slack = np.eye(n)
    rows = np.vstack(
        [
            np.hstack([-matrix, matrix, -slack])[low],
            np.hstack([matrix, -matrix, -slack])[high],
        ]
    )
    right = np.concatenate([(f0 - lower)[low], (upper - f0)[high]])
    peer = linprog(np.concatenate([cost, cost, weight]), A_ub=rows, b_ub=right)
    assert found.objective == pytest.approx(peer.fun, rel=1e-6)
    v = found.v[:, 0]
    f = f0 + B.forward(v)
    expected = reference.objective(f, lower, upper, weight, cost @ np.abs(v), "l1")
    assert found.objective == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("adjust", ["leaves", "outputs"])
def test_large_penalty_is_the_forest(adjust):
    """As the penalty grows, predictions approach the forest's."""
    huge = CensoredForest(FOREST, adjust=adjust, leaf_penalty=1e12, output_penalty=1e12).fit(X, Y)
    scaled = huge.estimator_.predict(X)
    np.testing.assert_allclose(-huge.predict_risk(X), scaled, atol=1e-9)


def test_without_censored_cases():
    """Exact outputs that the forest reproduces need no adjustment: it is the plain forest."""
    full = OKExtraTrees(10, random_state=0)
    with pytest.warns(UserWarning, match="the trees are grown fully"):
        model = CensoredForest(full, scale=None).fit(X, Y.time)
    expected = full.fit(X, Y.time).predict(X)
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-12)
    assert model.objective_ < 1e-20
    assert model.duality_gap_ == 0.0


def test_predictions_of_outputs_are_weighted():
    """With adjusted outputs, predictions are weighted means of them; other modes have none."""
    model = CensoredForest(FOREST, adjust="outputs", scale="log").fit(X, Y)
    expected = np.exp(model.predict_weights(X) @ model.refitted_outputs_)
    np.testing.assert_allclose(model.predict(X), expected)
    assert not hasattr(CensoredForest(FOREST), "predict_weights")


def test_refit_uses_censored_cases():
    """On synthetic data the refit is closer to the true times than the forest of exact cases."""
    inputs, target = make_friedman1(400, random_state=0)
    rng = np.random.default_rng(0)
    log_time = target / 5 + rng.normal(0.0, 0.2, size=400)
    limit = log_time + rng.normal(0.6, 0.9, size=400)
    event = log_time <= limit
    y = np.rec.fromarrays([event, np.exp(np.minimum(log_time, limit))], names="event,time")
    train, test = slice(0, 200), slice(200, 400)
    forest = OKExtraTrees(100, min_samples_leaf=5, max_features=None, random_state=0)
    model = CensoredForest(forest, scale="log").fit(inputs[train], y[train])

    def error(predicted):
        return np.sqrt(np.mean((predicted - target[test] / 5) ** 2))

    refitted = error(np.log(model.predict(inputs[test])))
    assert refitted < 0.95 * error(model.estimator_.predict(inputs[test]))
    off = CensoredForest(forest, scale="log", censored_penalty=0.0).fit(inputs[train], y[train])
    assert refitted < error(np.log(off.predict(inputs[test])))


@pytest.mark.parametrize("structure", ["exact", "all", "km"])
@pytest.mark.parametrize("scale", ["km", "log", None])
def test_structures_and_scales(structure, scale):
    """Every structure and scale ranks new cases, on a scale that increases with time."""
    model = CensoredForest(structure=structure, scale=scale).fit(X, Y)
    X_test, y_test = survival(seed=1)
    assert model.score(X_test, y_test) > 0.8
    assert concordance_index(y_test, -model.predict(X_test)) > 0.8
    assert len(model.estimator_.outputs_) == (Y.event.sum() if structure == "exact" else len(Y))


@pytest.mark.parametrize(("n_exact", "expected"), [(59, "km"), (60, "exact"), (0, "km")])
def test_structure_is_chosen_by_the_share_of_exact_outputs(n_exact, expected):
    """Below 40 % exact outputs, trees are grown on all rows; rows without bounds do not count."""
    rng = np.random.default_rng(0)
    inputs, lower = rng.uniform(size=(200, 2)), rng.uniform(1.0, 2.0, size=200)
    y = np.column_stack([lower, lower + 1.0])
    y[:n_exact, 1] = y[:n_exact, 0]
    y[150:] = -INF, INF
    model = CensoredForest(scale=None).fit(inputs, y)
    assert model.structure_ == expected
    explicit = CensoredForest(structure=expected, scale=None).fit(inputs, y)
    np.testing.assert_array_equal(model.predict(inputs), explicit.predict(inputs))


def test_heavy_censoring_is_not_predicted_by_a_constant():
    """With 8 % events, too few for trees with 15 rows in a leaf, cases are ranked."""
    rng = np.random.default_rng(0)
    inputs = rng.uniform(size=(600, 3))
    event = rng.random(600) < 0.12 * inputs[:, 0]
    y = np.rec.fromarrays([event, 1.0 + rng.uniform(size=600)], names="event,time")
    few = slice(0, 300)
    assert event[few].mean() < 0.1
    model = CensoredForest().fit(inputs[few], y[few])
    assert model.score(inputs[300:], y[300:]) > 0.55
    with pytest.warns(UserWarning, match="same for all inputs.*Use structure='km'"):
        constant = CensoredForest(structure="exact").fit(inputs[few], y[few])
    assert np.ptp(constant.predict_risk(inputs)) == 0
    with pytest.warns(UserWarning, match="Use a smaller min_samples_leaf"):
        CensoredForest(OKExtraTrees(5, min_samples_leaf=200)).fit(inputs[few], y[few])


def test_km_structure_imputes_conditional_means():
    """A censored case is grown with the mean of the Kaplan–Meier distribution after its time."""
    model = CensoredForest(structure="km", scale=None).fit(X, Y)
    estimate = kaplan_meier(Y.event, Y.time)
    i = int(np.flatnonzero(~Y.event)[3])
    mass = -np.diff(np.concatenate([[1.0], estimate.y]))
    later = estimate.x > Y.time[i]
    rest = estimate.y[-1]  # after the last event: at the last time
    total = (mass * estimate.x)[later].sum() + rest * Y.time.max()
    expected = total / (mass[later].sum() + rest)
    assert model.estimator_.outputs_[i] == pytest.approx(expected)


def test_intervals_of_all_kinds():
    """Left, right and interval censoring together; predictions move into the intervals."""
    rng = np.random.default_rng(0)
    truth = 3.0 * X[:, 0] - 1.0
    y = np.column_stack([truth, truth])
    y[::4] += np.array([-0.1, 0.2])
    y[1::4, 0], y[2::4, 1] = -INF, INF
    y[1::4, 1] += rng.uniform(0.0, 0.5, size=len(y[1::4]))
    y[5] = -INF, INF
    forest = OKExtraTrees(50, min_samples_leaf=5, max_features=None, random_state=0)
    model = CensoredForest(forest, scale=None, leaf_penalty=0.1).fit(X, y)

    def outside(predicted):
        return np.maximum(np.maximum(y[:, 0] - predicted, predicted - y[:, 1]), 0.0).mean()

    before = model.estimator_.predict(X)
    assert outside(model.predict(X)) < 0.5 * outside(before)
    assert np.corrcoef(model.predict(X), truth)[0, 1] > 0.95


def test_unlabelled_cases_with_a_laplacian():
    """Rows without any bound count through the Laplacian, and not at all without one."""
    y = np.column_stack([Y.time, np.where(Y.event, Y.time, INF)])
    y[::2] = -INF, INF
    plain = CensoredForest(FOREST).fit(X, y)
    fewer = CensoredForest(FOREST).fit(X[1::2], y[1::2])
    np.testing.assert_allclose(plain.predict_risk(X), fewer.predict_risk(X), atol=1e-6)
    smooth = CensoredForest(FOREST, laplacian="knn", laplacian_penalty=1.0).fit(X, y)
    assert np.abs(smooth.predict_risk(X) - plain.predict_risk(X)).max() > 1e-3


def test_survival_functions():
    """Functions are means over the leaves of all cases; quantiles are read from them."""
    model = CensoredForest(FOREST).fit(X, Y)
    curves = model.predict_survival_function(X[:5], return_array=True)
    same = model.estimator_.apply(X[:5])[:, None] == model.training_leaves_
    counts = (model.training_leaves_[:, None] == model.training_leaves_).sum(axis=0)
    W = (same / counts).mean(axis=2)
    np.testing.assert_allclose(curves, W @ model.curves_.curves(model.outputs_), atol=1e-12)
    functions = model.predict_survival_function(X[:5])
    np.testing.assert_array_equal(functions[2](model.event_times_), curves[2])
    medians = model.predict_quantiles(X[:5])
    k = np.flatnonzero(model.event_times_ == medians[2])[0]
    assert curves[2, k] <= 0.5 < curves[2, k - 1]
    assert integrated_brier_scorer(model, *survival(seed=1)) > -0.2


def test_weights_of_rows():
    """A row of weight zero has no influence; the weight scales its loss."""
    weight = np.ones(len(X))
    weight[::3] = 0.0
    model = CensoredForest(FOREST, scale=None).fit(X, Y, weight)
    fewer = CensoredForest(FOREST, scale=None).fit(X[weight > 0], Y[weight > 0])
    np.testing.assert_allclose(model.predict(X), fewer.predict(X), rtol=1e-4)


def test_lifecycle(tmp_path):
    """Frames, saving, pickling, cloning and searches work as for every estimator."""
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = CensoredForest(FOREST).fit(frame, pd.DataFrame({"e": Y.event, "t": Y.time}))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    okforest.save(model, tmp_path / "model")
    for same in (okforest.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(same.predict(frame), model.predict(frame))
        np.testing.assert_array_equal(same.predict_quantiles(frame), model.predict_quantiles(frame))
    search = GridSearchCV(CensoredForest(FOREST), {"leaf_penalty": [1.0, 1e9]}, cv=3).fit(X, Y)
    assert search.best_params_["leaf_penalty"] == 1.0
    assert cross_val_score(CensoredForest(), X, Y, cv=3).min() > 0.7


@pytest.mark.parametrize("damage", ["leaf_values_", "training_leaves_", "curves_", "estimator_"])
def test_damaged_state(damage):
    """What a file may hold is checked."""
    model = CensoredForest(FOREST).fit(X, Y)
    model.check_state()
    bad = {
        "leaf_values_": model.leaf_values_[:-1],
        "training_leaves_": model.training_leaves_ + 10**6,
        "curves_": None,
        "estimator_": OKBoost(),
    }
    setattr(model, damage, bad[damage])
    with pytest.raises(ValueError, match=damage):
        model.check_state()


def test_progress_and_convergence(capsys):
    """Steps are shown; a fit that stops early warns."""
    CensoredForest(FOREST, verbose=1).fit(X, Y)
    assert "refit steps" in capsys.readouterr().err
    with pytest.warns(ConvergenceWarning, match="increase max_iter or tol"):
        model = CensoredForest(FOREST, max_iter=1, tol=1e-15).fit(X, Y)
    assert model.n_iter_ == 1


ONE_EXACT = np.column_stack([np.arange(5.0), [0.0, INF, INF, INF, INF]])
ERRORS = {
    "no exact case": (CensoredForest(structure="exact"), ONE_EXACT, "y has 1 exact outputs"),
    "negative times": (CensoredForest(), -np.ones((5, 2)), "negative time -1"),
    "order": (CensoredForest(), np.tile([2.0, 1.0], (5, 1)), "lower = 2 > upper = 1"),
    "log of zero": (CensoredForest(scale="log"), np.zeros((5, 2)), "needs positive times"),
    "no y": (CensoredForest(), None, "requires y"),
    "laplacian": (CensoredForest(laplacian=np.eye(3)), np.ones((5, 2)), r"expected \(5, 5\)"),
    "kernel": (CensoredForest(OKTree(kernel="dirac")), np.ones((5, 2)), "predicts numbers"),
    "all unlabelled": (
        CensoredForest(structure="all", scale=None),
        np.tile([-INF, INF], (5, 1)),
        "grows trees on 0 rows",
    ),
}


@pytest.mark.parametrize(("model", "y", "message"), ERRORS.values(), ids=ERRORS)
@pytest.mark.filterwarnings("ignore:the trees are grown fully")
def test_errors(model, y, message):
    """Each kind of bad input has its own error."""
    with pytest.raises(ValueError, match=message):
        model.fit(X[:5], y)


def test_needs_trees():
    """Only trees and forests have leaves to refit."""
    for estimator in (OKBoost(), "forest"):
        with pytest.raises(TypeError, match="needs the leaves of a tree or a forest"):
            CensoredForest(estimator).fit(X, Y)
    assert CensoredForest(OKTree(min_samples_leaf=10)).fit(X, Y).score(X, Y) > 0.8


def test_the_unit_of_time_does_not_matter():
    """With a Laplacian on the logarithmic scale, days and years give the same predictions."""
    model = CensoredForest(scale="log", laplacian="knn", laplacian_penalty=1.0)
    expected = model.fit(X, Y).predict(X)
    days = np.rec.fromarrays([Y["event"], Y["time"] * 365.0], names="event,time")
    np.testing.assert_allclose(model.fit(X, days).predict(X) / 365.0, expected, rtol=1e-4)


@pytest.mark.parametrize("structure", ["exact", "km", "auto"])
def test_rows_of_weight_zero(structure):
    """Rows of weight zero are as if they were not there, also in the scale and the curves."""
    weight = np.where(np.arange(150) % 3 == 0, 0.0, 1.0)
    if structure == "auto":
        weight = np.where(Y.event & (np.arange(150) % 5 > 0), 0.0, 1.0)  # few are exact: "km"
    model = CensoredForest(FOREST, structure=structure).fit(X, Y, weight)
    fewer = CensoredForest(FOREST, structure=structure).fit(X[weight > 0], Y[weight > 0])
    np.testing.assert_allclose(model.predict(X), fewer.predict(X), rtol=1e-6)
    curves, expected = (m.predict_survival_function(X, return_array=True) for m in (model, fewer))
    np.testing.assert_allclose(curves, expected, atol=1e-12)
    censored = (~Y.event).astype(float)
    with pytest.raises(ValueError, match=r"y has 0 exact outputs among \d+ of positive|no event"):
        CensoredForest(FOREST, scale="log").fit(X, Y, censored)


def test_weights_need_adjusted_outputs():
    """The error of a missing method names the parameter."""
    with pytest.raises(AttributeError, match="with adjust='outputs'; this one has adjust='leaves'"):
        CensoredForest(FOREST).fit(X, Y).predict_weights(X)


def test_optimum_of_zero():
    """Outputs that the forest reproduces up to rounding need no warning."""
    for y in (np.zeros(150), np.full(150, 1e-160), np.full(150, 0.1)):
        assert CensoredForest(FOREST, scale=None).fit(X, y).duality_gap_ <= 1e-6
