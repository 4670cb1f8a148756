"""scikit-learn's battery of checks, on every public estimator; no failure is expected."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from okforest import OKBagging, OKExtraTrees, OKRandomForest, OKTotallyRandomTrees, OKTree
from okforest.kernels import RBF, Laplacian, Polynomial

ESTIMATORS = [
    OKTree(),
    OKTree(kernel=RBF(), splitter="random"),
    OKTree(kernel="dirac"),
    OKExtraTrees(5),
    OKExtraTrees(5, kernel=Laplacian(), embedding="factor"),
    OKRandomForest(5),
    OKRandomForest(5, kernel=Polynomial(), max_leaf_nodes=20),
    OKBagging(5),
    OKBagging(5, kernel=RBF()),
    OKExtraTrees(5, kernel=RBF(), search_rank=2),
    OKTree(search_rank="auto", embedding="cholesky"),
    OKRandomForest(5, kernel=RBF(), embedding="nystrom"),
    OKBagging(5, kernel=Laplacian(), embedding="fourier"),
    OKTotallyRandomTrees(5),
    OKTotallyRandomTrees(5, kernel="rbf"),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
