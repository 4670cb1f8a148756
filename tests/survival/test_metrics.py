"""Concordance and Brier scores: by definition, and beside scikit-survival where it is installed."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from okforest import OKRandomForest, OKTree
from okforest.survival import (
    StepFunction,
    brier_score,
    concordance_index,
    concordance_ipcw,
    concordance_ipcw_scorer,
    concordance_scorer,
    integrated_brier_score,
    integrated_brier_scorer,
)
from reference import survival as reference

rng = np.random.default_rng(0)
TIME = rng.integers(1, 40, size=150).astype(float)
EVENT = rng.random(150) < 0.6
EVENT[TIME.max() == TIME] = True
RISK = np.round(-TIME + rng.normal(0.0, 15.0, size=150))
Y = np.rec.fromarrays([EVENT, TIME], names="event,time")
TRAIN, TEST = Y[:90], Y[90:]

rows = st.lists(
    st.tuples(st.booleans(), st.integers(1, 5), st.integers(0, 3)), min_size=4, max_size=12
)


@given(rows)
def test_concordance_index(cases):
    """Harrell's C equals the loop over pairs, ties included."""
    event, time, risk = (np.array(column) for column in zip(*cases, strict=True))
    y = np.rec.fromarrays([event, time.astype(float)], names="event,time")
    comparable = any(
        event[i] and (time[i] < time[j] or (time[i] == time[j] and not event[j]))
        for i in range(len(time))
        for j in range(len(time))
        if i != j
    )
    assume(comparable)
    assert concordance_index(y, risk) == pytest.approx(reference.concordance(event, time, risk))


bounds = st.tuples(st.integers(0, 4), st.integers(0, 2), st.sampled_from("exlr"), st.integers(0, 3))


@given(st.lists(bounds, min_size=3, max_size=10))
def test_concordance_of_intervals(cases):
    """Two intervals are comparable if every time of one is before every time of the other."""
    lower, upper = np.array([[a, a + b] for a, b, _, _ in cases], dtype=float).T
    kind = np.array([k for _, _, k, _ in cases])
    risk = np.array([r for _, _, _, r in cases], dtype=float)
    upper = np.where(kind == "e", lower, np.where(kind == "r", np.inf, upper))
    lower = np.where(kind == "l", -np.inf, lower)
    right = pairs = 0.0
    for i in range(len(cases)):
        for j in range(len(cases)):
            if upper[i] < lower[j] or (upper[i] == lower[j] != upper[j]):
                pairs += 1
                right += 0.5 if risk[i] == risk[j] else float(risk[i] > risk[j])
    assume(pairs > 0)
    y = np.column_stack([lower, upper])
    assert concordance_index(y, risk) == pytest.approx(right / pairs)
    assert concordance_index(y, risk * 1e-12) == pytest.approx(right / pairs)


def test_concordance_in_blocks(monkeypatch):
    """The result does not depend on how many pairs are compared at a time."""
    expected = concordance_index(Y, RISK)
    monkeypatch.setattr("okforest.survival.metrics.BLOCK", 7)
    assert concordance_index(Y, RISK) == pytest.approx(expected, rel=1e-14)


def test_concordance_ipcw():
    """Uno's C weights every pair by 1 / G(t)² of its earlier case."""
    train = (TRAIN.event, TRAIN.time)
    G = np.array([reference.censoring(*train, t) for t in TEST.time])
    weight = np.where(G > 0, 1.0 / np.maximum(G, 1e-9) ** 2, 0.0)
    expected = reference.concordance(TEST.event, TEST.time, RISK[90:], weight)
    assert concordance_ipcw(TRAIN, TEST, RISK[90:]) == pytest.approx(expected)
    weight[TEST.time >= 20] = 0.0
    expected = reference.concordance(TEST.event, TEST.time, RISK[90:], weight)
    assert concordance_ipcw(TRAIN, TEST, RISK[90:], tau=20) == pytest.approx(expected)


def test_brier_score():
    """The scores follow the definition, for functions and for arrays."""
    functions = [StepFunction([5.0, 15.0], [a, a / 2]) for a in rng.random(60)]
    times = np.array([3.0, 5.0, 11.0, 20.0])
    scores = brier_score(TRAIN, TEST, functions, times).scores
    S = np.array([f(times) for f in functions])
    for k, t in enumerate(times):
        expected = reference.brier((TRAIN.event, TRAIN.time), (TEST.event, TEST.time), S[:, k], t)
        assert scores[k] == pytest.approx(expected)
    np.testing.assert_array_equal(brier_score(TRAIN, TEST, S, times).scores, scores)
    expected = np.trapezoid(scores, times) / 17.0
    assert integrated_brier_score(TRAIN, TEST, S, times) == pytest.approx(expected)


