"""Segments that count in proportion to their confidence."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from okforest import OKExtraTrees
from okforest.segments import RandomSubseries, SegmentClassifier, SegmentRegressor

rng = np.random.default_rng(0)
SERIES = rng.normal(size=(40, 20)).cumsum(axis=1)
LABELS = np.array(["down", "up"])[(SERIES[:, -1] > SERIES[:, 0]).astype(int)]
CURVES = SERIES[:, ::7]
NEW = rng.normal(size=(9, 20)).cumsum(axis=1)
CUT = RandomSubseries(6, n_points=5)


def test_confidence_counts_weights_of_objects():
    """With combine="confidence" too, an object of weight k is k equal objects."""
    weight = np.arange(40) % 3 + 1
    model = SegmentClassifier(CUT, GaussianNB(), combine="confidence", random_state=0)
    weighted = model.fit(SERIES, LABELS, sample_weight=weight).predict_proba(NEW)
    repeated = model.fit(np.repeat(SERIES, weight, axis=0), np.repeat(LABELS, weight))
    np.testing.assert_allclose(weighted, repeated.predict_proba(NEW), atol=1e-6)


def test_confidence_without_any():
    """Segments that all predict the frequencies of the classes count the same."""
    model = SegmentClassifier(CUT, combine="confidence", random_state=0)
    model.fit(np.ones((6, 10)), [0, 1, 1] * 2)
    np.testing.assert_allclose(model.predict_proba(np.ones((2, 10))), [[1 / 3, 2 / 3]] * 2)
    assert model.evidence(np.ones(10)).shares.tolist() == [1 / 6] * 6


def test_evidence_of_confident_segments():
    """With combine="confidence", the total is the probability too."""
    model = SegmentClassifier(CUT, combine="confidence", random_state=0).fit(SERIES, LABELS)
    for item, expected in zip(NEW, model.predict_proba(NEW), strict=True):
        evidence = model.evidence(item, "up")
        np.testing.assert_allclose(evidence.total, expected[1])
        np.testing.assert_allclose(evidence.shares.sum(), 1.0)


@pytest.mark.parametrize(
    ("n_columns", "shown"), [(1, None), (60, 0)], ids=["number", "more columns than objects"]
)
def test_confidence_does_not_depend_on_offsets(n_columns, shown):
    """Outputs with an offset are as confident as those without."""
    Y = np.repeat(CURVES[:, :1], n_columns, axis=1).squeeze()
    shares = []
    for offset in (0.0, 1e6, 1e9):
        model = SegmentRegressor(CUT, OKExtraTrees(5), combine="confidence", random_state=0)
        model.fit(SERIES, np.round(Y, 3) + offset)
        shares.append(model.evidence(NEW[0], shown).shares)
    assert np.ptp(shares[0]) > 0.05
    np.testing.assert_allclose(shares[1], shares[0], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(shares[2], shares[0], rtol=1e-3, atol=1e-4)
