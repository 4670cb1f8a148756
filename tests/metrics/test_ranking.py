"""Curves averaged over folds, and precision at k."""

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
    """On a fine grid, the mean height of a curve is the area that scikit-learn computes."""
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
    """Folds are averaged at each rate; folds without a curve are left out."""
    perfect, reverse = ([0, 0, 1, 1], [1, 2, 3, 4]), ([1, 1, 0, 0], [1, 2, 3, 4])
    nothing = ([0, 0], [1, 2])
    curve = average_curve([perfect, reverse, nothing], n_points=3)
    np.testing.assert_array_equal(curve.mean, [0.5, 0.5, 1.0])
    np.testing.assert_array_equal(curve.std, [0.5, 0.5, 0.0])
    assert curve.folds.shape == (3, 3)


def test_precision_at_recall_zero():
    """A curve starts with the precision of the highest score, not with scikit-learn's 1."""
    curve = average_curve([([0, 1, 1, 0], [4, 3, 2, 1])], "pr", n_points=5)
    np.testing.assert_allclose(curve.mean, [0, 1 / 2, 1 / 2, 2 / 3, 2 / 3])
    assert curve.x.tolist() == [0, 0.25, 0.5, 0.75, 1]


def test_scores_that_are_missing():
    """NaN is refused; infinite scores and integers too large for float64 are ranked."""
    for scores in ([1.0, np.nan, 2.0], np.array([np.nan] * 3, dtype=np.float32)):
        with pytest.raises(ValueError, match=r"NaN for [13] of 3 items.* the lowest score"):
            precision_at_k([0, 1, 1], scores, 1)
        for curve in ("roc", "pr"):
            for truth in ([0, 1, 1], [0, 0, 0]):
                with pytest.raises(ValueError, match="scores contains NaN"):
                    average_curve([([0, 1], [1, 2]), (truth, scores)], curve)
    assert precision_at_k([0, 1, 1], [1.0, -np.inf, np.inf], 1) == 1.0
    assert precision_at_k([0, 1], [2**60, 2**60 + 1], 1) == 1.0


def test_errors():
    for k in (0, 2.0, True):
        with pytest.raises(ValueError, match=f"'k' parameter of precision_at_k .* Got {k}"):
            precision_at_k([0, 1], [1, 2], k)
    assert np.isnan(precision_at_k([], [], 3))
    with pytest.raises(ValueError, match=r"'curve' parameter of average_curve .* Got 'f1'"):
        average_curve([], "f1")
    for curve in ("roc", "pr"):
        with pytest.raises(ValueError, match=r"folds is empty; pass at least one pair \(truth, sc"):
            average_curve([], curve)
    for metric in (lambda *pair: precision_at_k(*pair, 1), lambda *pair: average_curve([pair])):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            metric([0, 0], [1, 2, 3])