def test_scikit_survival():
    """All four metrics equal scikit-survival's."""
    peer = pytest.importorskip("sksurv.metrics", reason="scikit-survival is not installed")
    test = TEST[TEST.time < TRAIN.time[TRAIN.event].max()]
    risk = RISK[90:][TEST.time < TRAIN.time[TRAIN.event].max()]
    assert concordance_index(test, risk) == pytest.approx(
        peer.concordance_index_censored(test.event, test.time, risk)[0], rel=1e-12
    )
    for tau in (None, 20.0):
        assert concordance_ipcw(TRAIN, test, risk, tau) == pytest.approx(
            peer.concordance_index_ipcw(TRAIN, test, risk, tau)[0], rel=1e-12
        )
    times = np.unique(test.time)[1:-1]
    S = np.exp(-np.outer(rng.uniform(0.01, 0.1, len(test)), times))
    np.testing.assert_allclose(
        brier_score(TRAIN, test, S, times).scores, peer.brier_score(TRAIN, test, S, times)[1]
    )
    assert integrated_brier_score(TRAIN, test, S, times) == pytest.approx(
        peer.integrated_brier_score(TRAIN, test, S, times), rel=1e-12
    )


def test_scorers():
    """Scorers use the training times of the model; better models score higher."""
    X = np.column_stack([TIME, rng.normal(size=150)])
    model = OKRandomForest(20, kernel="survival", min_samples_leaf=5, random_state=0)
    model.fit(X[:90], TRAIN)
    noise = OKRandomForest(20, kernel="survival", random_state=0).fit(X[:90, 1:], TRAIN)
    for scorer in (concordance_ipcw_scorer, integrated_brier_scorer):
        assert scorer(model, X[90:], TEST) > scorer(noise, X[90:, 1:], TEST)
    functions = model.predict_survival_function(X[90:])
    expected = -integrated_brier_score(TRAIN, TEST, functions)
    assert integrated_brier_scorer(model, X[90:], TEST) == expected


def test_scorers_look_into_searches():
    """A search is scored by its best model; models of other libraries by the risks of predict."""
    X = np.column_stack([TIME, rng.normal(size=150)])
    model = OKRandomForest(5, kernel="survival", random_state=0)
    search = GridSearchCV(make_pipeline("passthrough", model), {}, cv=3)
    search.fit(X[:90], TRAIN)
    best = search.best_estimator_[-1]
    for scorer in (concordance_scorer, concordance_ipcw_scorer, integrated_brier_scorer):
        assert scorer(search, X[90:], TEST) == scorer(best, X[90:], TEST)
    ridge = Ridge().fit(X[:90], -TRAIN.time)
    assert concordance_scorer(ridge, X[90:], TEST) > 0.95
    with pytest.raises(TypeError, match="takes models of okforest"):
        integrated_brier_scorer(ridge, X[90:], TEST)
    with pytest.raises(TypeError, match="needs kernel='survival'"):
        concordance_scorer(OKRandomForest(5).fit(X[:90], TRAIN.time), X[90:], TEST)


def test_representation():
    """A function is shown by its range."""
    assert repr(StepFunction([2.0, 5.0], [0.8, 0.3])) == (
        "StepFunction(2 times from 2 to 5, values from 0.8 to 0.3)"
    )
    assert repr(StepFunction([], [])) == "StepFunction(x=[], y=[])"


