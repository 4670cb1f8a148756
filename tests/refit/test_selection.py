"""The path of penalties: the scores are those of separate fits."""

import numpy as np
import pytest
from sklearn.model_selection import KFold, cross_val_score

from okforest import OKExtraTrees
from okforest.refit import Bounds, CensoredForest, SemiSupervisedForest, select_C_leaves

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


ERRORS = {
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
