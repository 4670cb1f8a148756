"""The path of penalties: the scores are those of separate fits."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from okforest import OKExtraTrees
from okforest.refit import (
    Bounds,
    CensoredForest,
    SemiSupervisedForest,
    select_C_leaves,
    selection,
)
from okforest.refit.intervals import refit_intervals
from okforest.refit.leaves import Adjustments

rng = np.random.default_rng(0)
X = rng.uniform(size=(120, 3))
TIME = np.exp(2 * X[:, 0] + rng.normal(0.0, 0.4, size=120))
LIMIT = rng.exponential(6.0, size=120)
Y = np.rec.fromarrays([TIME <= LIMIT, np.minimum(TIME, LIMIT)], names="event,time")
FOREST = OKExtraTrees(10, min_samples_leaf=5, random_state=0)


@pytest.mark.parametrize("adjust", ["leaves", "both"])
def test_path_is_a_grid_search(adjust):
    """Warm starts do not change the scores."""
    model = CensoredForest(FOREST, adjust=adjust, tol=1e-10)
    folds = KFold(4, shuffle=True, random_state=0)
    choice = select_C_leaves(model, X, Y, candidates=[0.1, 1.0, 1e6], cv=folds)
    assert choice.candidates.tolist() == [1e6, 1.0, 0.1]
    for C, scores in zip(choice.candidates, choice.scores.T, strict=True):
        expected = cross_val_score(model.set_params(C_leaves=C), X, Y, cv=folds)
        np.testing.assert_allclose(scores, expected, atol=1e-3)
    best = choice.scores.mean(axis=0).argmax()
    assert choice.C_leaves == choice.candidates[best]


def test_intervals():
    """Interval- and left-censored outputs are scored by pairs of intervals that have an order."""
    visits = np.array([-np.inf, 1.0, 2.0, 4.0, 6.0, np.inf])
    k = np.searchsorted(visits[1:-1], TIME)
    intervals = np.column_stack([visits[k], visits[k + 1]])
    model = CensoredForest(FOREST, structure="km")
    choice = select_C_leaves(model, X, intervals, candidates=[1.0, 10.0], cv=3)
    assert choice.scores.min() > 0.7
    search = GridSearchCV(model, {"C_leaves": [1.0, 10.0]}, cv=3, error_score="raise")
    search.fit(X, intervals)
    expected = choice.scores.mean(axis=0)[::-1]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, atol=1e-3)


ERRORS = {
    "Laplacian": (CensoredForest(laplacian=np.eye(120)), {}, ValueError, "pass a function of X"),
    "NaN": (CensoredForest(), {"candidates": [np.nan]}, ValueError, "positive numbers"),
    "model": (SemiSupervisedForest(), {}, TypeError, "takes a CensoredForest"),
    "adjust": (CensoredForest(adjust="outputs"), {}, ValueError, "adjust='outputs'"),
    "norm": (CensoredForest(norm="l1"), {}, ValueError, "norm='l1'"),
    "priors": (CensoredForest(priors=[Bounds(0.0)]), {}, ValueError, "1 priors"),
    "candidates": (CensoredForest(), {"candidates": [0.0]}, ValueError, "positive numbers"),
}


@pytest.mark.parametrize(("model", "extra", "error", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(model, extra, error, message):
    """Each misuse has its own error."""
    with pytest.raises(error, match=message):
        select_C_leaves(model, X, Y, **extra)


def test_selection_errors_and_warnings():
    """Penalties are needed; equal ones are tried once."""
    with pytest.raises(ValueError, match="one or more positive"):
        select_C_leaves(CensoredForest(FOREST), X, Y, candidates=[])
    hasty = CensoredForest(FOREST, max_iter=1, tol=1e-15)
    with pytest.warns(ConvergenceWarning):
        choice = select_C_leaves(hasty, X, Y, candidates=[1.0, 1.0], cv=2)
    assert choice.candidates.tolist() == [1.0]


@pytest.mark.parametrize("adjust", ["leaves", "both"])
def test_every_penalty_starts_from_the_solution_of_the_previous_one(adjust, monkeypatch):
    """The first guess predicts what the solution with the next larger penalty does."""
    seen = []

    def record(model, X, grown, C, start):
        B = Adjustments.create(grown.L, grown.expansion.means, adjust, C, model.C_outputs)
        solution = refit_intervals(model, X, grown, C, start)
        seen.append([None if start is None else B.forward(start), B.forward(solution.v)])
        return solution

    monkeypatch.setattr(selection, "refit_intervals", record)
    select_C_leaves(CensoredForest(FOREST, adjust=adjust), X, Y, candidates=[30.0, 3.0, 0.3], cv=2)
    starts = [start is None for start, _ in seen]
    assert starts == [True, False, False] * 2
    for (_, found), (start, _) in pairwise(seen):
        if start is not None:
            np.testing.assert_allclose(start, found, atol=1e-12)
