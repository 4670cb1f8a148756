"""Vectors and curves that are given in a frame come back in one."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import okforest
from okforest import OKBoost, OKExtraTrees, OKNeighbors, OKRandomForest, OKRidge
from okforest.kernels import RBF, Curves, GlobalAlignment, Hierarchy, Wasserstein
from okforest.metrics import make_output_scorer
from okforest.uncertainty import ConformalIntervals, ConformalSets, bands

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
VALUES = X @ rng.normal(size=(2, 3)) + 0.1 * rng.normal(size=(60, 3))
FRAME = pd.DataFrame(VALUES, columns=["red", "green", "blue"])


@pytest.mark.parametrize("kernel", ["linear", RBF(), Curves(points=[0.0, 0.2, 1.0])])
@pytest.mark.parametrize("model", [OKExtraTrees(5), OKBoost(5), OKNeighbors(), OKRidge()])
def test_names_of_columns_are_kept(tmp_path, model, kernel):
    model = model.set_params(kernel=kernel).fit(X, FRAME)
    if "random_state" in model.get_params():
        model.set_params(random_state=0).fit(X, FRAME)
    found = model.predict(X[:4])
    assert list(found.columns) == list(FRAME.columns)
    assert clone(model).fit(X, VALUES).predict(X[:4]).shape == (4, 3)
    okforest.save(model, tmp_path / "model.okf")
    pd.testing.assert_frame_equal(okforest.load(tmp_path / "model.okf").predict(X[:4]), found)
    assert isinstance(model.fit(X, VALUES).predict(X[:4]), np.ndarray)
    np.testing.assert_array_equal(model.predict(X[:4]), found)


@pytest.mark.parametrize("kernel", ["linear", "hamming"])
def test_predictions_have_the_index_of_the_inputs(kernel):
    """So that they can be compared with the true outputs of the same rows."""
    rows = pd.Index([f"case {i}" for i in range(60)])
    inputs = pd.DataFrame(X, columns=["a", "b"], index=rows)
    outputs = FRAME if kernel == "linear" else (FRAME > 0).astype(int)
    outputs = outputs.set_axis(rows)
    model = OKExtraTrees(5, kernel=kernel, random_state=0).fit(inputs[:40], outputs[:40])
    predicted = model.predict(inputs[40:])
    assert (predicted == outputs[40:]).shape == (20, 3)  # pandas compares equal indices only
    assert list(predicted.index) == list(rows[40:])
    assert list(model.fit(X[:40], outputs[:40]).predict(X[40:]).index) == list(range(20))


@pytest.mark.parametrize(
    "columns",
    [
        pd.date_range("2020-01-01", periods=3),
        pd.MultiIndex.from_product([["a"], [1, 2, 3]]),
        pd.Index([0.5, 1.0, 1.5]),
    ],
)
def test_names_of_other_types(tmp_path, columns):
    """Dates, which cannot be saved, are left out."""
    model = OKRidge().fit(X, FRAME.set_axis(columns, axis=1))
    found = model.predict(X[:4])
    okforest.save(model, tmp_path / "model.okf")
    np.testing.assert_array_equal(okforest.load(tmp_path / "model.okf").predict(X[:4]), found)
    if isinstance(columns, pd.DatetimeIndex):
        assert isinstance(found, np.ndarray)
    else:
        assert found.columns.equals(columns)
        assert found.columns.nlevels == columns.nlevels


POLARS = {
    "vectors": ("linear", pl.DataFrame(VALUES, schema=["red", "green", "blue"])),
    "curves": (Curves(), pl.DataFrame(VALUES, schema=["0", "1", "2"])),
    "label sets": ("hamming", pl.DataFrame((VALUES > 0).astype(int), schema=["b", "a", "c"])),
    "hierarchy": (
        Hierarchy({"b": None, "a": None, "c": None}),
        pl.DataFrame((VALUES > 0).astype(int), schema=["b", "a", "c"]),
    ),
    "ranks": ("kendall", pl.DataFrame(FRAME.rank(axis=1).to_numpy(), schema=["b", "a", "c"])),
}


@pytest.mark.parametrize(("kernel", "y"), POLARS.values(), ids=POLARS)
def test_frames_of_polars_come_back_as_such(tmp_path, kernel, y):
    model = OKExtraTrees(5, kernel=kernel, random_state=0).fit(X, y)
    found = model.predict(X[:4])
    assert isinstance(found, pl.DataFrame)
    assert found.columns == y.columns
    expected = clone(model).fit(X, y.to_pandas()).predict(X[:4])
    assert isinstance(expected, pd.DataFrame)
    np.testing.assert_array_equal(found.to_numpy(), expected.to_numpy())
    by_name = kernel not in ("linear", POLARS["curves"][0])  # these match columns by position
    assert (model.score(X, y.select(y.columns[::-1])) == model.score(X, y)) == by_name
    okforest.save(model, tmp_path / "model.okf")
    assert okforest.load(tmp_path / "model.okf").predict(X[:4]).equals(found)


def test_series_of_either_library_are_arrays():
    for series in (pl.Series(VALUES[:, 0]), pd.Series(VALUES[:, 0])):
        assert isinstance(OKExtraTrees(5).fit(X, series).predict(X[:4]), np.ndarray)


def test_other_coordinates_have_no_names():
    for kernel in (Curves(n_points=7), Wasserstein(n_levels=5), Wasserstein(n_levels=3)):
        found = OKRidge(kernel=kernel).fit(X, FRAME).predict(X[:4])
        assert isinstance(found, np.ndarray)


def test_scores_and_conformal_predictions():
    def largest_error(true, predicted):
        return np.abs(true - predicted).max()

    model = OKRandomForest(30, random_state=0)
    scores = [
        cross_val_score(model, X, y, scoring=make_output_scorer(largest_error), cv=3)
        for y in (VALUES, FRAME)
    ]
    np.testing.assert_array_equal(*scores)
    conformal = ConformalIntervals(model, method="oob").fit(X, FRAME)
    assert list(conformal.predict(X[:4]).columns) == list(FRAME.columns)
    assert conformal.predict_interval(X[:4]).shape == (4, 3, 2)  # one row for each column
    assert bands(model.fit(X, FRAME), X[:4]).shape == (4, 3, 2)


def test_conformal_sets_of_a_frame_are_frames():
    ranks = FRAME.rank(axis=1)
    model = ConformalSets(OKRandomForest(20, kernel="kendall", random_state=0), method="oob")
    first_set = model.fit(X, ranks).predict_sets(X[:4])[0]
    assert list(first_set.columns) == list(ranks.columns)
    assert isinstance(model.fit(X, ranks.to_numpy()).predict_sets(X[:4])[0], np.ndarray)


def test_curves_of_any_length_are_arrays():
    y = [np.linspace(0.0, row[0], 4 + (row[1] > 0)) for row in X]
    model = OKRandomForest(30, kernel=GlobalAlignment(), random_state=0, oob_score=True).fit(X, y)
    assert all(isinstance(curve, np.ndarray) for curve in model.predict(X))
    assert all((model.predict(X)[i] - 1.0).ndim == 1 for i in range(3))
    same = make_output_scorer(lambda a, b: float(len(a) == len(b)), greater_is_better=True)
    assert same(model, X, y) > 0.8


@pytest.mark.parametrize(("kernel", "y"), [("linear", FRAME), (Hierarchy(), ["a/b", "a/c"] * 30)])
def test_staged_predictions_have_the_form_of_predictions(kernel, y):
    model = OKBoost(3, kernel=kernel, random_state=0).fit(X, y)
    *_, last = model.staged_predict(X[:4])
    expected = model.predict(X[:4])
    assert type(last) is type(expected)
    if kernel == "linear":
        pd.testing.assert_frame_equal(last, expected)
    else:
        assert last.tolist() == expected.tolist()
