"""The search with bounds finds what the search of all candidates finds."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import okforest.decode.nearest as search_module
import okforest.weights.output_set as output_set
from okforest import OKExtraTrees
from okforest.decode import TrainingSet
from okforest.decode.nearest import bounds_pay_off, search_all, search_with_bounds
from okforest.kernels import RBF, FromCallable, Laplacian, Precomputed
from okforest.weights import Span, as_weights


def random_weights(rng, n, n_train, negative):
    W = sp.random_array((n, n_train), density=0.3, random_state=rng, format="csr")
    W.data -= 0.5 if negative else 0.0
    return as_weights(W)


def spans(rng, n_train):
    y = rng.normal(size=(n_train, 3)) * rng.choice([0.01, 1.0, 30.0])
    y[n_train // 2 :: 3] = y[0]  # some outputs are equal
    A = rng.normal(size=(n_train, 5))
    yield Span(RBF(1.0), y)
    yield Span(Laplacian(2.0), y)
    yield Span(Precomputed(A @ A.T), np.arange(n_train))  # K has a low rank
    yield Span(RBF(1.0, base=Precomputed(A @ A.T)), np.arange(n_train))
    yield Span(3.0 * RBF(1.0) + Laplacian(1.0), y)


@given(
    seed=st.integers(0, 2**31),
    n_train=st.integers(3, 60),
    k=st.integers(1, 3),
    negative=st.booleans(),
)
def test_bounds_change_nothing(seed, n_train, k, negative):
    """The nearest outputs and their distances are the same, whatever the kernel."""
    rng = np.random.default_rng(seed)
    W = random_weights(rng, 4, n_train, negative)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output_set, "KEPT_BYTES", 0)
        patch.setattr(output_set, "LANDMARKS", 4)
        patch.setattr(search_module, "TOGETHER", 20)  # one or more rows at a time
        for span in spans(rng, n_train):
            n_nearest = min(k, len(span.training))
            nearest, distances = search_with_bounds(W, span, n_nearest)
            expected, expected_distances = search_all(W, span, span.training, None, n_nearest)
            scale = span.training.squares.max() + np.abs(expected_distances).max()
            np.testing.assert_allclose(distances, expected_distances, atol=1e-12 * scale)
            # Equal distances, up to rounding, leave a choice.
            gap = np.diff(expected_distances, axis=1, append=np.inf) > 1e-9 * scale
            first = np.logical_and.accumulate(gap, axis=1)
            np.testing.assert_array_equal(nearest[first], expected[first])


def test_bounds_save_evaluations(monkeypatch):
    """Far candidates are not compared with the support; predictions are the same."""
    monkeypatch.setattr(output_set, "KEPT_BYTES", 0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6))
    Y = X[:, :3] + rng.normal(size=(2000, 3))
    counts = []

    def rbf(a, b):
        counts.append(len(a) * len(b))
        return RBF(1.0)(a, b)

    forest = OKExtraTrees(150, kernel=FromCallable(rbf), embedding="nystrom", random_state=0).fit(
        X, Y
    )
    rows = rng.normal(size=(300, 6))
    support = len(forest.weight_matrix(rows[:1]).support())
    counts.clear()
    one = forest.predict(rows[:1])
    assert sum(counts) == support * len(Y)  # finding the subspace would cost more
    counts.clear()
    predicted = forest.predict(rows)
    assert 0 < sum(counts) < 0.5 * len(Y) ** 2  # also where the subspace is found
    np.testing.assert_array_equal(one, predicted[:1])
    counts.clear()
    np.testing.assert_array_equal(forest.predict(rows[:1]), one)
    assert sum(counts) < 0.2 * support * len(Y)
    monkeypatch.setattr(search_module, "FEWEST", 10**9)
    np.testing.assert_array_equal(forest.predict(rows), predicted)


def test_when_bounds_are_used():
    """For many candidates without a kept Gram matrix, and a support that is worth it."""
    rng = np.random.default_rng(0)
    span = Span(RBF(1.0), rng.normal(size=(3000, 2)))
    row = np.zeros((1, 3000))
    row[0, :100] = 0.01
    W = as_weights(sp.csr_array(row))
    assert not bounds_pay_off(W, span, span.training)  # for one row, the subspace is not worth it
    rows = [bounds_pay_off(W, span, span.training) for _ in range(10)]
    assert not rows[0]
    assert rows[-1]  # for some rows, one after the other, it is
    span = Span(span.kernel, span.outputs)
    assert bounds_pay_off(as_weights(sp.csr_array(np.repeat(row, 90, axis=0))), span, span.training)
    assert len(span.training.projection) == 3000
    assert bounds_pay_off(W, span, span.training)
    assert not bounds_pay_off(
        as_weights(sp.csr_array(row * (np.arange(3000) < 9))), span, span.training
    )
    assert not bounds_pay_off(as_weights(np.ones((1, 3000))), span, span.training)
    small = Span(RBF(1.0), rng.normal(size=(900, 2)))
    assert not bounds_pay_off(W, small, small.training)
    nearest = TrainingSet().decode(W, span)
    expected, _ = search_all(W, span, span.training, None, 1)
    np.testing.assert_array_equal(nearest, span.training.outputs[expected[:, 0]])
