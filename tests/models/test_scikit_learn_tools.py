"""clone, Pipeline, cross-validation and searches, with explicit and precomputed kernels."""

import numpy as np
import pandas as pd
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone, is_regressor
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from okforest import OKExtraTrees, OKTree
from okforest.kernels import RBF, Linear, Precomputed
from okforest.metrics import kernel_loss_scorer, make_kernel_scorer, output_loss_scorer

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 2]] + 0.1 * rng.normal(size=(60, 2))


@pytest.mark.parametrize("scoring", [None, kernel_loss_scorer, output_loss_scorer])
def test_precomputed_equals_explicit_fold_by_fold(scoring):
    """Cross-validation on Precomputed(K) and positions equals the explicit kernel on outputs."""
    K = RBF(1.0)(Y)
    options = {"cv": 5, "scoring": scoring}
    explicit = cross_val_score(OKExtraTrees(10, kernel=RBF(1.0), random_state=0), X, Y, **options)
    positions = cross_val_score(
        OKExtraTrees(10, kernel=Precomputed(K), random_state=0), X, np.arange(60), **options
    )
    np.testing.assert_allclose(positions, explicit, rtol=1e-9)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_grid_search_over_kernel_parameters(n_jobs):
    """kernel__sigma is searchable, also on the distances of a precomputed kernel."""
    grid = {"kernel__sigma": [0.1, 1.0, 10.0], "min_samples_leaf": [1, 3]}
    of_positions = RBF(base=Precomputed(Y @ Y.T))
    explicit, positions = (
        GridSearchCV(
            OKExtraTrees(5, kernel=kernel, random_state=0),
            grid,
            scoring=make_kernel_scorer(kernel),
            cv=3,
            n_jobs=n_jobs,
        ).fit(X, y)
        for kernel, y in ((RBF(), Y), (of_positions, np.arange(60)))
    )
    np.testing.assert_allclose(
        positions.cv_results_["mean_test_score"], explicit.cv_results_["mean_test_score"]
    )
    assert positions.best_params_ == explicit.best_params_


def test_clone_and_nested_parameters():
    """A clone is unfitted and independent; parameters of kernels are reached by name."""
    model = OKTree(kernel=2.0 * RBF(1.0) + Linear())
    copy = clone(model.fit(X, Y)).set_params(kernel__first__base__sigma=3.0)
    assert not hasattr(copy, "trees_")
    assert copy.kernel.first.base.sigma == 3.0
    assert model.kernel.first.base.sigma == 1.0


def test_pipeline_splits_and_cross_val_predict():
    """Models work inside pipelines, and positions come out of cross_val_predict."""
    pipeline = make_pipeline(StandardScaler(), OKTree(kernel="rbf", max_depth=3))
    X_train, X_test, Y_train, Y_test = train_test_split(X, Y, random_state=0)
    assert pipeline.fit(X_train, Y_train).score(X_test, Y_test) < 1.0
    positions = cross_val_predict(OKTree(kernel=Precomputed(Y @ Y.T)), X, np.arange(60), cv=3)
    assert positions.dtype.kind == "i"
    assert set(positions) <= set(range(60))


def test_only_numeric_outputs_make_a_regressor():
    """Positions and labels are not numbers: scikit-learn's r2 must not be their default."""
    assert is_regressor(OKTree(kernel="rbf"))
    assert not is_regressor(OKTree(kernel="dirac"))
    assert not is_regressor(OKTree(kernel=Precomputed(np.eye(3))))


def test_feature_names():
    """Column names of data frames are checked when predicting."""
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = OKTree().fit(frame, pd.DataFrame(Y))
    assert list(model.feature_names_in_) == list("abcd")
    np.testing.assert_array_equal(model.predict(frame), OKTree().fit(X, Y).predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"a": "z"}))


def test_inside_worker_processes():
    """Fitting and predicting in loky workers gives the same predictions."""
    model = OKExtraTrees(5, random_state=0, n_jobs=2)
    expected = clone(model).fit(X, Y).predict(X)
    results = Parallel(n_jobs=2)(delayed(_fit_predict)(clone(model)) for _ in range(2))
    for result in results:
        np.testing.assert_array_equal(result, expected)


def _fit_predict(model):
    return model.fit(X, Y).predict(X)
