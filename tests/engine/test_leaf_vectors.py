"""Sums of the means of leaves, computed once, against the weights of training rows."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from growing import grow
from okforest import OKExtraTrees, OKRandomForest
from okforest.engine import GrowthRules, apply, leaf_vectors, leaf_weights, prune
from okforest.weights import span as spans

N, P = 60, 5
BYTES = 2**20


def inputs(kind, n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (n, P)).astype(np.float64)
    if kind == "bytes":
        return X.astype(np.uint8)
    if kind == "sparse":
        return sp.csr_array(np.where(X < 4, 0.0, X))
    if kind == "float32":
        return rng.normal(size=(n, P)).astype(np.float32)
    if kind == "missing":
        X[rng.random(X.shape) < 0.2] = np.nan
    return np.asfortranarray(X) if kind == "columns" else X


KINDS = ("dense", "columns", "float32", "bytes", "sparse", "missing", "categories")


@pytest.mark.parametrize("n_outputs", [1, 3, 40])
@pytest.mark.parametrize("grown_on", ["all rows", "bootstrap", "pruned"])
@pytest.mark.parametrize("kind", KINDS)
def test_sums_equal_those_of_the_weights(kind, grown_on, n_outputs):
    """Sums over leaves equal products with the weights, for all inputs, trees and threads."""
    rng = np.random.default_rng(1)
    X, Z = inputs(kind, N), inputs(kind, 700, seed=2)
    values = rng.integers(0, 3, (N, n_outputs)) + 1e3  # some leaves have equal values
    n_categories = np.full(P, 6, dtype=np.int32) if kind == "categories" else None
    trees = grow(
        X,
        values,
        GrowthRules(min_samples_leaf=2),
        n_trees=5,
        row_weight=rng.uniform(0.5, 3.0, N),
        n_draws=N if grown_on == "bootstrap" else 0,
        n_categories=n_categories,
    )
    if grown_on == "pruned":
        trees = prune(trees, 0.05)
    vectors = leaf_vectors(trees, values, BYTES)
    start = np.arange(n_outputs) * 0.5
    expected = start + leaf_weights(trees, apply(trees, Z)) @ values
    sums = vectors.sums(Z, start, 1 / 5)
    np.testing.assert_allclose(sums, expected, rtol=1e-12)
    for n_threads in (2, 9):
        again = leaf_vectors(trees, values, BYTES, n_threads)
        np.testing.assert_array_equal(again.sums(Z, start, 1 / 5, n_threads), sums)
    few = [vectors.sums(Z[i : i + 3], start, 1 / 5) for i in range(0, 30, 3)]
    np.testing.assert_array_equal(np.concatenate(few), sums[:30])


def test_memory_is_bounded():
    """Only leaves of different values need memory; more than is allowed is not taken."""
    X, y = np.arange(40.0)[:, None], np.arange(40.0)[:, None]
    full, halves = (grow(X, y, GrowthRules(min_samples_leaf=k), n_trees=3) for k in (1, 2))
    assert leaf_vectors(full, y, 0).vectors.shape == (0, 1)
    means = leaf_vectors(halves, y, BYTES).vectors
    assert 3 <= len(means) == (halves.left < 0).sum()
    assert leaf_vectors(halves, y, means.nbytes) is not None
    assert leaf_vectors(halves, y, means.nbytes - 8) is None


def test_arrays_that_do_not_match():
    """Vectors and inputs that do not belong to the trees are refused."""
    X, y = np.arange(40.0)[:, None], np.arange(40.0)[:, None]
    trees = grow(X, y, GrowthRules(min_samples_leaf=2))
    with pytest.raises(ValueError, match="one row per training row"):
        leaf_vectors(trees, y[:9], BYTES)
    vectors = leaf_vectors(trees, y, BYTES)
    with pytest.raises(ValueError, match="X has 2 features"):
        vectors.sums(np.zeros((3, 2)), np.zeros(1), 1.0)
    with pytest.raises(ValueError, match="inconsistent"):
        vectors.sums(X, np.zeros(2), 1.0)
    with pytest.raises(ValueError, match="inconsistent"):
        replace(vectors, places=vectors.places[:-1]).sums(X, np.zeros(1), 1.0)


@pytest.mark.parametrize("kernel", ["linear", "dirac", "hamming"])
@pytest.mark.parametrize("model", [OKExtraTrees, partial(OKRandomForest, min_samples_leaf=3)])
def test_forests_add_up_kept_means(model, kernel, monkeypatch):
    """Predictions do not depend on whether the means of leaves are kept."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(80, 4)), rng.normal(size=(300, 4))
    y = rng.normal(size=(80, 3)) if kernel == "linear" else rng.integers(0, 3, 80)
    if kernel == "hamming":
        y = rng.integers(0, 2, (80, 4))
    forest = model(8, kernel=kernel, random_state=0).fit(X, y)
    predict = forest.predict if kernel == "linear" else forest.predict_proba
    predicted = predict(Z)
    assert "leaf vectors" in forest.span_._kept
    monkeypatch.setattr(spans, "LEAF_BYTES", -1)
    forest.store_outputs(forest.kernel_, forest.outputs_)
    np.testing.assert_allclose(predict(Z), predicted, rtol=1e-12, atol=1e-15)
    assert forest.span_._kept["leaf vectors"][1] is None


def test_trees_added_by_a_warm_start():
    """The means of the last trees are kept."""
    X = np.random.default_rng(0).normal(size=(50, 3))
    forest = OKRandomForest(5, random_state=0, warm_start=True).fit(X, X[:, 0])
    forest.predict(X)
    forest.set_params(n_estimators=9).fit(X, X[:, 0])
    again = OKRandomForest(9, random_state=0).fit(X, X[:, 0])
    np.testing.assert_array_equal(forest.predict(X), again.predict(X))
