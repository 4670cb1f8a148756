"""With the Dirac kernel, models are classifiers of scikit-learn."""

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    learning_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import okforest
from okforest import (
    DirectionBase,
    OKBoost,
    OKEnsemble,
    OKExtraTrees,
    OKNeighbors,
    OKRandomForest,
    OKRidge,
    OKTree,
)
from okforest.decode import ExpectedLoss
from okforest.kernels import Dirac, Precomputed
from okforest.metrics import kernel_loss, kernel_r2_scorer
from okforest.refit import SemiSupervisedForest
from okforest.segments import RandomSubseries, SegmentClassifier, SegmentModel

X, y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[y]
MODELS = [
    OKTree(kernel="dirac", max_depth=3, random_state=0),
    OKExtraTrees(10, kernel="dirac", random_state=0),
    OKBoost(20, kernel=Dirac(), random_state=0),
    OKNeighbors(5, kernel="dirac"),
    OKRidge(0.1, kernel="dirac"),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_classifier(model):
    """Classes are sorted, and probabilities sum to one and agree with predictions."""
    assert is_classifier(model)
    assert not is_regressor(model)
    model.fit(X, NAMES)
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    P = model.predict_proba(X)
    assert P.shape == (150, 3)
    assert P.min() >= 0
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    winners = P.max(axis=1, keepdims=True) == P
    only = winners.sum(axis=1) == 1
    assert (model.classes_[P.argmax(axis=1)] == model.predict(X))[only].all()
    assert model.fit(X, y).predict(X).dtype == y.dtype


ALL_MODELS = [
    *MODELS,
    OKBoost(5, base=DirectionBase(Ridge()), kernel="dirac", random_state=0),
    OKEnsemble([OKNeighbors(5), OKExtraTrees(5, random_state=0)], kernel="dirac"),
    SemiSupervisedForest(OKExtraTrees(10, kernel="dirac", random_state=0)),
    SegmentModel(RandomSubseries(5), OKExtraTrees(5, kernel="dirac"), random_state=0),
    SegmentClassifier(RandomSubseries(5), random_state=0),
    OKTree(kernel="dirac", decoder=ExpectedLoss(lambda true, predicted: true != "setosa")),
]


@pytest.mark.parametrize("model", ALL_MODELS, ids=lambda model: type(model).__name__)
def test_score_of_a_classifier_is_accuracy(model):
    """All of scikit-learn reads it so; the kernel R² is a scorer."""
    assert is_classifier(model)
    weight = np.random.default_rng(0).uniform(size=75)
    model.fit(X[::2], NAMES[::2])
    predicted = model.predict(X[1::2])
    for w in (None, weight):
        expected = accuracy_score(NAMES[1::2], predicted, sample_weight=w)
        assert model.score(X[1::2], NAMES[1::2], w) == pytest.approx(expected)
        assert model.score(X[1::2], list(NAMES[1::2]), w) == pytest.approx(expected)
    assert model.score(X[1::2], np.full(75, "unknown")) == 0.0
    loss = kernel_loss(model, X[1::2], NAMES[1::2])
    spread = 1 - 3 * (1 / 3) ** 2
    assert kernel_r2_scorer(model, X[1::2], NAMES[1::2]) == pytest.approx(1 - loss / spread)


def test_tools_of_scikit_learn_read_accuracy():
    """Searches, learning curves and importances have the same scores as with "accuracy"."""
    model = OKExtraTrees(10, kernel="dirac", max_features=1, random_state=0)
    split = StratifiedKFold(3)
    for call in (
        lambda scoring: cross_val_score(model, X, NAMES, scoring=scoring, cv=split),
        lambda scoring: learning_curve(
            model, X, NAMES, scoring=scoring, cv=split, shuffle=True, random_state=0
        )[2],
        lambda scoring: (
            permutation_importance(
                model.fit(X[::2], y[::2]), X[1::2], y[1::2], scoring=scoring, random_state=0
            ).importances
        ),
        lambda scoring: (
            GridSearchCV(model, {"max_depth": [1, 3]}, scoring=scoring, cv=split)
            .fit(X, y)
            .cv_results_["mean_test_score"]
        ),
        lambda scoring: cross_val_score(
            make_pipeline(StandardScaler(), model), X, NAMES, scoring=scoring, cv=split
        ),
    ):
        found = call(None)
        np.testing.assert_array_equal(found, call("accuracy"))
        assert (found != call(kernel_r2_scorer)).any()


def test_other_scores_of_a_classifier_are_accuracies():
    """Out of bag, and after each round of boosting."""
    forest = OKRandomForest(30, kernel="dirac", oob_score=True, random_state=0).fit(X, NAMES)
    assert forest.oob_score_ == (forest.oob_prediction_ == NAMES).mean()
    boost = OKBoost(4, kernel="dirac", random_state=0).fit(X[::2], NAMES[::2])
    scores = list(boost.staged_score(X[1::2], NAMES[1::2]))
    predicted = list(boost.staged_predict(X[1::2]))
    assert scores == [(stage == NAMES[1::2]).mean() for stage in predicted]
    assert scores[-1] == boost.score(X[1::2], NAMES[1::2])


def test_other_accuracies_are_weighted():
    """Out of bag, rows weigh as in the fit; after each round of boosting, as they are given."""
    weight = np.random.default_rng(0).uniform(0.1, 1.0, size=150)
    forest = OKRandomForest(30, kernel="dirac", oob_score=True, random_state=0)
    forest.fit(X, NAMES, weight)
    expected = accuracy_score(NAMES, forest.oob_prediction_, sample_weight=weight)
    assert forest.oob_score_ == pytest.approx(expected)
    assert forest.oob_score_ != pytest.approx((forest.oob_prediction_ == NAMES).mean())
    boost = OKBoost(4, kernel="dirac", random_state=0).fit(X[::2], NAMES[::2])
    scores = list(boost.staged_score(X[1::2], NAMES[1::2], weight[1::2]))
    assert scores == pytest.approx(
        [
            accuracy_score(NAMES[1::2], stage, sample_weight=weight[1::2])
            for stage in boost.staged_predict(X[1::2])
        ]
    )


def test_scores_of_other_outputs_are_the_kernel_r2():
    """Sets of labels, and combinations of the Dirac kernel, do not make a classifier."""
    for kernel, outputs in ((0.5 * Dirac(), NAMES), ("hamming", np.eye(3)[y])):
        forest = OKRandomForest(5, kernel=kernel, oob_score=True, random_state=0)
        with pytest.warns(UserWarning, match="no out-of-bag"):
            forest.fit(X, outputs)
        assert forest.score(X, outputs) == kernel_r2_scorer(forest, X, outputs)
        assert forest.oob_score_ < (forest.oob_prediction_ == outputs).mean()


def test_scikit_learn_metrics_and_folds():
    """roc_auc, log loss, stratified folds and ensembles of scikit-learn work."""
    data, target = load_breast_cancer(return_X_y=True)
    model = OKRandomForest(20, kernel="dirac", random_state=0)
    assert cross_val_score(model, data, target, scoring="roc_auc", cv=3).mean() > 0.97
    assert cross_val_score(model, X, y, scoring="roc_auc_ovr", cv=3).mean() > 0.97
    assert cross_val_score(model, X, y, scoring="neg_log_loss", cv=3).mean() > -1.0
    assert cross_val_score(model, X, y, scoring="accuracy").mean() > 0.9  # y is sorted
    assert cross_val_predict(model, X, y, method="predict_proba").shape == (150, 3)
    voting = VotingClassifier(
        [("forest", model), ("lr", LogisticRegression(max_iter=2000))], voting="soft"
    )
    assert voting.fit(X, NAMES).score(X, NAMES) > 0.9
    stacking = StackingClassifier([("forest", model)], cv=3)
    assert stacking.fit(X, y).score(X, y) > 0.9
    calibrated = CalibratedClassifierCV(make_pipeline(StandardScaler(), model), cv=3)
    assert calibrated.fit(X, y).score(X, y) > 0.9


def test_negative_weights():
    """Probabilities are clipped, and are equal where nothing is left."""
    ridge = OKRidge(1e-3, kernel="dirac", input_kernel="linear").fit(X, y)
    assert (ridge.predict_weights(X * 3).toarray() @ np.eye(3)[y]).min() < 0
    P = ridge.predict_proba(X * 3)
    assert P.min() == 0
    np.testing.assert_allclose(P.sum(axis=1), 1.0)


def test_zero_weights():
    """A class of weight zero is not a class of the model."""
    model = OKTree(kernel="dirac").fit(X, y, sample_weight=(y != 1).astype(float))
    assert model.classes_.tolist() == [0, 2]
    assert model.predict_proba(X).shape == (150, 2)


def test_other_kernels():
    """Other kernels are neither classifiers nor have classes."""
    model = OKTree(kernel=Precomputed(np.eye(150))).fit(X, np.arange(150))
    assert not is_classifier(model)
    assert not hasattr(model, "classes_")
    assert not is_classifier(OKTree(kernel="hamming"))
    assert not hasattr(OKTree(kernel="dirac"), "classes_")


def test_saving(tmp_path):
    """Classes are the kernel's, also after loading."""
    model = OKRandomForest(5, kernel="dirac", random_state=0).fit(X, NAMES)
    okforest.save(model, tmp_path / "iris.okforest")
    loaded = okforest.load(tmp_path / "iris.okforest")
    assert loaded.classes_.tolist() == model.classes_.tolist()
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_columns_and_numbers():
    """A column is one label per row, with a warning; numbers are not classes."""
    with pytest.warns(UserWarning, match="column-vector"):
        model = OKTree(kernel="dirac").fit(X, y[:, None])
    assert model.classes_.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="Unknown label type"):
        OKTree(kernel="dirac").fit(X, X[:, 0])
