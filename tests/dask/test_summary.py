"""What fits learn from rows in partitions, and the partitions that do not fit together."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest

from clusters import assert_same_trees, make_data
from okforest import OKRandomForest
from okforest.dask import fit_remote
from okforest.dask.partitions import check_subsets
from okforest.dask.summary import merge, summarize
from okforest.kernels import Dirac, Linear

X, Y = make_data(120)
MODEL = OKRandomForest(3, max_samples=60, random_state=0)


def merged(xs, ys, model=MODEL, kernel=None):
    """Return the summary of partitions."""
    kernel = Linear() if kernel is None else kernel
    pairs = zip(xs, ys, strict=True)
    return merge([summarize(model, kernel, p, None, x, y) for p, (x, y) in enumerate(pairs)])


def with_column(values, begin=0):
    """Return a frame of a number and another column."""
    return pd.DataFrame({"a": X[begin : begin + len(values), 1], "kind": values})


def test_rows_of_weight_zero(threads):
    """Categories and labels that only they have are not learnt, as in a local fit."""
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["kind"] = np.resize(["u", "v", "w", "x"], len(X))
    labels = np.resize(["first", "second", "third"], len(X))
    weight = ((frame["kind"] != "u") & (labels != "first")).to_numpy().astype(float)
    weight[60:] *= 2.0
    model = OKRandomForest(3, kernel="dirac", max_samples=60, random_state=0)
    local = model.fit(frame, labels, weight)
    dataframe = pytest.importorskip("dask.dataframe")
    x = dataframe.from_pandas(frame, npartitions=3)
    y = dataframe.from_pandas(pd.Series(labels), npartitions=3)
    for weights in (weight, da.from_array(weight, chunks=17)):
        found = fit_remote(model, x, y, weights, partitioned=True).to_local()
        assert_same_trees(found, local, but=("variance",))
        assert found.categories_[-1].tolist() == ["v", "w", "x"]
        assert found.kernel_.classes.tolist() == ["second", "third"]
        assert found.embedding_rank_ == local.embedding_rank_
        assert np.array_equal(found.row_weight_, weight)
    with pytest.raises(ValueError, match="sample_weight"):
        fit_remote(model, x, y, weight[1:], partitioned=True)


def test_too_many_categories():
    """They are counted over all partitions."""
    names = np.array([f"id {i}" for i in range(1200)], dtype=object)
    frames = [pd.DataFrame({"name": part}) for part in np.split(names, 2)]
    model = OKRandomForest(categorical_features=["name"], categorical_encoding="subsets")
    message = "column 'name' of X has 1200 categories; at most 1024 are allowed"
    with pytest.raises(ValueError, match=message):
        model.fit(pd.concat(frames), np.arange(1200.0))
    with pytest.raises(ValueError, match=message):
        merged(frames, np.split(np.arange(1200.0), 2), model)


def test_columns_of_outputs():
    """Partitions of y with other columns, or in another order, would mix outputs."""
    first, second = pd.DataFrame(Y[:60], columns=list("abc")), pd.DataFrame(Y[60:])
    for names in ("cba", "abx"):
        second.columns = list(names)
        with pytest.raises(ValueError, match=r"partition 1 of y has columns .* in the same order"):
            merged([X[:60], X[60:]], [first, second])


@pytest.mark.parametrize(
    ("first", "second"), [([0, 1], ["0", "b"]), ([0, 1], np.array(["0", "b"], dtype=object))]
)
def test_labels_of_different_types(first, second):
    """Text and numbers are not mixed."""
    with pytest.raises(ValueError, match=r"y holds text in partition 1, such as '0', and other"):
        merged([X[:2], X[2:4]], [first, second], kernel=Dirac())


def test_categories_of_different_types():
    """The error names the column and both partitions."""
    model = OKRandomForest(categorical_features=["kind"])
    frames = [with_column([1, 2]), with_column(["1", "u"])]
    with pytest.raises(ValueError, match=r"column 'kind' of X holds text in partition 1.* 0, such"):
        merged(frames, [Y[:2], Y[2:4]], model)
    with pytest.raises(ValueError, match=r"'kind' of X is categorical in partition 1 and numeric"):
        merged(frames, [Y[:2], Y[2:4]])


def test_a_column_without_values():
    """Missing values alone have no type: the column is what other partitions make of it."""
    frames = [with_column(np.array(kinds, dtype=object)) for kinds in (["u", "v"], [None, None])]
    summary = merged(frames, [Y[:2], Y[2:4]])
    assert summary.categories[1].tolist() == ["u", "v"]
    assert summary.has_missing.tolist() == [bool(np.isnan(X[:2, 1]).any()), True]


def test_values_without_an_order():
    """Labels of any type that cannot be sorted are an error."""
    labels = [np.array([(1,), (2,)], dtype="O"), np.array([1, 2], dtype=object)]
    labels[0] = np.empty(2, dtype=object)
    labels[0][:] = [(1,), (2,)]
    with pytest.raises(ValueError, match="y holds values that cannot be sorted"):
        merged([X[:2], X[2:4]], labels, kernel=Dirac())


def test_one_row():
    """The error does not blame weights that were not passed."""
    with pytest.raises(ValueError, match="all partitions together have 1 row; at least 2"):
        merged([X[:1], X[:0]], [Y[:1], Y[:0]])


def test_bytes_of_promoted_inputs():
    """Inputs are as large as after their promotion to the type that all partitions have."""
    filled = np.nan_to_num(X)
    parts = [filled[:50].astype(np.float32), filled[50:]]
    summary = merged(parts, [Y[:50], Y[50:]])
    assert summary.dtype == np.float64
    assert summary.n_bytes == filled.nbytes


def test_forests_on_workers_split_subsets():
    """Coordinates of categories depend on outputs, which stay on the workers."""
    categories = [None, np.arange(11)]
    check_subsets(OKRandomForest(categorical_encoding="subsets"), categories)
    check_subsets(OKRandomForest(), [None, np.arange(10)])
    for encoding in ("auto", "target"):
        model = OKRandomForest(categorical_encoding=encoding)
        with pytest.raises(ValueError, match=r"column 1 of X has 11 categories.*'subsets'"):
            check_subsets(model, categories)
    with pytest.raises(ValueError, match="column 1 of X has 2 categories"):
        check_subsets(OKRandomForest(categorical_encoding="target"), [None, np.arange(2)])
