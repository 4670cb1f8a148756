"""Survival curves as outputs: reading times, estimates, curves, and what models predict."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import okforest
from okforest import OKBoost, OKExtraTrees, OKNeighbors, OKRandomForest, OKRidge, OKTree
from okforest.kernels import Linear
from okforest.survival import Survival, concordance_index, concordance_scorer
from okforest.survival.estimates import estimate_survival, kaplan_meier, turnbull
from okforest.survival.outputs import read_intervals
from reference import survival as reference

INF = np.inf


def outcomes(n=120, seed=0, p=3):
    """Return inputs and right-censored times that depend on the first input."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    time = np.ceil(np.exp(1.0 + X[:, 0] + 0.3 * rng.normal(size=n)) * 4)
    limit = np.ceil(rng.exponential(20.0, size=n))
    event = time <= limit
    return X, np.rec.fromarrays([event, np.minimum(time, limit)], names="event,time")


X, Y = outcomes()
MODELS = [
    OKTree(kernel="survival", min_samples_leaf=10),
    OKRandomForest(20, kernel="survival", min_samples_leaf=5, random_state=0),
    OKExtraTrees(20, kernel="survival", min_samples_leaf=5, random_state=0),
    OKBoost(30, kernel="survival", subsample=0.5, random_state=0),
    OKNeighbors(10, kernel="survival"),
    OKRidge(1.0, kernel="survival", input_kernel="rbf"),
]

small_times = st.integers(1, 6).map(float)
cases = st.lists(st.tuples(st.booleans(), small_times), min_size=3, max_size=15).filter(
    lambda rows: any(event for event, _ in rows)
)


def split(rows):
    return np.array([row[0] for row in rows]), np.array([row[1] for row in rows])


@given(cases)
def test_kaplan_meier(rows):
    """The estimate equals the product by definition, at event times and between them."""
    event, time = split(rows)
    estimate = kaplan_meier(event, time)
    for t in np.arange(0.5, 7.0, 0.5):
        assert estimate(np.array(t)) == pytest.approx(reference.kaplan_meier(event, time, t))


@given(cases)
def test_turnbull_is_kaplan_meier_without_intervals(rows):
    """On exact and right-censored times, the two estimates agree."""
    event, time = split(rows)
    y = np.column_stack([time, np.where(event, time, INF)])
    expected, found = kaplan_meier(event, time), turnbull(y)
    at = np.arange(0.5, 7.0, 0.5)
    np.testing.assert_allclose(found(at), expected(at), atol=1e-4)


@given(st.lists(st.tuples(small_times, st.integers(0, 3)), min_size=3, max_size=10))
def test_turnbull_of_intervals(rows):
    """The likelihood of the estimate is the same as by plain self-consistency iterations."""
    y = np.array([(low - width, low) if width else (low, low) for low, width in rows])
    y[0, 1] = INF
    points, mass = reference.turnbull(y, 3000)
    estimate = turnbull(y)
    found = -np.diff(np.concatenate([[1.0], estimate(points[:-1]), [0.0]]))
    member = [[(lo < s <= up) or (lo == up == s) for s in points] for lo, up in y]

    def likelihood(p):
        return np.log((np.array(member) * p).sum(axis=1)).sum()

    assert likelihood(found) == pytest.approx(likelihood(mass), abs=1e-3)


@given(
    st.lists(
        st.tuples(st.sampled_from([-INF, 0.0, 1.0, 2.5, 4.0]), st.sampled_from([4.0, 5.0, 9, INF])),
        min_size=2,
        max_size=8,
    )
)
def test_curves(rows):
    """Curves follow the definition for every kind of censoring."""
    y = np.array([*rows, (1.0, 1.0), (3.0, 3.0)], dtype=float)
    kernel = Survival().resolve(y)

    def S(t):
        return float(kernel.estimate(np.array(t)))

    expected = [[reference.curve(lo, up, t, S) for t in kernel.times] for lo, up in y]
    np.testing.assert_allclose(kernel.curves(y), expected, atol=1e-12)
    assert (np.diff(kernel.curves(y), axis=1) <= 1e-12).all()


