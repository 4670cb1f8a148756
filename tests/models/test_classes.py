"""With the Dirac kernel, models are classifiers of scikit-learn."""

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import okforest
from okforest import OKBoost, OKExtraTrees, OKNeighbors, OKRandomForest, OKRidge, OKTree
from okforest.kernels import Dirac, Precomputed

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
    """Classes are those of the kernel, also after loading."""
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