INTERVALS = [[1.0, 2.0], [3.0, 3.0]]
ERRORS = {
    "intervals": (lambda: concordance_ipcw(Y, INTERVALS, [1, 2]), "use okforest.survival.concord"),
    "overlap": (lambda: concordance_index([[1.0, 3.0], [2.0, 4.0]], [1, 2]), "intervals overlap"),
    "NaN": (lambda: concordance_index(Y[:2], [np.nan, 1.0]), "1-d array of finite numbers"),
    "length": (lambda: concordance_index(Y[:3], [1.0]), "inconsistent numbers of samples"),
    "pairs": (lambda: concordance_index([[1.0, np.inf], [2.0, 2.0]], [1, 2]), "no pair of cases"),
    "rows": (lambda: brier_score(Y, Y[:2], [[0.5]], [3.0]), "survival has 1 rows; y has 2"),
    "shape": (lambda: brier_score(Y, Y[:1], [[0.5]], [3.0, 4.0]), r"expected \(1, 2\)"),
    "NaN values": (lambda: brier_score(Y, Y[:1], [[np.nan]], [3.0]), "NaN or infinite"),
    "per cent": (lambda: brier_score(Y, Y[:1], [[70.0]], [3.0]), "values from 70 to 70"),
    "negative": (lambda: brier_score(Y, Y[:1], [[-0.1]], [3.0]), "values from -0.1 to -0.1"),
    "order": (lambda: brier_score(Y, Y[:1], [[0.5, 1]], [4.0, 3.0]), "ascending order"),
    "late": (
        lambda: brier_score([[1.0, 1.0], [2.0, np.inf]], Y[:1], [[0.5]], [3.0]),
        "all training cases are censored by the time 3",
    ),
    "later": (
        lambda: brier_score([[1.0, 1.0], [2.0, 2.0]], Y[:1], [[0.5]], [3.0]),
        "were observed until 2",
    ),
    "integral": (lambda: integrated_brier_score(Y, Y[:1], [[0.5]], [3.0]), "at least two times"),
    "few": (lambda: brier_score(Y, Y[:1], [[0.5]]), "too few different times"),
}


@pytest.mark.parametrize(("call", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(call, message):
    """Each misuse has its own error."""
    with pytest.raises(ValueError, match=message):
        call()


def test_unlabelled_is_not_right_censored():
    """A case without any bound has no order, and Uno's C does not take it."""
    with pytest.raises(ValueError, match="intervals or left-censored"):
        concordance_ipcw(Y, [[-np.inf, np.inf], [1.0, 1.0], [2.0, 2.0]], [2.0, 1.0, 0.0])


def test_late_events_do_not_count():
    """Events from the time on at which all training cases are censored have no weight."""
    train = np.rec.fromarrays([[True, False], [1.0, 3.0]], names="event,time")
    test = np.rec.fromarrays([[True, True, True, False], [1.0, 2.0, 4.0, 5.0]], names="event,time")
    assert concordance_ipcw(train, test, [4.0, 3.0, 1.0, 2.0]) == 1.0
    S = np.full((4, 1), 0.5)
    assert brier_score(train, test, S, [2.0]).scores[0] == pytest.approx(0.25)


def test_default_times_of_the_brier_score():
    """Times end before censoring is complete, and at the 90 % quantile."""
    train = np.rec.fromarrays([[True, False], [1.0, 6.5]], names="event,time")
    test = np.rec.fromarrays([np.ones(11, bool), np.arange(11.0)], names="event,time")
    functions = [StepFunction([5.0], [0.5])] * 11
    assert brier_score(train, test, functions).times.tolist() == list(range(7))
    assert brier_score(test, test, functions).times.tolist() == list(range(10))


def test_equal_times_of_the_brier_score():
    """Times ascend, and are a list."""
    with pytest.raises(ValueError, match="ascending order"):
        brier_score(Y, Y[:1], [[0.5, 0.5]], [3.0, 3.0])
    with pytest.raises(ValueError, match="one or more times"):
        brier_score(Y, Y[:1], np.empty((1, 0)), [])
    with pytest.raises(ValueError, match="one or more times"):
        brier_score(Y, Y[:1], [[0.5]], [[3.0]])


def test_risk_is_one_column():
    """A case has one risk."""
    with pytest.raises(ValueError, match="1-d array"):
        concordance_index(Y, np.ones((150, 2)))


def test_nearly_equal_risks_are_tied():
    """Differences of the size of rounding errors do not count."""
    y = [[1.0, 1.0], [2.0, 2.0]]
    assert concordance_index(y, [1.0, 1.0 + 1e-9]) == 0.5
    assert concordance_index(y, [1.0 + 1e-6, 1.0]) == 1.0


def test_ipcw_scorer_uses_the_training_times():
    """Censoring is estimated from the training times."""
    X = np.column_stack([TIME, RISK])
    model = OKRandomForest(20, kernel="survival", min_samples_leaf=5, random_state=0)
    model.fit(X[:90], Y[:90])
    expected = concordance_ipcw(Y[:90], Y[90:], model.predict_risk(X[90:]))
    assert concordance_ipcw_scorer(model, X[90:], Y[90:]) == expected


def test_scorers_take_pipelines():
    """A pipeline has the scorers of its last step."""
    X = np.column_stack([TIME, RISK])
    model = make_pipeline(StandardScaler(), OKTree(kernel="survival", max_depth=3)).fit(X, Y)
    for scorer in (concordance_scorer, concordance_ipcw_scorer, integrated_brier_scorer):
        assert scorer(model, X, Y) == scorer(model[-1], model[0].transform(X), Y)
