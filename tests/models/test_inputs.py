"""Inputs of all types: frames of pandas and polars, categories, missing values, sparse."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from okforest import (
    OKBagging,
    OKBoost,
    OKExtraTrees,
    OKNeighbors,
    OKRandomForest,
    OKRidge,
    OKTotallyRandomTrees,
    OKTree,
)

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
    """The same categories grow the same trees in every container."""
    expected = make(model, categorical_features=[1]).fit(np.c_[HEIGHT, CODES], Y)
    fitted = make(model, **params).fit(X, Y)
    assert np.array_equal(fitted.trees_.feature, expected.trees_.feature)
    assert np.array_equal(fitted.trees_.subset_words, expected.trees_.subset_words)
    np.testing.assert_array_equal(fitted.predict(X), expected.predict(np.c_[HEIGHT, CODES]))
    assert len(fitted.categories_[1]) == 4


def test_numeric_frames_are_numeric():
    """Without categories a frame equals its array of numbers; missing entries are NaN."""
    X = FRAME.assign(colour=CODES)
    polars = pl.DataFrame({"height": HEIGHT, "colour": CODES})
    expected = OKTree(random_state=0).fit(X.to_numpy(), Y).predict(X.to_numpy())
    for frame in (X, polars):
        model = OKTree(random_state=0).fit(frame, Y)
        assert model.categories_ == [None, None]
        assert list(model.feature_names_in_) == ["height", "colour"]
        np.testing.assert_array_equal(model.predict(frame), expected)


@pytest.mark.filterwarnings("error:X does not have valid feature names")
@pytest.mark.parametrize("model", [OKTree(), OKNeighbors(3), OKRidge()], ids=repr)
def test_a_fit_without_names_forgets_those_of_a_previous_fit(model):
    """After a frame and then an array, neither fit nor predict knows names."""
    X = FRAME.assign(colour=CODES).fillna(0.0)
    assert list(model.fit(X, Y).feature_names_in_) == ["height", "colour"]
    model.fit(X.to_numpy(), Y)
    assert not hasattr(model, "feature_names_in_")
    model.predict(X.to_numpy())


def test_lists_keep_their_types():
    """In a list of rows, numbers and missing values beside text do not become text."""
    X = [[float(i % 3), "ab"[i % 2] if i else np.nan] for i in range(12)]
    numbers, text = OKTree(categorical_features=[0, 1]).fit(X, np.arange(12.0)).categories_
    assert numbers.tolist() == [0.0, 1.0, 2.0]
    assert text.tolist() == ["a", "b"]


@pytest.mark.parametrize("model", [OKRidge(), OKNeighbors(3)], ids=repr)
def test_missing_values_of_sparse_inputs(model):
    """Models that need numbers refuse NaN among the stored entries, in fit and in predict."""
    X = sp.csr_array(np.c_[CODES, CODES[::-1]])
    missing = X.copy()
    missing.data[5] = np.nan
    with pytest.raises(ValueError, match="X has missing values"):
        model.fit(missing, Y)
    with pytest.raises(ValueError, match="X has missing values"):
        model.fit(X, Y).predict(missing)
    trees = OKTree().fit(missing, Y)
    assert trees.has_missing_.tolist() == np.isnan(missing.toarray()).any(axis=0).tolist()


def test_categories_are_subsets_not_an_order():
    """One split separates categories that no threshold on their codes separates."""
    model = OKTree(max_depth=1).fit(FRAME[["colour"]], Y[:, 0])
    assert model.score(FRAME[["colour"]], Y[:, 0]) == pytest.approx(1.0)


def test_unseen_and_missing_categories():
    """A new category, a missing one and a number all go with the majority."""
    model = OKTree(max_depth=1).fit(FRAME[["colour"]], Y[:, 0])
    new = pd.DataFrame({"colour": ["violet", None, "red"]})
    predicted = model.predict(new)
    assert predicted[0] == predicted[1]
    assert predicted[2] == pytest.approx(2.0)
    with pytest.warns(UserWarning, match="column 'colour' of X holds numbers"):
        assert model.predict(pd.DataFrame({"colour": [3.5]}))[0] == predicted[0]


def test_one_odd_value_changes_no_other_row():
    """A number among text is an unknown category; other rows are not affected."""
    model = OKTree(random_state=0).fit(FRAME[["colour"]], Y[:, 0])
    colours = ["red", "blue", "green", "grey"]
    expected = model.predict(pd.DataFrame({"colour": colours}))
    with_odd = model.predict(pd.DataFrame({"colour": [*colours, 5]}))
    np.testing.assert_array_equal(with_odd[:4], expected)


@pytest.mark.parametrize("model", MODELS)
def test_rows_of_weight_zero_are_ignored(model):
    """Categories that occur in them only are unknown."""
    X = pd.DataFrame({"c": list("abcdbcd") * 5, "x": rng.normal(size=35)})
    y, weight = rng.normal(size=35), (X["c"] != "a") * 1.0
    a = make(model).fit(X, y, weight)
    b = make(model).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_allclose(a.predict(X), b.predict(X))


def test_lists_of_lists():
    """Lists may hold numbers, text and missing values."""
    X = [["a", 1.0], [np.nan, 2.0], ["b", np.nan], [None, 4.0]]
    model = OKTree(categorical_features=[0]).fit(X, [0.0, 1.0, 2.0, 3.0])
    assert model.categories_[0].tolist() == ["a", "b"]
    assert model.has_missing_.tolist() == [True, True]


def test_numbers_instead_of_text():
    """Codes instead of categories are unknown, with a warning; missing values give none."""
    X = pd.DataFrame({"a": ["u", "v", "w"] * 4, "b": np.arange(12.0)})
    model = OKTree(random_state=0).fit(X, X.b)
    unknown = model.predict(X.assign(a="x"))
    message = r"column 'a' of X holds numbers \(int64\), but in training .* text, such as 'u'"
    with pytest.warns(UserWarning, match=message):
        np.testing.assert_array_equal(model.predict(X.assign(a=np.arange(12))), unknown)
    with pytest.warns(UserWarning, match=r"column 'a' of X holds numbers \(bool\)"):
        model.predict(X.assign(a=True))
    model.predict(X.assign(a=np.nan))
    model.predict(X.assign(a=pd.Series([1, 2, "u"] * 4, dtype=object)))
    array = OKTree(categorical_features=[0]).fit(X.to_numpy(dtype=object), X.b)
    with pytest.warns(UserWarning, match=r"column 0 of X holds numbers \(float64\)"):
        array.predict(np.zeros((2, 2)))


def test_a_column_without_categories():
    """A categorical column without any value in training is ignored."""
    X = FRAME.assign(empty=pd.Categorical([None] * N))
    model = OKTree(random_state=0).fit(X, Y)
    assert model.feature_importances_[2] == 0.0
    assert model.predict(X.assign(empty="x")).shape == Y.shape


@pytest.mark.parametrize(
    ("X", "categorical_features", "message"),
    [
        (np.c_[HEIGHT, CODES], [2], "does not match X, which has 2 features without names"),
        (np.c_[HEIGHT, CODES], ["colour"], "without names. Use a list of names, of indices"),
        (np.c_[HEIGHT, CODES], [True], "one boolean per feature"),
        (FRAME, ["weight"], "features named height, colour"),
        (FRAME, {"weight"}, "features named height, colour"),
        (FRAME, "auto", "categorical_features='auto'; use None, 'from_dtype'"),
        (sp.csr_array(np.c_[CODES, CODES]), [0], "not supported for sparse X; pass a dense array"),
        (
            np.array([[1, "a"], ["b", 2], [3, "c"]] * 30, dtype=object),
            [0],
            "column 0 of X is categorical, but its values cannot be sorted",
        ),
    ],
)
def test_bad_categories(X, categorical_features, message):
    """The error names the column and a remedy."""
    with pytest.raises(ValueError, match=message):
        OKTree(categorical_features=categorical_features).fit(X, np.zeros((X.shape[0], 1)))


def test_sparse_prediction_with_categories():
    """Categories need dense inputs in predictions too."""
    model = OKTree(categorical_features=[0]).fit(np.c_[CODES, CODES], Y)
    with pytest.raises(ValueError, match="X is sparse, but this model has categorical features"):
        model.predict(sp.csr_array(np.c_[CODES, CODES]))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.coo_array])
def test_sparse_equals_dense(model, container):
    """Sparse inputs of every format give the predictions of dense inputs."""
    X = np.where(rng.uniform(size=(N, 6)) < 0.7, 0.0, rng.normal(size=(N, 6)))
    dense, sparse = (make(model).fit(x, Y) for x in (X, container(X)))
    assert np.array_equal(dense.trees_.threshold, sparse.trees_.threshold)
    np.testing.assert_array_equal(dense.predict(X), sparse.predict(container(X)))


def test_missing_values_can_be_informative():
    """A split separates missing values from all others."""
    x = rng.normal(size=200)
    y = np.where(np.abs(x) > 1, 1.0, 0.0)
    X = np.where(np.abs(x) > 1, np.nan, rng.normal(size=200))[:, None]
    assert OKTree(max_depth=1).fit(X, y).score(X, y) == pytest.approx(1.0)


TEXT = FRAME.assign(size=np.array(["small", "large"])[rng.integers(0, 2, N)])


@pytest.mark.parametrize(
    ("X", "chosen", "found", "complete"),
    [
        (TEXT, ["colour"], "column 'size', such as '(small|large)'", ["colour", "size"]),
        (TEXT, [1], "column 'size'", [1, 2]),
        (TEXT, None, "columns 'colour', 'size', such as", "from_dtype"),
        (pl.DataFrame(TEXT.astype({"colour": "str"})), ["size"], "column 'colour'", [1, 2]),
        (TEXT.to_numpy(), "from_dtype", "columns 1, 2, such as", [1, 2]),
        (TEXT.to_numpy(), [2], "column 1, such as", [1, 2]),
        (np.array([["a", "1.5"], ["b", "2"]] * 45), "from_dtype", "column 0, such as 'a'", [0]),
        ([[1.0, "a"], [2.0, "b"]] * 45, None, "column 1, such as 'a'", [1]),
    ],
)
def test_text_in_columns_that_are_not_categorical(X, chosen, found, complete):
    """The error names these columns, and its advice works."""
    message = f"X has text in {found}.*Name columns of text in categorical_features"
    with pytest.raises(ValueError, match=message):
        OKTree(categorical_features=chosen).fit(X, Y)
    model = OKTree(categorical_features=complete).fit(X, Y)
    assert model.predict(X).shape == Y.shape


def test_text_in_predictions():
    """Where there were numbers in training."""
    model = OKTree().fit(FRAME[["height"]], Y)
    with pytest.raises(ValueError, match=r"X has text in column 'height', such as 'x'\. There"):
        model.predict(pd.DataFrame({"height": [1.0, "x"]}))
    assert model.predict(pd.DataFrame({"height": ["1.5", "2"]})).shape == (2, 2)  # numbers as text


@pytest.mark.parametrize("model", [OKRidge(), OKNeighbors(), OKBoost(base=OKRidge())], ids=repr)
def test_models_that_require_numbers(model):
    """Text and categories are refused by name."""
    for X, columns in ((TEXT, "'colour', 'size'"), (TEXT[["height", "size"]].fillna(0), "'size'")):
        with pytest.raises(ValueError, match=f"text columns: {columns}. OK.* requires numbers"):
            model.fit(X, Y)
    with pytest.raises(ValueError, match=r"X has text in columns 1, 2, such as .* OneHotEncoder"):
        model.fit(TEXT.to_numpy(), Y)


DAYS = pd.date_range("2020-01-01", periods=N)


@pytest.mark.parametrize("model", [OKTree(), OKExtraTrees(2), OKBoost(2), OKRidge(), OKNeighbors()])
@pytest.mark.parametrize(
    ("days", "kind"),
    [
        (DAYS, "datetime64"),
        (DAYS.tz_localize("UTC"), "datetime64"),
        (DAYS - DAYS[0], "timedelta64"),
        (DAYS.to_period("M"), "period"),
        (DAYS.date, "date;"),
        ([None, *DAYS[1:].to_pydatetime()], "datetime"),
        (pd.Series([None, *(DAYS - DAYS[0])[1:].to_pytimedelta()], dtype=object), "timedelta"),
    ],
    ids=["dates", "zone", "differences", "periods", "objects", "missing", "deltas"],
)
def test_times_are_refused_by_name(model, days, kind):
    """The error names the column; numbers of days are accepted."""
    X = pd.DataFrame({"x": np.arange(N * 1.0), "day": days})
    with pytest.raises(ValueError, match=f"column 'day' of X has type {kind}.*days since a date"):
        model.fit(X, Y)
    model.fit(X.assign(day=(DAYS - DAYS[0]).days), Y)


def test_times_of_polars_and_numpy():
    """Frames of polars have names, arrays have none."""
    frame = pl.DataFrame({"x": np.arange(N * 1.0), "day": DAYS.date.tolist()})
    with pytest.raises(ValueError, match="column 'day' of X has type Date; convert times"):
        OKTree().fit(frame, Y)
    with pytest.raises(ValueError, match=r"X has type datetime64\[s\]; convert times"):
        OKTree().fit(DAYS.to_numpy().astype("datetime64[s]")[:, None], Y)
    model = OKTree().fit(frame.select("x"), Y)
    with pytest.raises(ValueError, match="column 'x' of X has type Date"):
        model.predict(frame.select(pl.col("day").alias("x")))


@pytest.mark.parametrize("model", [OKTree(), OKRidge()], ids=repr)
def test_lazy_frames(model):
    """Are to be collected first."""
    frame = pl.DataFrame({"x": np.arange(N * 1.0)})
    with pytest.raises(ValueError, match=r"X is a LazyFrame, .*; pass X\.collect\(\) instead"):
        model.fit(frame.lazy(), Y)
    model.fit(frame.lazy().collect(), Y)
    with pytest.raises(ValueError, match="X is a LazyFrame"):
        model.predict(frame.lazy())


@pytest.mark.parametrize("model", [OKTree(), OKRidge()], ids=repr)
def test_repeated_names(model):
    """Names must be unique, for categories and inspection; arrays have none."""
    X = pd.DataFrame(rng.normal(size=(N, 4)), columns=["a", "b", "a", "b"])
    with pytest.raises(ValueError, match=r"several columns named 'a', 'b'; .*X\.to_numpy\(\)"):
        model.fit(X, Y)
    model.fit(X.to_numpy(), Y)


@pytest.mark.parametrize("kind", ["Int64", "Float64", "boolean", "Int8", "object"])
def test_missing_values_of_pandas(kind):
    """pandas.NA in a column of numbers is a missing value."""
    values = (HEIGHT > 0) * 1.0
    gaps = np.isnan(HEIGHT)
    column = pd.Series(values).astype("int64" if kind == "object" else kind).astype(kind)
    column[gaps] = pd.NA
    X = pd.DataFrame({"x": column, "code": CODES})
    expected = np.c_[np.where(gaps, np.nan, values), CODES]
    tree = OKTree(random_state=0).fit(X, Y)
    assert tree.categories_ == [None, None]
    assert tree.has_missing_.tolist() == [True, False]
    reference = OKTree(random_state=0).fit(expected, Y)
    np.testing.assert_array_equal(tree.trees_.threshold, reference.trees_.threshold)
    np.testing.assert_array_equal(tree.predict(X), reference.predict(expected))
    with pytest.raises(
        ValueError, match=r"X has missing values \(NaN\); impute them, or use trees"
    ):
        OKRidge().fit(X, Y)
    if kind != "boolean":
        filled = X.assign(x=column.mask(gaps, 2))
        numbers = np.c_[np.where(gaps, 2.0, values), CODES]
        model = OKRidge().fit(filled, Y)
        np.testing.assert_array_equal(
            model.predict(filled), OKRidge().fit(numbers, Y).predict(numbers)
        )


def test_masked_arrays():
    """Masked numbers are missing values: NaN for trees, an error for ridge regression."""
    numbers = np.c_[np.nan_to_num(HEIGHT), CODES]
    mask = np.c_[np.isnan(HEIGHT), np.zeros(N, dtype=bool)]
    expected = np.where(mask, np.nan, numbers)
    masked = np.ma.array(numbers, mask=mask)
    for model in (OKTree(random_state=0), OKExtraTrees(3, random_state=0), OKBoost(3)):
        model.fit(masked, Y)
        assert model.has_missing_.tolist() == [True, False]
        predicted = model.predict(masked)
        np.testing.assert_array_equal(predicted, model.predict(expected))
        np.testing.assert_array_equal(predicted, model.fit(expected, Y).predict(expected))
    with pytest.raises(ValueError, match=r"X has missing values \(NaN\); impute"):
        OKRidge().fit(masked, Y)
    with pytest.raises(ValueError, match=r"X has missing values \(NaN\); use metric='nan_euclid"):
        OKNeighbors().fit(numbers, Y).predict(masked)
    nan_euclidean = OKNeighbors(metric="nan_euclidean").fit(masked, Y)
    np.testing.assert_array_equal(nan_euclidean.predict(masked), nan_euclidean.predict(expected))


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.bool_, np.float32])
def test_masked_arrays_of_other_types(kind):
    """Integers become floats if some are masked, and stay the same otherwise."""
    numbers = (CODES[:, None] + [0, 1, 2]).astype(kind)
    mask = rng.uniform(size=numbers.shape) < 0.2
    model = OKTree(random_state=0).fit(np.ma.array(numbers, mask=mask), Y)
    expected = OKTree(random_state=0).fit(np.where(mask, np.nan, numbers.astype(float)), Y)
    np.testing.assert_array_equal(model.trees_.threshold, expected.trees_.threshold)
    assert model.has_missing_.all()
    for nothing in (False, np.zeros(numbers.shape, dtype=bool)):
        unmasked = np.ma.array(numbers, mask=nothing)
        a, b = (OKRidge().fit(X, Y).predict(X) for X in (unmasked, numbers))
        np.testing.assert_array_equal(a, b)
        assert not isinstance(OKTree().fit(unmasked, Y).predict(unmasked), np.ma.MaskedArray)


def test_masks_that_have_no_meaning():
    """Masked text and masked weights are refused."""
    with pytest.raises(ValueError, match="masked array of type <U5; only masked numbers become"):
        OKTree(categorical_features=[0]).fit(np.ma.array(COLOURS[:, None], mask=False), Y)
    weight = np.ma.array(np.ones(N), mask=np.arange(N) == 3)
    for model in (OKTree(), OKRidge(), OKNeighbors(), OKBoost(2)):
        with pytest.raises(ValueError, match="sample_weight has masked entries; pass a weight"):
            model.fit(CODES[:, None], Y, sample_weight=weight)
        model.fit(CODES[:, None], Y, sample_weight=np.ma.array(np.ones(N), mask=False))