@given(cases)
def test_kernel_by_definition(rows):
    """k(y, y') sums the products of curves over event times, weighted by Kaplan–Meier's falls."""
    event, time = split(rows)
    y = np.column_stack([time, np.where(event, time, INF)])

    def S(t):
        return reference.kaplan_meier(event, time, t)

    expected, before = np.zeros((len(y), len(y))), 1.0
    for t in sorted(set(time[event])):
        curve = np.array([reference.curve(lo, up, t, S) for lo, up in y])
        expected += (before - S(t)) * np.outer(curve, curve)
        before = S(t)
    np.testing.assert_allclose(Survival().resolve(y)(y), expected, atol=1e-12)


def test_mean_curve_is_kaplan_meier():
    """The mean of all curves is the Kaplan–Meier curve itself: conditioning is consistent."""
    kernel = Survival(n_times=1000)
    y = kernel.check(Y)
    resolved = kernel.resolve(y)
    np.testing.assert_allclose(resolved.curves(y).mean(axis=0), resolved.survival, atol=1e-12)


def test_grid_is_limited():
    """A grid of few times is a subset of the event times that spans their falls evenly."""
    full = Survival(n_times=1000).resolve(Survival().check(Y))
    small = Survival(n_times=8).resolve(Survival().check(Y))
    assert len(small.times) <= 8 < len(full.times)
    assert set(small.times) <= set(full.times)
    assert small.times[[0, -1]].tolist() == full.times[[0, -1]].tolist()
    assert small.falls.max() < 0.3


def test_forms_of_y():
    """Structured arrays, bounds and frames with the same content give the same outputs."""
    bounds = np.column_stack([Y.time, np.where(Y.event, Y.time, INF)])
    frame = pd.DataFrame({"dead": Y.event, "days": Y.time})
    for y in (Y, bounds, bounds.tolist(), frame, pd.DataFrame(bounds), frame.to_records(False)):
        np.testing.assert_array_equal(read_intervals(y), bounds)
    named = pd.DataFrame({"time": Y.time, "Event": Y.event.astype(int)})
    swapped = np.rec.fromarrays([Y.time, Y.event], names="time,event")
    for y in (named, frame[["days", "dead"]], swapped):
        np.testing.assert_array_equal(read_intervals(y), bounds)
    visits = np.array([[0.0, 1.0], [1.0, 2.0], [1.0, 3.0]] * 5)
    np.testing.assert_array_equal(read_intervals(visits), visits)
    assert read_intervals(bounds[:0].reshape(0, 2)).shape == (0, 2)
    times = np.rec.fromarrays([[True, True, False], [0.0, 1.0, 1.0]], names="event,time")
    np.testing.assert_array_equal(read_intervals(read_intervals(times)), read_intervals(times))


BAD = {
    "negative time": (np.rec.fromarrays([[True], [-1.0]], names="e,t"), "negative time -1"),
    "negative bound": ([[-2.0, 3.0], [1.0, 1.0]], "negative time -2"),
    "order": ([[3.0, 2.0], [1.0, 1.0]], r"y\[0\] has lower = 3 > upper = 2"),
    "events": ([[0, 5.0], [1, 7.0], [1, 3.0]], "holds only 0 and 1, like events"),
    "events of R": (
        [[1, 5.0], [2, 7.0], [2, 3.0]],
        r"only 1 and 2, like events.*\[status == 2, time\]",
    ),
    "NaN": ([[1.0, np.nan]], "y contains NaN"),
    "numbers": ([1.0, 2.0], r"y has shape \(2,\); pass a structured array"),
    "fields": (np.zeros(2, dtype=[("a", bool), ("b", float), ("c", float)]), "fields a, b, c"),
    "event type": (np.rec.fromarrays([[1], [1.0]], names="e,t"), "has type int64; it must be bool"),
    "text": (np.array([["a", "b"]]), "y holds values of type <U1"),
    "columns": (pd.DataFrame({"a": [1.0]}), "frame with 1 columns"),
    "infinite time": (np.rec.fromarrays([[True], [INF]], names="e,t"), "an infinite time"),
    "excluded": ([[INF, INF]], "exclude every value"),
    "masked events": (
        np.ma.masked_array(np.zeros(2, dtype=[("e", bool), ("t", float)]), mask=[(0, 1), (0, 0)]),
        "y is a masked array",
    ),
    "masked": (np.ma.masked_array([[1.0, 2.0]], mask=[[True, False]]), "y is a masked array"),
}


