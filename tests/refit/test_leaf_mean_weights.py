"""Weights as leaves times means of leaves, which are not multiplied out if leaves are large."""

import numpy as np
import pytest
import scipy.sparse as sp

from okforest import OKExtraTrees, OKTotallyRandomTrees
from okforest.refit import SemiSupervisedForest
from okforest.refit._labelled_growth import base_weights
from okforest.refit._leaf_mean_weights import LeafMeanWeights

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3))
SMALL = sp.csr_array(rng.random((20, 6)) * (rng.random((20, 6)) < 0.4))
MEANS = sp.csr_array(rng.random((6, 30)))


@pytest.mark.parametrize("n", [20, 1], ids=["factors", "product"])
def test_products(n):
    """Both orders of multiplication give the product of the matrices."""
    W = LeafMeanWeights(SMALL, MEANS)[:n]
    expected = SMALL.toarray()[:n] @ MEANS.toarray()
    assert W.shape == (n, 30)
    np.testing.assert_allclose(W.tocsr().toarray(), expected)
    for values in (rng.normal(size=30), rng.normal(size=(30, 2))):
        np.testing.assert_allclose(W @ values, expected @ values)
    values = rng.normal(size=(n, 2))
    np.testing.assert_allclose(W.transposed_product(values), expected.T @ values)
    assert (expected != 0).sum() <= W.max_entries <= expected.size


def test_entries_are_bounded():
    """The bound counts each leaf of a row, and no more than all training outputs."""
    L = sp.csr_array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    A = sp.csr_array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 0.0, 1.0]])
    assert LeafMeanWeights(L, A).max_entries == 6
    assert LeafMeanWeights(sp.csr_array(np.ones((2, 3))), A).max_entries == 8


def test_renormalised():
    """Rows that reach some leaves without labelled rows use the others; rows of none, the mean."""
    L = sp.csr_array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
    means = sp.csr_array([[0.5, 0.5], [1.0, 0.0], [0.0, 0.0]])
    expected = [[0.75, 0.25], [1.0, 0.0], [0.5, 0.5]]
    np.testing.assert_allclose(base_weights(L, means).tocsr().toarray(), expected)
    expected = [[0.75, 0.25], [1.0, 0.0]]
    np.testing.assert_allclose(base_weights(L[:2], means).tocsr().toarray(), expected)


@pytest.mark.parametrize("trees", [OKExtraTrees, OKTotallyRandomTrees])
@pytest.mark.parametrize("adjust", ["leaves", "outputs"])
def test_the_kernel_is_not_made(trees, adjust, monkeypatch):
    """With large leaves the kernel of the forest is dense: fit and predict do without it."""
    y = np.where(np.arange(300) < 200, X[:, 0], np.nan)
    model = SemiSupervisedForest(trees(5, min_samples_leaf=60, random_state=0), adjust=adjust)
    expected = model.fit(X, y).predict_weights(X) @ y[:200]

    def refuse(weights):
        raise AssertionError("the kernel is made")

    monkeypatch.setattr(LeafMeanWeights, "tocsr", refuse)
    np.testing.assert_allclose(model.fit(X, y).predict(X), expected, atol=1e-10)
