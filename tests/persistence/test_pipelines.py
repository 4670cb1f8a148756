"""Pipelines are saved with the steps of scikit-learn and what these have learnt."""

import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    StandardScaler,
)
from sklearn.svm import SVR

import okforest
from okforest import DirectionBase, OKBoost, OKExtraTrees, OKTree
from okforest.network import NetworkCompletion, PairClassifier
from okforest.persistence import FileFormatError

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 4))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 2]]
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(e=["x", "y", "z"] * 10)
TEXTS = np.array([f"the tree {i % 7} of forest{i % 3}" for i in range(30)])
COLUMNS = make_column_transformer(
    (OneHotEncoder(sparse_output=False), ["e"]),
    (StandardScaler(), slice("a", "b")),
    remainder="passthrough",
)
STEPS = {
    "scaling": (X, [StandardScaler(), MinMaxScaler()]),
    "imputation": (np.where(X > 1, np.nan, X), [SimpleImputer(add_indicator=True)]),
    "components": (X, [VarianceThreshold(), PowerTransformer(), PCA(2)]),
    "single precision": (X.astype(np.float32), [PCA(2, svd_solver="full")]),
    "bins": (X, [KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf")]),
    "columns": (FRAME, [COLUMNS]),
    "codes": (FRAME[["e"]], [OrdinalEncoder(dtype=np.int32)]),
    "frames": (FRAME, [COLUMNS, StandardScaler().set_output(transform="pandas")]),
    "text": (TEXTS, [TfidfVectorizer(), TruncatedSVD(2, random_state=0)]),
    "sparse": (sp.csr_matrix(np.where(X > 0, X, 0.0)), [StandardScaler(with_mean=False)]),
}


def round_trip(model, tmp_path, **options):
    okforest.save(model, tmp_path / "model.okforest")
    return okforest.load(tmp_path / "model.okforest", **options)


@pytest.mark.parametrize(("inputs", "steps"), STEPS.values(), ids=STEPS)
def test_transformers(tmp_path, inputs, steps):
    """A pipeline predicts the same, and can be fitted again."""
    model = make_pipeline(*steps, OKExtraTrees(3, random_state=0)).fit(inputs, Y)
    loaded = round_trip(model, tmp_path)
    expected = model[:-1].transform(inputs)
    transformed = loaded[:-1].transform(inputs)
    assert (
        transformed.dtypes.tolist() == expected.dtypes.tolist()
        if hasattr(expected, "dtypes")
        else (transformed.dtype == expected.dtype)
    )
    assert repr(loaded) == repr(model)
    np.testing.assert_array_equal(loaded.predict(inputs), model.predict(inputs))
    np.testing.assert_array_equal(loaded.fit(inputs, Y).predict(inputs), model.predict(inputs))


@pytest.mark.parametrize("regressor", [Ridge(), SVR(), IsotonicRegression(out_of_bounds="clip")])
def test_regressors(tmp_path, regressor):
    """Regressors of scikit-learn in a boosted model, private attributes included."""
    inputs = X[:, :1]
    model = OKBoost(3, base=DirectionBase(regressor), random_state=0).fit(inputs, Y)
    loaded = round_trip(model, tmp_path)
    np.testing.assert_array_equal(loaded.predict(inputs), model.predict(inputs))


@pytest.mark.parametrize(
    "model",
    [
        NetworkCompletion(make_pipeline(StandardScaler(), OKTree(random_state=0))),
        PairClassifier(),
        PairClassifier(LogisticRegression()),
    ],
    ids=repr,
)
def test_network_models(tmp_path, model):
    """Models of networks hold pipelines and classifiers."""
    links = np.abs(X[:, :1] - X[:, 0]) < 0.3
    model.fit(X, links & ~np.eye(30, dtype=bool))
    loaded = round_trip(model, tmp_path, mmap=True)
    np.testing.assert_array_equal(loaded.predict_links(X[:5]), model.predict_links(X[:5]))


def test_classes_of_scikit_learn_are_not_imported(tmp_path, monkeypatch):
    """A class of scikit-learn must be imported or passed, as any other."""
    model = make_pipeline(PCA(2), OKTree(random_state=0)).fit(X, Y)
    okforest.save(model, tmp_path / "model")
    for name in [name for name in sys.modules if name.startswith("sklearn.decomposition")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(
        FileFormatError, match=r"PCA \(sklearn.decomposition:PCA\).* Import sklearn"
    ):
        okforest.load(tmp_path / "model")
    assert "sklearn.decomposition" not in sys.modules
    loaded = okforest.load(tmp_path / "model", types=[PCA])
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_versions_of_scikit_learn(tmp_path, monkeypatch):
    """scikit-learn warns if its version differs, as it does for pickles."""
    monkeypatch.setattr("sklearn.base.__version__", "1.2.3")
    okforest.save(make_pipeline(StandardScaler(), OKTree()).fit(X, Y), tmp_path / "model")
    monkeypatch.undo()
    with pytest.warns(InconsistentVersionWarning, match=r"from version 1\.2\.3 when"):
        okforest.load(tmp_path / "model")