@pytest.mark.parametrize(("y", "message"), BAD.values(), ids=BAD)
def test_bad_times(y, message):
    """Each kind of bad input has its own error."""
    with pytest.raises(ValueError, match=message):
        Survival().check(y)


def test_no_event():
    """Without any event there is nothing to learn."""
    y = np.rec.fromarrays([[False] * 5, np.arange(5.0)], names="event,time")
    with pytest.raises(ValueError, match="y holds no event"):
        OKTree(kernel="survival").fit(X[:5], y)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_models(model, tmp_path):
    """Every model predicts functions, quantiles, risks and times, ranks the cases, and is saved."""
    model = clone(model).fit(X, Y)
    X_test, y_test = outcomes(seed=1)
    curves = model.predict_survival_function(X_test, return_array=True)
    assert curves.shape == (120, len(model.event_times_))
    assert (curves >= 0).all()
    assert (curves <= 1).all()
    assert (np.diff(curves, axis=1) <= 0).all()
    functions = model.predict_survival_function(X_test[:3])
    np.testing.assert_allclose(functions[1](model.event_times_), curves[1], atol=1e-12)
    assert functions[1](0.0) == 1.0
    risk = model.predict_risk(X_test)
    assert concordance_index(y_test, risk) > 0.75
    assert concordance_scorer(model, X_test, y_test) == concordance_index(y_test, risk)
    low, median = model.predict_quantiles(X_test, [0.25, 0.5]).T
    assert (low <= median).all()
    np.testing.assert_array_equal(median, model.predict_quantiles(X_test))
    i, k = 5, np.flatnonzero(model.event_times_ == low[5])[0]
    assert curves[i, k] <= 0.75 < (curves[i, k - 1] if k else 1.0)
    times = model.predict(X_test)
    assert times.shape == (120,)
    assert concordance_index(y_test, -times) > 0.75
    assert 0 < model.score(X_test, y_test) < 1
    okforest.save(model, tmp_path / "model")
    for same in (okforest.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(same.predict_risk(X_test), risk)


def test_mean_curve_is_the_weighted_mean():
    """The predicted function is the weighted mean of training curves, and predict its area."""
    forest = OKRandomForest(20, kernel="survival", min_samples_leaf=5, random_state=0).fit(X, Y)
    kernel, W = forest.kernel_, forest.predict_weights(X)
    curves = forest.predict_survival_function(X, return_array=True)
    np.testing.assert_allclose(curves, W @ kernel.curves(forest.outputs_), atol=1e-12)
    t = kernel.times
    area = [t[0] + sum(c[k] * (t[k + 1] - t[k]) for k in range(len(t) - 1)) for c in curves]
    np.testing.assert_allclose(forest.predict(X), area)
    expected = ((1 - curves) * kernel.falls).sum(axis=1)
    np.testing.assert_allclose(forest.predict_risk(X), expected)


def test_composed_kernel():
    """A sum of kernels predicts the curves of its survival part."""
    both = Survival() + 0.1 * Survival(n_times=4)
    model = OKRandomForest(10, kernel=both, min_samples_leaf=5, random_state=0).fit(X, Y)
    expected = model.predict_weights(X) @ model.kernel_.first.curves(model.outputs_)
    curves = model.predict_survival_function(X, return_array=True)
    np.testing.assert_allclose(curves, expected, atol=1e-12)


def test_out_of_bag():
    """Out-of-bag predictions are times; the score is the kernel R²."""
    model = OKRandomForest(30, kernel="survival", min_samples_leaf=5, oob_score=True)
    model.set_params(random_state=0).fit(X, Y)
    assert model.oob_prediction_.shape == (120,)
    assert concordance_index(Y, -model.oob_prediction_) > 0.7
    assert 0 < model.oob_score_ < 1


def test_interval_and_left_censoring():
    """Models learn from intervals; wider intervals of the same times lower no rank by much."""
    rng = np.random.default_rng(2)
    time = np.exp(1.0 + X[:, 0])
    width = rng.uniform(0.0, 2.0, size=(120, 2))
    y = np.column_stack([np.maximum(time - width[:, 0], 0.0), time + width[:, 1]])
    y[::7, 0] = -INF
    y[::5, 1] = INF
    model = OKRandomForest(50, kernel="survival", min_samples_leaf=5, random_state=0).fit(X, y)
    exact = np.column_stack([time, time])
    assert concordance_index(exact, model.predict_risk(X)) > 0.85


def test_methods_need_the_kernel():
    """Other kernels do not have the methods, and the error says which one does."""
    model = OKTree(kernel=Linear()).fit(X, X)
    assert not hasattr(model, "predict_risk")
    with pytest.raises(AttributeError, match="only with kernel='survival'"):
        model.predict_survival_function(X)
    with pytest.raises(ValueError, match="use kernel='survival'"):
        OKTree().fit(X, Y)
    assert not hasattr(OKTree(kernel="no such kernel"), "predict_risk")
    with pytest.raises(ValueError, match="needs kernel=Survival"):
        OKTree(kernel=Linear(), decoder="survival_time").fit(X, X)


def test_quantiles_that_are_reached_exactly():
    """When one of ten cases has died, the quantile of 0.1 is reached, in spite of rounding."""
    y = np.rec.fromarrays([np.ones(10, dtype=bool), np.arange(1, 11)], names="event,time")
    tree = OKTree(kernel="survival").fit(np.zeros((10, 1)), y)
    levels = np.arange(1, 10) / 10
    assert tree.predict_quantiles([[0.0]], levels).tolist() == [[*range(1, 10)]]


@pytest.mark.parametrize("quantiles", [0.0, [0.5, 1.0], [[0.5]], np.nan])
def test_bad_quantiles(quantiles):
    """Quantiles are strictly between 0 and 1."""
    model = OKTree(kernel="survival", max_depth=2).fit(X, Y)
    with pytest.raises(ValueError, match="use numbers between 0 and 1"):
        model.predict_quantiles(X, quantiles)


def test_bad_grid():
    """The size of the grid is positive."""
    with pytest.raises(ValueError, match="'n_times' parameter of Survival"):
        OKTree(kernel=Survival(n_times=0)).fit(X, Y)


def test_scikit_learn_tools():
    """Structured outputs pass through cross-validation and searches."""
    model = OKRandomForest(10, kernel="survival", random_state=0)
    assert cross_val_score(model, X, Y, scoring=concordance_scorer, cv=3).min() > 0.6
    search = GridSearchCV(model, {"min_samples_leaf": [1, 40]}, scoring=concordance_scorer, cv=3)
    assert hasattr(search.fit(X, Y).best_estimator_, "predict_risk")


@given(hnp.arrays(float, 6, elements=st.floats(0.1, 5.0)))
def test_order_of_rows_does_not_matter(times):
    """A permutation of the outputs permutes their curves."""
    y = np.column_stack([times, np.where(np.arange(6) % 2, times, INF)])
    order = np.array([3, 1, 5, 0, 4, 2])
    np.testing.assert_allclose(
        Survival().resolve(y).curves(y)[order], Survival().resolve(y[order]).curves(y[order])
    )
    assert estimate_survival(y).x.tolist() == sorted(set(times[1::2]))


def test_excluded_from_below():
    """An upper bound of minus infinity excludes every value."""
    with pytest.raises(ValueError, match="exclude every value"):
        read_intervals([[-INF, -INF], [1.0, 1.0]])


def test_first_bad_row_is_named():
    """The error names the first bad row."""
    with pytest.raises(ValueError, match=r"y\[1\] has lower = 3 > upper = 2"):
        read_intervals([[1.0, 1.0], [3.0, 2.0]])


def test_frame_of_three_columns():
    """A frame has two columns."""
    with pytest.raises(ValueError, match="frame with 3 columns"):
        read_intervals(pd.DataFrame({"a": [True], "b": [1.0], "c": [2.0]}))


def test_objects_are_refused():
    """Objects are not times."""
    with pytest.raises(ValueError, match="values of type object"):
        read_intervals(np.array([[{}, 1.0]], dtype=object))


def test_bounds_of_zero_and_one_with_censored_cases():
    """Bounds of 0 and 1 are not taken for events if cases are censored."""
    y = [[0.0, INF], [1.0, INF], [1.0, 2.0]]
    np.testing.assert_array_equal(read_intervals(y), y)


def test_infinite_censored_time():
    """A censored time is finite."""
    with pytest.raises(ValueError, match="an infinite time"):
        read_intervals(np.rec.fromarrays([[True, False], [1.0, INF]], names="e,t"))


def test_outputs_are_copied():
    """Reading copies, so that later changes of y do no harm."""
    y = np.column_stack([Y.time, Y.time])
    read = read_intervals(y)
    assert not np.shares_memory(read, y)


def test_survival_at_infinity():
    """Nobody survives for ever."""
    assert kaplan_meier(np.array([True, False]), np.array([1.0, 2.0]))(np.array(INF)) == 0.0


def test_full_grid_is_kept():
    """A grid with room for all event times has all of them, and with room for one less, fewer."""
    y = Survival().check(Y)
    expected = np.unique(Y.time[Y.event]).tolist()
    for n in (1000, len(expected)):
        assert Survival(n_times=n).resolve(y).times.tolist() == expected
    assert len(Survival(n_times=len(expected) - 1).resolve(y).times) < len(expected)


def test_grid_size():
    """The grid has as many times as asked for, if there are as many events."""
    y = Survival().check(Y)
    for n in (4, 8):
        kernel = Survival(n_times=n)
        assert len(kernel.resolve(y).times) <= kernel.feature_dim(y) == n
    assert Survival(n_times=1000).feature_dim(y) == len(set(Y.time[Y.event]))


def test_pairs_of_the_kernel():
    """Kernels of pairs are the weighted products of their curves."""
    y = Survival().check(Y)
    kernel = Survival().resolve(y)
    curves = kernel.curves(y[:18])
    expected = [sum(kernel.falls * curves[i] * curves[9 + i]) for i in range(9)]
    assert len(set(expected)) > 5
    np.testing.assert_allclose(kernel.pairs(y[:9], y[9:18]), expected)


@pytest.mark.parametrize("form", ["events", "bounds"])
@pytest.mark.parametrize("dates", [False, True], ids=["durations", "dates"])
def test_dates_and_durations(form, dates):
    """Their unit would be nanoseconds, or the time since 1970: numbers are required."""
    days = np.arange(1, 4) * np.timedelta64(1, "D")
    times = np.datetime64("2020-01-01") + days if dates else days
    y = pd.DataFrame({"event": True, "time": times})
    if form == "bounds":
        y = np.column_stack([times, times])
    with pytest.raises(ValueError, match=r"dates or durations \(type .*\); pass numbers"):
        Survival().check(y)
    assert Survival().check(np.column_stack([days, days]) / np.timedelta64(1, "D"))[2, 0] == 3.0
