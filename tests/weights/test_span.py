"""Inner products, norms and losses of weighted sums of outputs, against dense matrices."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import okforest.weights.span as span_module
from okforest.kernels import RBF, Dirac, Linear, Precomputed
from okforest.weights import ProductWeights, Span, as_weights

rng = np.random.default_rng(0)
Y = rng.normal(size=(30, 2))
CASES = {
    "features": (Linear(), Y, rng.normal(size=(7, 2))),
    "gram": (RBF(1.0), Y, rng.normal(size=(7, 2))),
    "labels": (Dirac(), rng.integers(0, 3, 30), rng.integers(0, 6, 7)),  # some not seen
    "positions": (Precomputed(np.eye(40) + 1.0), np.arange(30), np.arange(33, 40)),
}


@pytest.mark.parametrize(("kernel", "outputs", "y"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("block_bytes", [2**26, 1000], ids=["one block", "many blocks"])
@pytest.mark.parametrize("kind", ["sparse", "product"])
def test_span_equals_dense_algebra(kernel, outputs, y, block_bytes, kind, monkeypatch):
    """Inner products, norms and losses follow from W, K and the outputs."""
    monkeypatch.setattr(span_module, "BLOCK_BYTES", block_bytes)
    if kind == "sparse":
        w, v = rng.normal(size=(2, 7, 30)) * (rng.uniform(size=(2, 7, 30)) < 0.3)
        W, V = sp.csr_array(w), sp.csr_array(v)
    else:
        W, V = (ProductWeights(rng.normal(size=(7, r)), rng.normal(size=(r, 30))) for r in (2, 30))
        w, v = W.left @ W.right, V.left @ V.right
    K, cross = kernel(outputs), kernel(outputs, y)
    span = Span(kernel.resolve(outputs), outputs)
    np.testing.assert_allclose(span.inner(W, y), w @ cross, atol=1e-11)
    np.testing.assert_allclose(span.inner_pairs(W, y), np.diag(w @ cross), atol=1e-11)
    np.testing.assert_allclose(span.gram(W), w @ K @ w.T, atol=1e-11)
    np.testing.assert_allclose(span.gram(W, V), w @ K @ v.T, atol=1e-11)
    np.testing.assert_allclose(
        span.mean_gram([W, V], [V, V]), (w @ K @ v.T + v @ K @ v.T) / 2, atol=1e-11
    )
    np.testing.assert_allclose(span.squared_norms(W), np.diag(w @ K @ w.T), atol=1e-11)
    losses = kernel.diag(y) - 2 * np.diag(w @ cross) + np.diag(w @ K @ w.T)
    np.testing.assert_allclose(span.losses(W, y), losses, atol=1e-11)


@pytest.mark.parametrize("rank", [1, 5, 40])
def test_products(rank):
    """A product behaves as the matrix it stands for, whether it is made or not."""
    left, right = rng.normal(size=(8, rank)), rng.normal(size=(rank, 30))
    W, dense = ProductWeights(left, right), left @ right
    assert W.shape == dense.shape
    np.testing.assert_allclose(W[2:5].entries(), dense[2:5])
    for values in (rng.normal(size=30), rng.normal(size=(30, 1)), rng.normal(size=(30, 99))):
        np.testing.assert_allclose(W @ values, dense @ values, atol=1e-11)
    np.testing.assert_allclose(W @ Y, dense @ Y, atol=1e-11)
    np.testing.assert_allclose(W.tocsr().toarray(), dense)


@pytest.mark.parametrize("kernel", [RBF(1.0), Linear()], ids=str)
def test_a_large_gram_matrix_is_in_memory_once(kernel, monkeypatch):
    """Sums are made in blocks, which change nothing, beside the result."""
    rng = np.random.default_rng(0)
    outputs = rng.normal(size=(40, 2))
    W = sp.random_array((1500, 40), density=0.1, random_state=rng, format="csr")
    span = Span(kernel, outputs)
    expected = span.gram(W)
    monkeypatch.setattr(span_module, "BLOCK_BYTES", 2**18)
    tracemalloc.start()
    in_blocks = span.gram(W)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_allclose(in_blocks, expected, rtol=1e-12, atol=1e-12)
    assert peak < 1.3 * expected.nbytes


@pytest.mark.parametrize(("kernel", "outputs", "y"), CASES.values(), ids=CASES)
def test_rows_without_weights_are_zero_vectors(kernel, outputs, y):
    """F = 0 has no inner product with anything."""
    span = Span(kernel.resolve(outputs), outputs)
    W = sp.csr_array((2, 30))
    np.testing.assert_array_equal(span.inner(W, y), 0.0)
    np.testing.assert_array_equal(span.squared_norms(W), 0.0)
    np.testing.assert_array_equal(span.gram(W), 0.0)
    np.testing.assert_allclose(span.losses(W, y[:2]), kernel.diag(y[:2]))


@pytest.mark.parametrize("block_bytes", [2**26, 2000], ids=["sparse", "dense"])
def test_repeated_outputs_in_any_order(block_bytes, monkeypatch):
    """Equal outputs are merged wherever they first occur, by a dense matrix too."""
    monkeypatch.setattr(span_module, "BLOCK_BYTES", block_bytes)
    outputs = np.repeat(Y[:6], 5, axis=0)
    w, v = rng.normal(size=(2, 20, 30))
    span, K, y = Span(RBF(1.0), outputs), RBF(1.0)(outputs), Y[10:]
    assert len(span.terms(as_weights(w)).positions) == 6
    np.testing.assert_allclose(span.inner(w, y), w @ RBF(1.0)(outputs, y), atol=1e-11)
    np.testing.assert_allclose(span.gram(w, v), w @ K @ v.T, atol=1e-11)
    np.testing.assert_allclose(span.squared_norms(w), np.diag(w @ K @ w.T), atol=1e-11)


def test_equal_outputs_have_no_spread():
    """Rounding is not taken for variance, whatever the weights."""
    span = Span(RBF(1.0), np.zeros((50, 1)) + 0.1)
    assert {span.spread(rng.uniform(size=50)) for _ in range(100)} == {0.0}
    assert Span(RBF(1.0), np.array([[0.0], [1e-3]])).spread(np.ones(2)) > 0
