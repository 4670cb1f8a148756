"""Curves averaged over folds, and precision among the best."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from okforest.metrics import average_curve, precision_at_k

FOLDS = st.lists(
    st.tuples(st.booleans(), st.integers(0, 6)), min_size=2, max_size=7
)  # ties are frequent


@given(FOLDS, st.integers(1, 8))
def test_precision_is_the_mean_over_ways_to_order_ties(items, k):
    truth, scores = map(np.array, zip(*items, strict=True))
    orders = [
        order
        for order in itertools.permutations(range(len(items)))
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
    ]
    expected = np.mean([truth[list(order[:k])].mean() for order in orders])
    assert precision_at_k(truth, scores, k) == pytest.approx(expected)


@given(FOLDS)
def test_areas_under_curves_are_the_scores(items):
    """The mean height of a curve is the area that scikit-learn computes, with a fine grid."""
    truth, scores = map(np.array, zip(*items, strict=True))
    n = 4 * 3 * 5 * 7 * 4 + 1
    roc, pr = (average_curve([(truth, scores)], curve, n_points=n) for curve in ("roc", "pr"))
    if truth.any() and not truth.all():
        assert np.trapezoid(roc.mean, roc.x) == pytest.approx(
            roc_auc_score(truth, scores), abs=2e-3
        )
    if truth.any():
        expected = average_precision_score(truth, scores)
        assert pr.folds[0, 1:].mean() == pytest.approx(expected, abs=2e-3)
    else:
        assert np.isnan(pr.folds).all()


def test_vertical_average():
    """Folds are averaged at equal rates; those without a curve take no part."""
    perfect, reverse = ([0, 0, 1, 1], [1, 2, 3, 4]), ([1, 1, 0, 0], [1, 2, 3, 4])
    nothing = ([0, 0], [1, 2])
    curve = average_curve([perfect, reverse, nothing], n_points=3)
    np.testing.assert_array_equal(curve.mean, [0.5, 0.5, 1.0])
    np.testing.assert_array_equal(curve.std, [0.5, 0.5, 0.0])
    assert curve.folds.shape == (3, 3)


def test_errors():
    with pytest.raises(ValueError, match="k=0; use a positive integer"):
        precision_at_k([0, 1], [1, 2], 0)
    assert np.isnan(precision_at_k([], [], 3))
    with pytest.raises(ValueError, match="curve='f1'; use 'roc' or 'pr'"):
        average_curve([], "f1")
