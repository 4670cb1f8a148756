"""scikit-learn's estimator checks on every public estimator; expected failures have a reason."""

import pytest
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from okforest import (
    DirectionBase,
    OKBagging,
    OKBoost,
    OKEnsemble,
    OKExtraTrees,
    OKNeighbors,
    OKRandomForest,
    OKRidge,
    OKTotallyRandomTrees,
    OKTree,
)
from okforest.kernels import RBF, Laplacian, Polynomial
from okforest.refit import CensoredForest, ForestKernel, SemiSupervisedForest
from okforest.uncertainty import ConformalIntervals, ConformalSets

# Every class, and every path through the code that a check can break, at least once.
ESTIMATORS = [
    OKTree(kernel=RBF(), splitter="random"),  # grown from a Gram matrix
    OKTree(kernel="dirac"),  # labels
    OKTree(search_rank=0.9, embedding="cholesky"),
    OKExtraTrees(5, kernel=Laplacian(), embedding="factor", search_rank=2),
    OKExtraTrees(5, kernel=RBF(), criterion="frobenius"),
    OKRandomForest(5, bootstrap=False, kernel=RBF(), embedding="nystrom", max_leaf_nodes=20),
    OKBagging(5, kernel=Laplacian(), embedding="fourier"),  # bootstrapped
    OKTotallyRandomTrees(5),  # grown from features
    OKBoost(8, learning_rate=0.5),
    OKBoost(8, learning_rate=0.5, kernel=RBF(), splitter="random", growth="gain"),
    OKBoost(8, learning_rate=0.5, embedding="factor", subsample=0.8, n_iter_no_change=3),
    OKBoost(2, base=OKNeighbors(3), learning_rate=1.0),
    OKBoost(2, base=DirectionBase(LinearRegression()), learning_rate=1.0),
    OKNeighbors(kernel="dirac", metric="nan_euclidean"),
    OKNeighbors(kernel="rbf", input_kernel="rbf", weights="kernel"),
    OKRidge(kernel="rbf", input_kernel=RBF(), n_components=3),
    OKRidge("loo", input_kernel="linear", n_landmarks=50, random_state=0),
    OKEnsemble([OKExtraTrees(3, random_state=0), OKNeighbors(3)], kernel=RBF()),
    CensoredForest(OKExtraTrees(5, min_samples_leaf=5, random_state=0), scale=None, tol=1e-14),
    SemiSupervisedForest(OKExtraTrees(5, min_samples_leaf=5, random_state=0), laplacian=None),
    SemiSupervisedForest(OKExtraTrees(5, random_state=0), adjust="outputs"),
    ForestKernel(OKExtraTrees(5, min_samples_leaf=5, random_state=0)),
    ForestKernel(
        OKTotallyRandomTrees(5, min_samples_leaf=5, random_state=0),
        features="nystrom",
        random_state=0,
    ),
    ConformalIntervals(OKTree(random_state=0), random_state=0),
    ConformalSets(OKTree(kernel="dirac", random_state=0), method="cross", cv=2, random_state=0),
]
# The same paths in other combinations.
MORE_ESTIMATORS = [
    OKTree(),
    OKExtraTrees(5),
    OKExtraTrees(5, kernel=Laplacian(), embedding="factor"),
    OKExtraTrees(5, kernel=RBF(), search_rank=2),
    OKRandomForest(5),
    OKRandomForest(5, kernel=RBF(), embedding="nystrom"),
    OKRandomForest(5, kernel=Polynomial(), max_leaf_nodes=20),
    OKBagging(5),
    OKBagging(5, kernel=RBF()),
    OKTotallyRandomTrees(5, kernel="rbf"),
    OKBoost(8, learning_rate=0.5, kernel=Laplacian(), embedding="factor"),
    OKBoost(8, learning_rate=0.5, subsample=0.8, n_iter_no_change=3),
    OKBoost(4, kernel=RBF(), base=OKRidge(0.1), learning_rate=1.0),
    OKBoost(4, base=OKNeighbors(3), learning_rate=1.0),
    OKBoost(4, base=DirectionBase(LinearRegression()), learning_rate=1.0),
    OKNeighbors(),
    OKRidge(),
    OKRidge("loo", kernel=RBF()),
]


def expected_failures(estimator):
    """Return the checks that an estimator cannot pass, and why."""
    if getattr(estimator, "bootstrap", False):
        # scikit-learn expects the same failures of its bootstrapped forests, for this reason.
        reason = "sample_weight is not equivalent to removing/repeating samples."
    elif isinstance(estimator, OKRidge) and estimator.alpha == "loo":
        reason = "a row of weight 2 is left out as a whole; of two equal rows, one is left out"
    elif isinstance(estimator, OKBoost) and estimator.subsample < 1.0:
        reason = "a row of weight 2 is drawn as a whole; two equal rows are drawn independently"
    elif isinstance(estimator, ForestKernel) and estimator.features == "nystrom":
        reason = "landmarks are drawn from rows, whatever their weights"
    elif isinstance(estimator, SemiSupervisedForest) and estimator.laplacian is not None:
        reason = "the graph links two equal rows, and does not know weights"
    else:
        return {}
    name = "check_sample_weight_equivalence_on_{}_data"
    failures = {name.format(kind): reason for kind in ("dense", "sparse")}
    if isinstance(estimator, SemiSupervisedForest):
        if estimator.adjust == "outputs":  # all rows are labelled: nothing is adjusted
            failures = {}
        failures["check_estimators_nan_inf"] = "neighbours need numbers, predictions do not"
    return failures


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(MORE_ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_checks_in_other_combinations(estimator, check):
    check(estimator)
