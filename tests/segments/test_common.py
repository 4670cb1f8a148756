"""scikit-learn's checks of the estimators on segments, where X is an array of series."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from okforest import OKExtraTrees, OKNeighbors
from okforest.segments import (
    RandomSubseries,
    SegmentClassifier,
    SegmentModel,
    SegmentRegressor,
)

SERIES = RandomSubseries(8, n_points=4)
ESTIMATORS = [
    SegmentClassifier(SERIES, OKExtraTrees(5)),
    SegmentClassifier(SERIES, LogisticRegression(max_iter=1000), combine="confidence"),
    SegmentRegressor(SERIES, OKExtraTrees(5)),
    SegmentRegressor(SERIES, DecisionTreeRegressor()),
    SegmentModel(SERIES, OKNeighbors(3)),
]


def expected_failures(estimator):
    """Return the checks that an estimator cannot pass, and why."""
    if isinstance(estimator.estimator, LogisticRegression):
        reason = "the solver of LogisticRegression stops at a tolerance"
        return {"check_sample_weight_equivalence_on_dense_data": reason}
    return {}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
