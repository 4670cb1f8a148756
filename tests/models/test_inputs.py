"""Inputs as people have them: frames of pandas and polars, categories, missing values, sparse."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from okforest import OKBagging, OKExtraTrees, OKRandomForest, OKTotallyRandomTrees, OKTree

MODELS = [OKTree, OKExtraTrees, OKRandomForest, OKBagging, OKTotallyRandomTrees]
rng = np.random.default_rng(0)
N = 90
COLOURS = np.array(["red", "green", "blue", "grey"])[rng.integers(0, 4, N)]
CODES = np.searchsorted(np.unique(COLOURS), COLOURS).astype(float)
HEIGHT = rng.normal(size=N)
HEIGHT[::7] = np.nan
Y = np.c_[np.isin(COLOURS, ["red", "grey"]) * 2.0, np.nan_to_num(HEIGHT)]
FRAME = pd.DataFrame({"height": HEIGHT, "colour": pd.Categorical(COLOURS)})


def make(model, **params):
    return model(random_state=0, **({} if model is OKTree else {"n_estimators": 5}), **params)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("X", "params"),
    {
        "pandas category": (FRAME, {}),
        "pandas text": (FRAME.astype({"colour": "str"}), {}),
        "pandas objects": (FRAME.astype({"colour": object}), {}),
        "pandas nullable": (FRAME.astype({"height": "Float64", "colour": "string"}), {}),
        "polars categorical": (
            pl.DataFrame({"height": HEIGHT, "colour": COLOURS.tolist()}).with_columns(
                pl.col("colour").cast(pl.Categorical)
            ),
            {},
        ),
        "polars text": (
            pl.DataFrame(
                {"height": [None if np.isnan(h) else h for h in HEIGHT], "colour": COLOURS.tolist()}
            ),
            {},
        ),
        "codes by index": (np.c_[HEIGHT, CODES], {"categorical_features": [1]}),
        "codes by mask": (np.c_[HEIGHT, CODES * 10 - 7], {"categorical_features": [False, True]}),
        "by name": (
            pd.DataFrame({"height": HEIGHT, "colour": CODES}),
            {"categorical_features": ["colour"]},
        ),
        "array of objects": (
            np.array([HEIGHT.tolist(), COLOURS.tolist()], dtype=object).T,
            {"categorical_features": [-1]},
        ),
    }.values(),
)
def test_categories_however_they_come(model, X, params):
    """The same categories grow the same trees, whatever holds them."""
    expected = make(model, categorical_features=[1]).fit(np.c_[HEIGHT, CODES], Y)
    fitted = make(model, **params).fit(X, Y)
    assert np.array_equal(fitted.trees_.feature, expected.trees_.feature)
    assert np.array_equal(fitted.trees_.subset_words, expected.trees_.subset_words)
    np.testing.assert_array_equal(fitted.predict(X), expected.predict(np.c_[HEIGHT, CODES]))
    assert len(fitted.categories_[1]) == 4


def test_numeric_frames_are_numeric():
    """Without categories a frame is its numbers, and missing entries are NaN."""
    X = FRAME.assign(colour=CODES)
    polars = pl.DataFrame({"height": HEIGHT, "colour": CODES})
    expected = OKTree(random_state=0).fit(X.to_numpy(), Y).predict(X.to_numpy())
    for frame in (X, polars):
        model = OKTree(random_state=0).fit(frame, Y)
        assert model.categories_ == [None, None]
        assert list(model.feature_names_in_) == ["height", "colour"]
        np.testing.assert_array_equal(model.predict(frame), expected)


def test_categories_are_subsets_not_an_order():
    """One split separates categories that no threshold on codes could."""
    model = OKTree(max_depth=1).fit(FRAME[["colour"]], Y[:, 0])
    assert model.score(FRAME[["colour"]], Y[:, 0]) == pytest.approx(1.0)


def test_unseen_and_missing_categories():
    """A new category, a missing one and a missing number are answered alike: with the majority."""
    model = OKTree(max_depth=1).fit(FRAME[["colour"]], Y[:, 0])
    new = pd.DataFrame({"colour": ["violet", None, "red"]})
    predicted = model.predict(new)
    assert predicted[0] == predicted[1]
    assert predicted[2] == pytest.approx(2.0)
    assert model.predict(pd.DataFrame({"colour": [3.5]}))[0] == predicted[0]


def test_one_odd_value_changes_no_other_row():
    """A number among text is unknown; the other rows are answered as ever."""
    model = OKTree(random_state=0).fit(FRAME[["colour"]], Y[:, 0])
    colours = ["red", "blue", "green", "grey"]
    expected = model.predict(pd.DataFrame({"colour": colours}))
    with_odd = model.predict(pd.DataFrame({"colour": [*colours, 5]}))
    np.testing.assert_array_equal(with_odd[:4], expected)


@pytest.mark.parametrize("model", MODELS)
def test_rows_of_weight_zero_are_as_good_as_removed(model):
    """Categories that only they have are not known either."""
    X = pd.DataFrame({"c": list("abcdbcd") * 5, "x": rng.normal(size=35)})
    y, weight = rng.normal(size=35), (X["c"] != "a") * 1.0
    a = make(model).fit(X, y, weight)
    b = make(model).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_allclose(a.predict(X), b.predict(X))


def test_lists_of_lists():
    """Lists keep numbers, text and missing values apart."""
    X = [["a", 1.0], [np.nan, 2.0], ["b", np.nan], [None, 4.0]]
    model = OKTree(categorical_features=[0]).fit(X, [0.0, 1.0, 2.0, 3.0])
    assert model.categories_[0].tolist() == ["a", "b"]
    assert model.has_missing_.tolist() == [True, True]


def test_a_column_without_categories():
    """A categorical column that is all missing in training is ignored."""
    X = FRAME.assign(empty=pd.Categorical([None] * N))
    model = OKTree(random_state=0).fit(X, Y)
    assert model.feature_importances_[2] == 0.0
    assert model.predict(X.assign(empty="x")).shape == Y.shape


@pytest.mark.parametrize(
    ("X", "categorical_features", "message"),
    [
        (np.c_[HEIGHT, CODES], [2], "does not fit X with 2 features without names"),
        (np.c_[HEIGHT, CODES], ["colour"], "without names; give names, indices"),
        (np.c_[HEIGHT, CODES], [True], "one truth value per feature"),
        (FRAME, ["weight"], "features named height, colour"),
        (FRAME, {"weight"}, "features named height, colour"),
        (FRAME.assign(t=pd.Timestamp("2020-01-01")), "from_dtype", "column of type datetime64"),
        (
            pd.DataFrame({"id": [f"row {i}" for i in range(1025)]}),
            "from_dtype",
            "feature 0 has 1025 categories; at most 1024 are allowed",
        ),
        (FRAME, "auto", "categorical_features='auto'; use None, 'from_dtype'"),
        (sp.csr_array(np.c_[CODES, CODES]), [0], "categories need a dense array"),
        (
            np.array([[1, "a"], ["b", 2], [3, "c"]] * 30, dtype=object),
            [0],
            "feature 0 is categorical, and its values cannot be sorted",
        ),
    ],
)
def test_bad_categories(X, categorical_features, message):
    """What does not fit is explained."""
    with pytest.raises(ValueError, match=message):
        OKTree(categorical_features=categorical_features).fit(X, np.zeros((X.shape[0], 1)))


def test_sparse_prediction_with_categories():
    """Categories need dense inputs in prediction too."""
    model = OKTree(categorical_features=[0]).fit(np.c_[CODES, CODES], Y)
    with pytest.raises(ValueError, match="X is sparse; this model has categorical features"):
        model.predict(sp.csr_array(np.c_[CODES, CODES]))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.coo_array])
def test_sparse_equals_dense(model, container):
    """Sparse inputs, in whatever format, give the predictions of dense ones."""
    X = np.where(rng.uniform(size=(N, 6)) < 0.7, 0.0, rng.normal(size=(N, 6)))
    dense, sparse = (make(model).fit(x, Y) for x in (X, container(X)))
    assert np.array_equal(dense.trees_.threshold, sparse.trees_.threshold)
    np.testing.assert_array_equal(dense.predict(X), sparse.predict(container(X)))


def test_missing_values_help_where_they_tell():
    """A tree sees what filling in means would hide."""
    x = rng.normal(size=200)
    y = np.where(np.abs(x) > 1, 1.0, 0.0)
    X = np.where(np.abs(x) > 1, np.nan, rng.normal(size=200))[:, None]
    assert OKTree(max_depth=1).fit(X, y).score(X, y) == pytest.approx(1.0)
