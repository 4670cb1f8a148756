"""Concordance and Brier scores: by definition, and beside scikit-survival where it is installed."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from okforest import OKRandomForest
from okforest.metrics import (
    StepFunction,
    brier_score,
    concordance_index,
    concordance_ipcw,
    concordance_ipcw_scorer,
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


def test_concordance_in_blocks(monkeypatch):
    """The result does not depend on how many pairs are compared at a time."""
    expected = concordance_index(Y, RISK)
    monkeypatch.setattr("okforest.metrics.survival.BLOCK", 7)
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
    """The scores are those of the definition, for functions and for arrays."""
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
    """All four metrics equal those of scikit-survival."""
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


INTERVALS = [[1.0, 2.0], [3.0, 3.0]]
ERRORS = {
    "intervals": (lambda: concordance_index(INTERVALS, [1, 2]), "exact and right-censored"),
    "NaN": (lambda: concordance_index(Y[:2], [np.nan, 1.0]), "1-d array of finite numbers"),
    "length": (lambda: concordance_index(Y[:3], [1.0]), "inconsistent numbers of samples"),
    "pairs": (lambda: concordance_index([[1.0, np.inf], [2.0, 2.0]], [1, 2]), "no pair of cases"),
    "rows": (lambda: brier_score(Y, Y[:2], [[0.5]], [3.0]), "survival has 1 rows; y has 2"),
    "shape": (lambda: brier_score(Y, Y[:1], [[0.5]], [3.0, 4.0]), r"expected \(1, 2\)"),
    "order": (lambda: brier_score(Y, Y[:1], [[0.5, 1]], [4.0, 3.0]), "ascending order"),
    "late": (
        lambda: brier_score([[1.0, 1.0], [2.0, np.inf]], Y[:1], [[0.5]], [3.0]),
        "all training cases are censored by the time 3",
    ),
    "integral": (lambda: integrated_brier_score(Y, Y[:1], [[0.5]], [3.0]), "at least two times"),
    "few": (lambda: brier_score(Y, Y[:1], [[0.5]]), "too few different times"),
}


@pytest.mark.parametrize(("call", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(call, message):
    """Each misuse has its own error."""
    with pytest.raises(ValueError, match=message):
        call()
