"""Outputs on a GPU are embedded there, and the trees are the same as on the CPU.

They run on the host, with stand-ins for CuPy arrays, and on a GPU if there is one.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from okforest import OKExtraTrees
from okforest.embedding import embed, embedding_bytes, principal_directions
from okforest.engine import cpu
from okforest.kernels import RBF, Laplacian, Linear
from okforest.models import tree_model

KERNELS = {"linear": Linear(), "rbf": RBF(3.0), "laplacian": Laplacian(9.0)}
CASES = [
    *((name, kind) for name in KERNELS for kind in ("auto", "gram", "factor", "nystrom")),
    *(("linear", "features"), ("rbf", "fourier"), ("laplacian", "fourier")),
]


def outputs(n=90, q=4, n_distinct=None):
    rng = np.random.default_rng(0)
    y = rng.normal(size=(n, q)) + 5.0
    return y if n_distinct is None else y[rng.integers(0, n_distinct, n)]


def gram(embedding):
    values = embedding.values.get() if hasattr(embedding.values, "get") else embedding.values
    return values if embedding.kind == "gram" else values @ values.T


@pytest.mark.parametrize(("name", "kind"), CASES)
@pytest.mark.parametrize("n_distinct", [None, 10])
def test_embeddings_are_those_of_the_cpu(device, name, kind, n_distinct):
    """Inner products and errors agree up to rounding, and arrays stay on the device."""
    y, kernel = outputs(n_distinct=n_distinct), KERNELS[name]
    rank = 12 if kind in ("nystrom", "fourier") else None
    expected = embed(kernel, y, kind, rank, seed=3)
    on_device = device.xp.asarray(y)
    found = embed(kernel, on_device, kind, rank, seed=3)
    assert isinstance(found.values, type(on_device))
    assert found.kind == expected.kind
    assert_allclose(gram(found), gram(expected), rtol=1e-8, atol=1e-8)
    assert_allclose(found.residual, expected.residual, rtol=1e-8, atol=1e-9)
    assert embedding_bytes(kernel, y, kind, rank) >= found.values.nbytes + y.nbytes
    weight = np.random.default_rng(1).random(len(y))
    for search_rank in (None, 3, 0.95):
        one, share = principal_directions(expected, search_rank, weight, 0)
        other, found_share = principal_directions(found, search_rank, weight, 0)
        assert isinstance(other.values, type(on_device))
        assert_allclose(found_share, share, rtol=1e-8)
        if search_rank is None:
            assert_allclose(gram(other), gram(one), rtol=1e-8, atol=1e-8)


def test_equal_outputs(device):
    """Outputs that are all equal have an embedding of zeros, and too large ones have none."""
    found = embed(Linear(), device.xp.asarray(np.full((30, 3), 7.0)), "nystrom", 5, seed=0)
    assert not found.values.get().any()
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="at the limit of float64"):
        embed(Linear(), device.xp.asarray(1e200 * outputs()))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("linear", {}),
        ("rbf", {}),
        ("rbf", {"embedding": "factor"}),
        ("rbf", {"embedding": "nystrom", "embedding_rank": 15}),
        ("laplacian", {"embedding": "fourier", "embedding_rank": 14}),
        ("rbf", {"embedding": "cholesky", "embedding_rank": 15}),
        ("linear", {"search_rank": 3}),
    ],
)
def test_trees_are_those_of_the_cpu(device, monkeypatch, name, parameters):
    """A model embeds on the device of its trees, from arrays of NumPy or CuPy."""
    y, X = outputs(), np.random.default_rng(5).normal(size=(90, 4))
    y += X
    expected = OKExtraTrees(3, kernel=KERNELS[name], random_state=0, **parameters).fit(X, y)
    places = []
    embed_there = tree_model.embed_for_search

    def watched(kernel, y, *rest, **options):
        places.append(type(y))
        return embed_there(kernel, y, *rest, **options)

    monkeypatch.setattr(tree_model, "embed_for_search", watched)
    model = OKExtraTrees(3, kernel=KERNELS[name], device="cuda", random_state=0, **parameters)
    for array in (y, device.xp.asarray(y)):
        model.fit(X, array)
        on_host = parameters.get("embedding") == "cholesky"
        assert places.pop() is (np.ndarray if on_host else type(device.xp.asarray(y)))
        assert_array_equal(model.trees_.feature, expected.trees_.feature)
        assert_array_equal(model.trees_.threshold, expected.trees_.threshold)
        assert_array_equal(model.trees_.members, expected.trees_.members)
        assert model.embedding_ == expected.embedding_
        assert_allclose(
            model.embedding_residual_, expected.embedding_residual_, rtol=1e-8, atol=1e-9
        )
    monkeypatch.setattr(tree_model, "EMBEDDING_SHARE", 0.0)  # as if there were no memory
    model.fit(X, y)
    assert places.pop() is np.ndarray
    assert_array_equal(model.trees_.threshold, expected.trees_.threshold)


def test_another_function_grows(device):
    """A function that grows trees elsewhere, as on a cluster, receives arrays of NumPy."""
    y, X = outputs(), np.random.default_rng(5).normal(size=(90, 4))
    seen = []

    def grow(plan, trees, **options):
        seen.append(plan)
        return cpu.grow(plan, trees, **options)

    OKExtraTrees(2, device="cuda").fit_by(grow, device.xp.asarray(X), device.xp.asarray(y))
    assert isinstance(seen[0].X, np.ndarray)
    assert isinstance(seen[0].outputs, np.ndarray)
