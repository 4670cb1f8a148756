"""Outputs that a kernel cannot take are refused with a remedy, and the remedies work."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from okforest import OKTree
from okforest.kernels import (
    RBF,
    Diffusion,
    Dirac,
    FromCallable,
    Laplacian,
    Linear,
    Mahalanobis,
    Normalized,
    Polynomial,
    Precomputed,
)

NUMERIC = [Linear(), RBF(), Laplacian(), Polynomial(), Mahalanobis(), 2.0 * Linear()]
DAYS = np.array(["2020-01-01", "2020-01-02", "2020-01-04"], dtype="datetime64[D]")
GRAPH = np.ones((3, 3))
EVERY = {
    "numbers": (Linear(), np.arange(3.0)),
    "labels": (Dirac(), np.array(["a", "b", "a"])),
    "objects": (FromCallable(np.equal.outer), np.arange(3)),
    "positions": (Precomputed(np.eye(3)), np.arange(3)),
    "vertices": (Diffusion(GRAPH), np.arange(3)),
    "part": (Normalized(Linear()), np.arange(3.0)),
}
every_kind = pytest.mark.parametrize(("kernel", "y"), EVERY.values(), ids=EVERY)


def jaccard(a, b):
    return len(a & b) / len(a | b)


@pytest.mark.parametrize("kernel", NUMERIC, ids=repr)
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (
            ["a", "b"],
            r"y holds text, such as 'a'; .* use kernel=Dirac\(\); for strings, .*FromCall",
        ),
        (np.array([b"a", b"b"]), "y holds text, such as b'a'"),
        (pd.Series(["a", "b"]), "y holds text, such as 'a'"),
        (pd.DataFrame({"u": [1.0, 2.0], "v": ["x", "y"]}), "y holds text, such as 'x'"),
        (
            [{1, 2}, {3}],
            "y holds sets; .*kernel='hamming', 'jaccard' or 'dice'",
        ),
        ([{"u": 1}, {"u": 2}], "y holds objects of type dict; .*Precomputed"),
        ([object(), object()], "y holds objects of type object; .*FromCallable"),
        ([[1.0, 2.0], [3.0]], r"different lengths \(1 to 2\).*'jaccard'.*FromCallable"),
        ([[[1.0], [2.0, 3.0]]] * 2, "y holds outputs of different lengths; this kernel"),
        (pd.Series([[1.0, 2.0], [3.0]]), "y holds outputs of different lengths"),
        (pd.Series([[1.0, 2.0], [3.0, 4.0]]), r"vectors as objects; pass np.stack\(y\)"),
        (np.zeros((4, 2, 2)), r"shape \(4, 2, 2\); .*y.reshape\(len\(y\), -1\)"),
        ([[["a"]], [["b"]]], r"shape \(2, 1, 1\)"),
        (np.array([1.0, None], dtype=object), "y contains None, a missing value; remove its row"),
        (pd.Series([1, None], dtype="Int64"), "y contains NaN, .* remove the rows of missing"),
        (pd.Series([1, pd.NA], dtype=object), "y contains <NA>, a missing value"),
        (pd.Series([1.0, np.nan]), "y contains NaN"),
        (sp.csr_array(np.eye(2)), r"y is a sparse matrix.*pass y.toarray\(\)"),
        (DAYS, r"y holds dates or times \(datetime64\[D\]\); .*np.timedelta64\(1, 'D'\)"),
        (DAYS - DAYS[0], r"dates or times \(timedelta64"),
        (pd.Series(DAYS), r"dates or times \(datetime64"),
        (pl.Series(DAYS), r"dates or times \(datetime64"),
        ([datetime.date(2020, 1, 1)] * 2, r"dates or times \(date\)"),
        ([pd.Timestamp("2020-01-01")] * 2, r"dates or times \(Timestamp\)"),
        ([pd.Timestamp("2020-01-01"), pd.NaT], "dates or times"),
        ("abc", "y is the single value 'abc'"),
        (np.array(3.0), "single value"),
        (None, "single value None"),
        ([1j, 2j], "Complex data not supported"),
    ],
)
def test_what_numeric_kernels_refuse(kernel, y, message):
    with pytest.raises(ValueError, match=message):
        kernel.check(y)


@pytest.mark.parametrize(
    "y",
    [
        [1, 2, 4],
        ["1", "2.0", "4"],
        [True, False, True],
        np.array([1, 2, 4], dtype=object),
        pd.Series([1, 2, 4], dtype="Int64"),
        pd.DataFrame({"u": [1, 2, 4], "v": [0.5, 1.0, 2.0]}),
        pl.DataFrame({"u": [1, 2, 4]}),
        np.ma.array([1.0, 2.0, 4.0]),
    ],
    ids=lambda y: type(y).__name__,
)
def test_what_numeric_kernels_accept(y):
    checked = Linear().check(y)
    assert type(checked) is np.ndarray
    assert checked.dtype == np.float64
    expected = np.asarray(y).astype(float)
    np.testing.assert_array_equal(checked, expected)


def test_remedies_for_numeric_kernels():
    """The advice in the messages gives outputs, or kernels, that work."""
    images = np.arange(12.0).reshape(3, 2, 2)
    assert RBF().check(images.reshape(len(images), -1)).shape == (3, 4)
    vectors = pd.Series([[1.0, 2.0], [3.0, 4.0]])
    assert RBF().check(np.stack(vectors)).shape == (2, 2)
    for y in (DAYS, pd.Series(DAYS), DAYS - DAYS[0]):
        np.testing.assert_array_equal(
            Linear().check((y - y.min()) / np.timedelta64(1, "D")), [0.0, 1.0, 3.0]
        )
    sets = FromCallable(jaccard, elementwise=True)
    np.testing.assert_array_equal(sets(sets.check([{1, 2}, {2}])), [[1.0, 0.5], [0.5, 1.0]])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (
            [1, "1"],
            r"y mixes text and other labels, such as '1' and 1; use one type, .*str\(label\)",
        ),
        ([[1], ["1"]], "y mixes text and other labels"),
        (["a", 1.5], "y mixes text"),
        (["a", b"a"], "y mixes text and other labels, such as 'a' and b'a'"),
        (["a", True], "y mixes text"),
        (np.array([1, "1"], dtype=object), "y mixes text"),
        (pd.Series([1, "1"], dtype=object), "y mixes text"),
        (["a", np.nan], "y contains nan, a missing value"),
        (["a", None], "y contains None, a missing value"),
        (pd.Series(["a", pd.NA], dtype=object), "y contains <NA>, a missing value"),
        (pd.Series(["a", pd.NaT], dtype=object), "y contains NaT, a missing value"),
        (pd.Series([1, pd.NA], dtype="Int64"), "y contains (<NA>|NaN)"),  # by version of pandas
        (pd.Series([1.0, np.nan]), "y contains NaN"),
        (DAYS, r"y holds dates or times \(datetime64\[D\]\); the Dirac kernel takes labels"),
        (pd.Series(DAYS), "dates or times"),
        (DAYS.tolist(), r"dates or times \(date\)"),
        ([{1}, {1, 2}], r"y holds sets, such as \{1\}.*kernel='hamming', 'jaccard' or 'dice'"),
        ([{1}, {1}], "y holds sets"),
        ([["a", "b"], ["c"]], "different lengths"),
        ([["a", "b"], ["c", "d"]], "one label per row"),
        ("abc", "single value"),
    ],
)
def test_what_labels_refuse(y, message):
    with pytest.raises(ValueError, match=message):
        Dirac().check(y)


def test_labels_that_differ_are_never_merged():
    """1 and "1" are refused in one list, and stay apart in two."""
    for y in ([1, 2, 1], ["1", "2", "1"], [1, 2.0, True], [b"1", b"2", b"1"]):
        np.testing.assert_array_equal(Dirac()(Dirac().check(y))[0], [1.0, 0.0, 1.0])
    y = [str(label) for label in (1, "2", 1)]
    np.testing.assert_array_equal(Dirac()(Dirac().check(y))[0], [1.0, 0.0, 1.0])
    assert Dirac().check([str(day) for day in DAYS]).shape == (3,)
    with pytest.raises(ValueError, match="y mixes text"):
        OKTree(kernel="dirac").fit(np.arange(4.0)[:, None], [1, "1", 1, "1"])


@every_kind
def test_masked_outputs_are_refused(kernel, y):
    """A masked entry has no value; a mask without masked entries changes nothing."""
    checked = kernel.check(np.ma.array(y))
    assert type(checked) is np.ndarray
    np.testing.assert_array_equal(checked, y)
    with pytest.raises(ValueError, match=r"masked entries, .* remove their rows from X and y"):
        kernel.check(np.ma.array(y, mask=[False, False, True]))


def test_masks_inside_lists_are_refused():
    """NumPy would drop them."""
    rows = [np.ma.array([1.0, 2.0], mask=[False, True]), np.ma.array([3.0, 4.0])]
    for y in (rows, tuple(rows), [1.0, np.ma.masked]):
        with pytest.raises(ValueError, match="masked entries"):
            Linear().check(y)
    assert Linear().check(rows[1:]).shape == (1, 2)


@every_kind
def test_lazy_frames_are_refused(kernel, y):
    with pytest.raises(ValueError, match=r"y is a LazyFrame, .* pass y.collect\(\)"):
        kernel.check(pl.LazyFrame({"y": [1.0, 2.0]}))


@every_kind
def test_single_values_are_refused(kernel, y):
    for value in (3, "abc", None):
        with pytest.raises(
            ValueError, match=f"single value {value!r}; it must hold one output per"
        ):
            kernel.check(value)


def test_ragged_positions_are_refused():
    with pytest.raises(ValueError, match=r"different lengths \(1 to 2\)"):
        Precomputed(np.eye(3)).check([[0], [1, 2]])


def test_objects_stay_as_they_are():
    """A kernel given by a function takes anything: dates, missing values, mixed types."""
    y = [1, "1", None, datetime.date(2020, 1, 1), {1}, [1, 2]]
    checked = FromCallable(jaccard, elementwise=True).check(y)
    assert checked.tolist() == y
