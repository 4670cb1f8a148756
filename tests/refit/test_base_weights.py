"""Weights as leaves times means of leaves, which are not multiplied out if leaves are large."""

import numpy as np
import pytest
import scipy.sparse as sp

from okforest import OKExtraTrees, OKTotallyRandomTrees
from okforest.refit import SemiSupervisedForest
from okforest.refit.laplacian import base_weights
from okforest.weights import ProductWeights

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3))


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

    made = ProductWeights._product.func

    def refuse(weights):
        assert not sp.issparse(weights.right), "the kernel is made"
        return made(weights)

    monkeypatch.setattr(ProductWeights, "_product", property(refuse))
    np.testing.assert_allclose(model.fit(X, y).predict(X), expected, atol=1e-10)
