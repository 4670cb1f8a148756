"""Pipelines are saved with the steps of scikit-learn and what these have learnt."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_regression
from sklearn.impute import SimpleImputer
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVR

import okforest
from okforest import DirectionBase, OKBoost, OKExtraTrees, OKTree
from okforest.network import NetworkCompletion, PairClassifier

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


CELLS = make_column_transformer(
    (make_pipeline(SimpleImputer(), StandardScaler()), ["a", "b"]),
    (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), ["e"]),
    remainder=SimpleImputer(add_indicator=True),
    sparse_threshold=0,
)
HOLES = FRAME.mask(rng.uniform(size=FRAME.shape) < 0.2)
COMMON = {
    "a column transformer": (HOLES, [CELLS]),
    "scalers": (X, [StandardScaler(), MinMaxScaler(), RobustScaler(), PCA(2)]),
    "polynomials": (X, [PolynomialFeatures(2), SelectKBest(f_regression, k=3)]),
    "bins": (X, [KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf")]),
    "codes": (FRAME[["e"]], [OrdinalEncoder()]),
    "text": (TEXTS, [TfidfVectorizer(), TruncatedSVD(2, random_state=0)]),
}


def test_a_fresh_process_loads_common_preprocessors(tmp_path):
    """Only scikit-learn's estimators in the file are imported, and predictions are the same."""
    for i, (inputs, steps) in enumerate(COMMON.values()):
        model = make_pipeline(*steps, OKExtraTrees(3, random_state=0)).fit(inputs, Y[:, 0])
        if any(isinstance(step, SelectKBest) for step in steps):
            with pytest.raises(TypeError, match=r"score_func is a function.*score_func to None"):
                okforest.save(model, tmp_path / "model")
            model.set_params(selectkbest__score_func=None)
        okforest.save(model, tmp_path / f"{i}.okforest")
        values = inputs.to_dict("list") if hasattr(inputs, "columns") else inputs.tolist()
        case = {"inputs": values, "frame": isinstance(values, dict)}
        case["expected"] = model.predict(inputs).tolist()
        (tmp_path / f"{i}.json").write_text(json.dumps(case))
    program = """
import json, sys
import numpy as np
import okforest

assert not {"sklearn.impute", "sklearn.compose"} & sys.modules.keys()
for i in range(int(sys.argv[2])):
    model = okforest.load(f"{sys.argv[1]}/{i}.okforest")
    case = json.load(open(f"{sys.argv[1]}/{i}.json"))
    if case["frame"]:
        import pandas
        inputs = pandas.DataFrame(case["inputs"])
    else:
        inputs = np.array(case["inputs"])
    np.testing.assert_array_equal(model.predict(inputs), case["expected"])
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), str(len(COMMON))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "columns", [make_column_selector(dtype_include="number"), lambda X: ["a", "b"]]
)
def test_functions_that_choose_columns_are_refused_with_a_remedy(tmp_path, columns):
    """The names that they return can be saved."""
    model = make_pipeline(make_column_transformer((StandardScaler(), columns)), OKTree())
    with pytest.raises(TypeError, match=r"transformers\[0\]\[2\] is a .*names of the columns"):
        okforest.save(model.fit(FRAME, Y), tmp_path / "model")
    model[0].set_params(transformers=[("scaler", StandardScaler(), columns(FRAME))])
    loaded = round_trip(model.fit(FRAME, Y), tmp_path)
    np.testing.assert_array_equal(loaded.predict(FRAME), model.predict(FRAME))


def test_versions_of_scikit_learn(tmp_path, monkeypatch):
    """scikit-learn warns if its version differs, as it does for pickles."""
    monkeypatch.setattr("sklearn.base.__version__", "1.2.3")
    okforest.save(make_pipeline(StandardScaler(), OKTree()).fit(X, Y), tmp_path / "model")
    monkeypatch.undo()
    with pytest.warns(InconsistentVersionWarning, match=r"from version 1\.2\.3 when"):
        okforest.load(tmp_path / "model")
