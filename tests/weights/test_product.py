"""Products of two sparse matrices, which are not multiplied out if the product is denser."""

import numpy as np
import pytest
import scipy.sparse as sp

from okforest.weights import ProductWeights

rng = np.random.default_rng(0)
SMALL = sp.csr_array(rng.random((20, 6)) * (rng.random((20, 6)) < 0.4))
MEANS = sp.csr_array(rng.random((6, 30)))


@pytest.mark.parametrize("n", [20, 1], ids=["factors", "product"])
def test_products(n):
    """Both orders of multiplication give the product of the matrices."""
    W = ProductWeights(SMALL, MEANS)[:n]
    expected = SMALL.toarray()[:n] @ MEANS.toarray()
    assert W.shape == (n, 30)
    for values in (rng.normal(size=30), rng.normal(size=(30, 2))):
        np.testing.assert_allclose(W @ values, expected @ values)
    np.testing.assert_allclose(W.tocsr().toarray(), expected)
    for values in (rng.normal(size=30), rng.normal(size=(30, 2))):  # with the product at hand
        np.testing.assert_allclose(W @ values, expected @ values)
    values = rng.normal(size=(n, 2))
    np.testing.assert_allclose(W.transposed_product(values), expected.T @ values)
    assert (expected != 0).sum() <= W.max_entries <= expected.size


def test_entries_are_bounded():
    """The bound counts each leaf of a row, and no more than all training outputs."""
    L = sp.csr_array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    A = sp.csr_array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 0.0, 1.0]])
    assert ProductWeights(L, A).max_entries == 6
    assert ProductWeights(sp.csr_array(np.ones((2, 3))), A).max_entries == 8
