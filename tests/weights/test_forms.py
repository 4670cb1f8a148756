"""Every form of weights behaves as the dense matrix it stands for."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from growing import grow
from okforest.engine import GrowthRules, apply
from okforest.kernels import Linear
from okforest.weights import (
    CombinedWeights,
    DenseWeights,
    GroupedWeights,
    LeafWeights,
    ProductWeights,
    SharpenedWeights,
    Span,
    SparseWeights,
    WeightMatrix,
    as_weights,
    forms,
)


def random_sparse(rng, n, m, density=0.3):
    return sp.random_array((n, m), density=density, random_state=rng, format="csr")


def leaf_weights(rng, n, m, min_samples_leaf):
    X = rng.normal(size=(m, 3))
    trees = grow(X, X, GrowthRules(min_samples_leaf=min_samples_leaf), n_trees=4)
    leaves = apply(trees, rng.normal(size=(n, 3)))
    leaves[rng.uniform(size=leaves.shape) < 0.2] = -1
    return LeafWeights(trees, leaves)


def grouped(rng, n, m, form):
    """Return means of two to four rows of another form."""
    offsets = np.append(0, np.cumsum(rng.integers(2, 5, n)))
    return GroupedWeights(FORMS[form](rng, offsets[-1], m), offsets, rng.random(offsets[-1]))


FORMS = {
    "sparse": lambda rng, n, m: SparseWeights(random_sparse(rng, n, m)),
    "dense": lambda rng, n, m: DenseWeights(rng.normal(size=(n, m))),
    "product": lambda rng, n, m: ProductWeights(rng.normal(size=(n, 3)), rng.normal(size=(3, m))),
    "long product": lambda rng, n, m: ProductWeights(
        rng.normal(size=(n, 2 * m)), rng.normal(size=(2 * m, m))
    ),
    "sparse product": lambda rng, n, m: ProductWeights(
        random_sparse(rng, n, 5), rng.normal(size=(5, m))
    ),
    "product of sparse matrices": lambda rng, n, m: ProductWeights(
        random_sparse(rng, n, 5), random_sparse(rng, 5, m)
    ),
    "combination": lambda rng, n, m: CombinedWeights(
        [SparseWeights(random_sparse(rng, n, m)), DenseWeights(rng.normal(size=(n, m)))],
        [0.3, -2.0],
    ),
    "powers": lambda rng, n, m: SharpenedWeights(SparseWeights(random_sparse(rng, n, m)), 2.5),
    "small leaves": lambda rng, n, m: leaf_weights(rng, n, m, 1),
    "large leaves": lambda rng, n, m: leaf_weights(rng, n, m, 8),
    "groups of sparse rows": lambda rng, n, m: grouped(rng, n, m, "sparse"),
    "groups of leaves": lambda rng, n, m: grouped(rng, n, m, "large leaves"),
}


@pytest.mark.parametrize("form", FORMS)
@given(seed=st.integers(0, 2**31), n=st.integers(1, 12), m=st.integers(16, 40))
def test_forms_equal_the_dense_matrix(form, seed, n, m):
    """Rows, products, entries, support and the bound on the number of entries."""
    rng = np.random.default_rng(seed)
    W = FORMS[form](rng, n, m)
    assert isinstance(W, WeightMatrix)
    assert as_weights(W) is W
    dense = W.tocsr().toarray()
    assert W.shape == dense.shape == (n, m)
    entries = W.entries()
    np.testing.assert_allclose(entries.toarray() if sp.issparse(entries) else entries, dense)
    for values in (rng.normal(size=m), rng.normal(size=(m, 1)), rng.normal(size=(m, 50))):
        np.testing.assert_allclose(W @ values, dense @ values, atol=1e-11)
    values = rng.normal(size=(n, 3))
    np.testing.assert_allclose(W.transposed_product(values), dense.T @ values, atol=1e-11)
    outputs = rng.normal(size=(m, 2))
    np.testing.assert_allclose(W.feature_sums(Span(Linear(), outputs)), dense @ outputs, atol=1e-11)
    rows = slice(n // 3, n)
    np.testing.assert_allclose(W[rows].tocsr().toarray(), dense[rows], atol=1e-12)
    np.testing.assert_array_equal(W.support(), np.flatnonzero((dense != 0).any(axis=0)))
    assert np.count_nonzero(dense) <= W.max_entries <= n * m


def test_products_in_blocks(monkeypatch):
    """Large products are computed some rows at a time, so that they can be interrupted."""
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(10, 30)), rng.normal(size=(30, 12))
    monkeypatch.setattr(forms, "BLOCK_PRODUCTS", 3 * right.size)
    np.testing.assert_allclose(ProductWeights(left, right).entries(), left @ right)


def test_stored_zeros_are_not_in_the_support():
    """The support has nonzero weights, whatever a sparse matrix stores."""
    matrix = sp.csr_array((np.array([0.0, 1.0]), np.array([1, 2]), np.array([0, 2])), shape=(1, 4))
    assert as_weights(matrix).support().tolist() == [2]


def test_anything_like_a_matrix_becomes_weights():
    """Sparse matrices of any format, arrays, lists and a single row."""
    for given_weights in (
        [[0.0, 1.0]],
        np.array([0.0, 1.0]),
        sp.coo_array(np.array([[0.0, 1.0]])),
        sp.csc_matrix(np.array([[0.0, 1.0]])),
    ):
        W = as_weights(given_weights)
        assert W.tocsr().toarray().tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize("form", FORMS)
def test_single_rows_and_bad_arguments(form):
    """An integer selects a matrix of one row; other indices and shapes raise an error."""
    W = FORMS[form](np.random.default_rng(0), 3, 20)
    assert repr(W) == f"<{type(W).__name__} of shape (3, 20)>"
    dense = W.tocsr().toarray()
    np.testing.assert_allclose(W[-1].tocsr().toarray(), dense[-1:])
    np.testing.assert_allclose(W @ list(range(20)), dense @ np.arange(20.0))
    with pytest.raises(IndexError):
        W[3]
    with pytest.raises(TypeError, match="indexed by list; use a slice of rows"):
        W[[0, 1]]
    with pytest.raises(TypeError, match=r"use W\.tocsr\(\) @ values"):
        W @ sp.eye_array(20)
    with pytest.raises(ValueError, match=r"values have shape \(20, 2, 2\)"):
        W @ np.ones((20, 2, 2))


def test_values_of_another_length_are_refused():
    """The number of values is compared with the number of training rows."""
    W = FORMS["large leaves"](np.random.default_rng(0), 3, 20)
    with pytest.raises(ValueError, match=r"values have shape \(7,\); expected \(20,\) or"):
        W @ np.ones(7)


def test_trees_that_do_not_contribute_have_no_entries():
    """The bound on the number of entries counts the leaves that are reached, and no others."""
    W = leaf_weights(np.random.default_rng(0), 6, 40, min_samples_leaf=2)
    reached = [(t, W.leaves[i, t]) for i, t in np.argwhere(W.leaves >= 0)]
    assert len(reached) < W.leaves.size
    assert W.max_entries == sum(W.trees[t].end[j] - W.trees[t].begin[j] for t, j in reached)


def test_max_entries_of_a_combination():
    """A row of a combination has at most the entries of all its parts."""
    one = SparseWeights(sp.csr_array(np.array([[1.0, 0, 0, 0]])))
    two = SparseWeights(sp.csr_array(np.array([[0, 1.0, 1.0, 0]])))
    assert CombinedWeights([one, two], [0.5, 0.5]).max_entries == 3
