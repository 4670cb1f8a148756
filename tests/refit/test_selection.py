"""The path of penalties has the scores of separate fits."""

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
    censored,
    select_leaf_penalty,
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
    choice = select_leaf_penalty(model, X, Y, penalties=[0.1, 1.0, 1e6], cv=folds)
    assert choice.values.tolist() == [0.1, 1.0, 1e6]
    for penalty, losses in zip(choice.values, choice.held_out_losses.T, strict=True):
        expected = cross_val_score(model.set_params(leaf_penalty=penalty), X, Y, cv=folds)
        np.testing.assert_allclose(losses, 1.0 - expected, atol=1e-3)
    assert choice.best == choice.values[choice.losses.argmin()]


def test_intervals():
    """Interval- and left-censored outputs are scored by pairs of intervals that have an order."""
    visits = np.array([-np.inf, 1.0, 2.0, 4.0, 6.0, np.inf])
    k = np.searchsorted(visits[1:-1], TIME)
    intervals = np.column_stack([visits[k], visits[k + 1]])
    model = CensoredForest(FOREST, structure="km")
    choice = select_leaf_penalty(model, X, intervals, penalties=[1.0, 10.0], cv=3)
    assert choice.held_out_losses.max() < 0.3
    search = GridSearchCV(model, {"leaf_penalty": [1.0, 10.0]}, cv=3, error_score="raise")
    search.fit(X, intervals)
    expected = 1.0 - choice.losses
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, atol=1e-3)


ERRORS = {
    "Laplacian": (CensoredForest(laplacian=np.eye(120)), {}, ValueError, "pass a function of X"),
    "NaN": (CensoredForest(), {"penalties": [np.nan]}, ValueError, "positive numbers"),
    "model": (SemiSupervisedForest(), {}, TypeError, "takes a CensoredForest"),
    "adjust": (CensoredForest(adjust="outputs"), {}, ValueError, "adjust='outputs'"),
    "norm": (CensoredForest(norm="l1"), {}, ValueError, "norm='l1'"),
    "priors": (CensoredForest(priors=[Bounds(0.0)]), {}, ValueError, "1 priors"),
    "candidates": (CensoredForest(), {"penalties": [0.0]}, ValueError, "positive numbers"),
}


@pytest.mark.parametrize(("model", "extra", "error", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(model, extra, error, message):
    """Each misuse has its own error."""
    with pytest.raises(error, match=message):
        select_leaf_penalty(model, X, Y, **extra)


def test_selection_errors_and_warnings():
    """Penalties are needed; equal ones are tried once."""
    with pytest.raises(ValueError, match="one or more positive"):
        select_leaf_penalty(CensoredForest(FOREST), X, Y, penalties=[])
    hasty = CensoredForest(FOREST, max_iter=1, tol=1e-15)
    with pytest.warns(ConvergenceWarning):
        choice = select_leaf_penalty(hasty, X, Y, penalties=[1.0, 1.0], cv=2)
    assert choice.values.tolist() == [1.0]


@pytest.mark.parametrize("adjust", ["leaves", "both"])
def test_every_penalty_starts_from_the_solution_of_the_previous_one(adjust, monkeypatch):
    """The first guess predicts what the solution with the next larger penalty does."""
    seen = []

    def record(model, X, grown, penalty, start):
        B = Adjustments.create(
            grown.L, grown.expansion.means, adjust, penalty, model.output_penalty
        )
        solution = refit_intervals(model, X, grown, penalty, start)
        seen.append([None if start is None else B.forward(start), B.forward(solution.v)])
        return solution

    monkeypatch.setattr(censored, "refit_intervals", record)
    select_leaf_penalty(
        CensoredForest(FOREST, adjust=adjust), X, Y, penalties=[30.0, 3.0, 0.3], cv=2
    )
    starts = [start is None for start, _ in seen]
    assert starts == [True, False, False] * 2
    for (_, found), (start, _) in pairwise(seen):
        if start is not None:
            np.testing.assert_allclose(start, found, atol=1e-12)
