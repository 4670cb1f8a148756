"""Conformal sets and intervals of objects that are cut into segments."""

import numpy as np
import pytest

from okforest import OKRandomForest
from okforest.segments import RandomSubseries, SegmentClassifier, SegmentRegressor
from okforest.uncertainty import ConformalIntervals, ConformalSets

CUT = RandomSubseries(6, n_points=5)


@pytest.mark.parametrize("as_list", [False, True], ids=["array", "list"])
@pytest.mark.parametrize("method", ["split", "cross", "prefit"])
def test_conformal_sets(method, as_list):
    """Predictions are weights, so conformal sets and intervals take models on segments."""
    draw = np.random.default_rng(1)
    X = draw.normal(size=(300, 20))
    y = np.arange(300) % 3
    X[np.arange(300), 4 + 5 * y] += 3.5
    X = [series[: 20 - i % 3] for i, series in enumerate(X)] if as_list else X
    model = SegmentClassifier(CUT, random_state=0)
    if method == "prefit":
        sets = ConformalSets(model.fit(X[:100], y[:100]), method=method).fit(X[100:200], y[100:200])
    else:
        sets = ConformalSets(model, method=method, random_state=0).fit(X[:200], y[:200])
    found = sets.predict_sets(X[200:], coverage=0.9)
    assert found.contain(y[200:]).mean() > 0.8
    assert found.sizes.mean() < 2.5
    numbers = SegmentRegressor(CUT, random_state=0)
    if method != "prefit":
        bounds = ConformalIntervals(numbers, method=method, random_state=0).fit(X[:200], y[:200])
        lower, upper = bounds.predict_interval(X[200:], coverage=0.9).T
        assert ((lower <= y[200:]) & (y[200:] <= upper)).mean() > 0.8


def test_conformal_sets_out_of_bag():
    """Segments have no out-of-bag predictions of objects; the error names another method."""
    model = SegmentClassifier(CUT, OKRandomForest(5))
    with pytest.raises(ValueError, match=r"got SegmentClassifier. Use method='cross'"):
        ConformalSets(model, method="oob").fit(np.eye(6), [0, 1] * 3)
