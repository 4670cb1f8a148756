"""Scores of strings and curves: by their definitions, and as scorers in a search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import make_scorer
from sklearn.model_selection import cross_val_score

from okforest import OKExtraTrees, OKRandomForest
from okforest.kernels import Curves, Spectrum
from okforest.metrics import (
    edit_distance,
    edit_distance_scorer,
    exact_match,
    exact_match_scorer,
    integrated_squared_error,
    integrated_squared_error_scorer,
    output_loss,
)
from reference import outputs as slow

WORDS = st.text("abc", max_size=5)


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=6))
def test_edit_distance_and_exact_match(pairs):
    true, predicted = map(list, zip(*pairs, strict=True))
    distances = np.array([slow.edit_distance(a, b) for a, b in pairs])
    weight = np.arange(1.0, len(pairs) + 1)
    assert edit_distance(true, predicted) == pytest.approx(distances.mean())
    expected = np.average(distances, weights=weight)
    assert edit_distance(true, predicted, sample_weight=weight) == pytest.approx(expected)
    shares = [d / max(len(a), len(b), 1) for d, (a, b) in zip(distances, pairs, strict=True)]
    assert edit_distance(true, predicted, normalize=True) == pytest.approx(np.mean(shares))
    assert exact_match(true, predicted) == pytest.approx((distances == 0).mean())
    tuples = [[tuple(word) for word in words] for words in (true, predicted)]
    assert edit_distance(*tuples) == pytest.approx(distances.mean())
    assert exact_match(*tuples) == pytest.approx((distances == 0).mean())


def test_integrated_squared_error():
    """On any grid it is the loss of outputs with the kernel of curves."""
    rng = np.random.default_rng(0)
    points = np.array([0.0, 0.1, 0.4, 1.0])
    true, predicted = rng.normal(size=(2, 5, 4))
    squares = (true - predicted) ** 2
    expected = (np.diff(points) * (squares[:, 1:] + squares[:, :-1]) / 2).sum(axis=1)
    found = integrated_squared_error(true, predicted, points=points)
    assert found == pytest.approx(expected.mean())
    assert found == pytest.approx(output_loss(Curves(points), true, predicted))
    weight = np.arange(1.0, 6.0)
    found = integrated_squared_error(true, predicted, points=points, sample_weight=weight)
    assert found == pytest.approx(np.average(expected, weights=weight))
    with pytest.raises(ValueError, match="at the same points"):
        integrated_squared_error(true, predicted[:, :3])


def test_scorers_in_cross_validation():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(90, 3)).astype(float)
    words = ["".join("ab"[int(v)] for v in row) for row in X]
    model = OKExtraTrees(20, kernel=Spectrum(2, boundaries=True), random_state=0)
    assert cross_val_score(model, X, words, scoring=exact_match_scorer, cv=3).min() == 1.0
    assert cross_val_score(model, X, words, scoring=edit_distance_scorer, cv=3).max() == 0.0
    curves = X @ rng.normal(size=(3, 10))
    forest = OKRandomForest(20, kernel=Curves(), random_state=0)
    scores = cross_val_score(forest, X, curves, scoring=integrated_squared_error_scorer, cv=3)
    scorer = make_scorer(integrated_squared_error, greater_is_better=False, points=np.arange(10))
    assert np.allclose(9 * scores, cross_val_score(forest, X, curves, scoring=scorer, cv=3))
    assert (scores < 0).all()
