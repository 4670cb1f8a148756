"""The search in float32 of a kept Gram matrix finds what a search in float64 finds."""

from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import okforest.decode.search as search_module
from okforest import OKExtraTrees, OKTree
from okforest.decode.nearest import is_kept, search_all, search_kept
from okforest.engine.cpu import SIMD_LEVELS, choose_simd_level, find_nearest
from okforest.kernels import RBF, Precomputed
from okforest.weights import DenseWeights, Span, as_weights
from okforest.weights.output_set import FloatPanels, KeptGram

LEVELS = [level for level in SIMD_LEVELS if choose_simd_level(level)]
choose_simd_level()


@contextmanager
def using(level):
    """Use an instruction set."""
    choose_simd_level(level)
    try:
        yield
    finally:
        choose_simd_level()


@pytest.fixture(params=LEVELS)
def level(request):
    with using(request.param):
        yield request.param


def nearest_by_numpy(W, gram, squares, places):
    costs = squares - 2.0 * (W @ gram[places])
    nearest = costs.argmin(axis=1)
    return nearest, costs[np.arange(len(costs)), nearest]


def found(W, gram, squares, places, n_threads=1):
    """Return what the core finds."""
    floats = FloatPanels(squares)
    with np.errstate(invalid="ignore"):
        floats.copy(gram, places)
    panels, halves = floats.panels, floats.half_squares
    return find_nearest(W, places, gram, squares, panels, halves, floats.largest, n_threads)


def whole_weights(rng, n, n_columns):
    """Return weights whose products with small integers are exact: many distances are equal."""
    W = sp.random_array((n, n_columns), density=0.4, random_state=rng, format="csr")
    W.data[:] = rng.integers(-2, 5, len(W.data)) / 4
    return W


@given(
    level=st.sampled_from(LEVELS),
    seed=st.integers(0, 2**31),
    n=st.integers(1, 300),
    offset=st.sampled_from([0, 2**12, 2**30]),
    exponent=st.sampled_from([-1000, -300, -140, 0, 100, 300, 900]),
    n_threads=st.sampled_from([1, 3]),
)
def test_exact_ties(level, seed, n, offset, exponent, n_threads):
    """The first of equals is found, at any scale, also next to a large mean."""
    rng = np.random.default_rng(seed)
    A = rng.integers(-2, 3, size=(n, rng.integers(1, 4))).astype(float)
    gram = np.ldexp(A @ A.T + offset, exponent)
    n_columns = int(rng.integers(1, n + 1))
    places = rng.choice(n, n_columns, replace=False)
    W = whole_weights(rng, int(rng.choice([1, 5, 140])), n_columns)
    with using(level):
        nearest, costs = found(W, gram, np.diagonal(gram), places, n_threads)
    expected, expected_costs = nearest_by_numpy(W, gram, np.diagonal(gram), places)
    np.testing.assert_array_equal(nearest, expected)
    np.testing.assert_array_equal(costs, expected_costs)


@given(
    level=st.sampled_from(LEVELS),
    seed=st.integers(0, 2**31),
    n=st.integers(2, 200),
    spread=st.sampled_from([1e-9, 1e-7, 1e-4, 1.0]),
    size=st.sampled_from([1e-30, 1e-3, 1.0, 1e5, 1e200]),
)
def test_near_ties(level, seed, n, spread, size):
    """Distances that float32 cannot tell apart are compared in float64."""
    rng = np.random.default_rng(seed)
    A = 1.0 + spread * rng.normal(size=(n, 3))
    gram, W = A @ A.T, sp.random_array((9, n), density=0.5, random_state=rng, format="csr")
    W.data *= size * rng.choice([-1.0, 1.0, 1.0], len(W.data))
    squares = np.diagonal(gram) * (1.0 + spread * rng.uniform(size=n))
    with using(level):
        nearest, costs = found(W, gram, squares, np.arange(n))
    all_costs = squares - 2.0 * (W @ gram)
    rounding = 1e-13 * (3.0 + 3.0 * abs(W).sum(axis=1))
    assert (costs <= all_costs.min(axis=1) + rounding).all()
    np.testing.assert_allclose(costs, all_costs[np.arange(9), nearest], rtol=0, atol=rounding.max())


@pytest.mark.parametrize("spread", [6e-3, 1e-2])
def test_near_ties_of_few_among_many(level, spread):
    """Of 400 candidates, a few are as near in float32: the nearest may be any of them."""
    rng = np.random.default_rng(2)
    A = 1.0 + spread * rng.normal(size=(400, 3))
    gram = A @ A.T
    W = rng.uniform(size=(3000, 400)) * (rng.uniform(size=(3000, 400)) < 0.02)
    W[:, 0] += 1e-9
    W /= W.sum(axis=1, keepdims=True)
    squares = np.diagonal(gram).copy()
    nearest, costs = found(sp.csr_array(W), gram, squares, np.arange(400))
    all_costs = squares - 2.0 * (W @ gram)
    assert len(set(nearest // 64)) > 3
    assert (costs <= all_costs.min(axis=1) + 2e-14).all()


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_numbers_that_float32_does_not_have(level, bad):
    """Weights and entries that are huge or not finite leave the choice to float64."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(100, 3))
    gram = A @ A.T
    W = sp.random_array((5, 100), density=0.3, random_state=rng, format="csr")
    everywhere = np.arange(100)
    huge = sp.csr_array(W * 1e300)
    for case in (huge, sp.csr_array(W * 1e-300), sp.csr_array((5, 100))):
        expected = nearest_by_numpy(case, gram, np.diagonal(gram), everywhere)
        np.testing.assert_array_equal(
            found(case, gram, np.diagonal(gram), everywhere)[0], expected[0]
        )
    wrong = gram.copy()
    wrong[:, 40] = bad
    with np.errstate(invalid="ignore"):
        expected = nearest_by_numpy(W, wrong, np.diagonal(gram), everywhere)
    np.testing.assert_array_equal(
        found(W, wrong, np.diagonal(gram).copy(), everywhere)[0], expected[0]
    )
    weights = W.copy()
    weights.data[0] = bad
    with np.errstate(invalid="ignore"):
        expected = nearest_by_numpy(weights, gram, np.diagonal(gram), everywhere)
    np.testing.assert_array_equal(
        found(weights, gram, np.diagonal(gram), everywhere)[0], expected[0]
    )
    squares = np.diagonal(gram).copy()
    squares[7] = bad
    nearest, _ = find_nearest(
        W,
        everywhere,
        gram,
        squares,
        np.zeros((2, 100, 64), np.float32),
        np.append(squares / 2, np.full(28, np.inf)).astype(np.float32),
        1.0,
    )
    np.testing.assert_array_equal(nearest, nearest_by_numpy(W, gram, squares, everywhere)[0])


def test_predictions_are_those_of_float64(level, monkeypatch):
    """A forest predicts the same outputs with and without the search in float32."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 6))
    Y = np.round(X[:, :3] + rng.normal(size=(300, 3)), 1)
    Y[100:130] = Y[0]
    forest = OKExtraTrees(40, kernel="rbf", random_state=0).fit(X, Y)
    test = rng.normal(size=(200, 6))
    W, span = forest.weight_matrix(test), forest.span_
    assert is_kept(W, span, span.training)
    predicted = forest.predict(test)
    monkeypatch.setattr(search_module, "is_kept", lambda *_: False)
    np.testing.assert_array_equal(predicted, forest.predict(test))
    nearest, costs = search_kept(W, span)
    expected, expected_costs = search_all(W, span, span.training, None, 1)
    np.testing.assert_array_equal(nearest, expected)
    np.testing.assert_allclose(costs, expected_costs, atol=1e-14)


def test_rows_are_computed_once_and_only_if_needed():
    """Few predictions compute few rows; a kernel that fails leaves no row behind."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(200, 4))
    calls, fail = [], False

    class Counting(RBF):
        def __call__(self, y, z=None):
            if fail:
                raise RuntimeError("no kernel today")
            calls.append(len(y))
            return super().__call__(y, z)

    gram, squares = KeptGram(Counting(1.0), A), np.ones(200)
    W, places = sp.csr_array(np.full((1, 3), 1 / 3)), np.array([4, 90, 170])
    fail = True
    with pytest.raises(RuntimeError, match="no kernel today"):
        gram.nearest(W, places, squares)
    fail = False
    first = gram.nearest(W, places, squares)
    assert calls == [3]
    assert gram.nearest(W, places, squares)[0] == first[0]
    assert calls == [3]
    gram.nearest(W, np.array([4, 5, 170]), squares)
    assert calls == [3, 1]
    K = RBF(1.0)(A)
    np.testing.assert_allclose(gram.rows(np.array([170, 4])), K[[170, 4]], rtol=1e-12)


@pytest.mark.parametrize("exponent", [-900, -100, 0, 100, 900])
def test_copy_in_float32(exponent):
    """At any scale, the copy holds numbers near one, and its largest absolute entry is known."""
    rng = np.random.default_rng(0)
    gram = rng.uniform(-1.0, 0.5, size=(70, 70))
    floats = FloatPanels(np.full(70, np.ldexp(0.75, exponent)))
    floats.copy(np.ldexp(gram, exponent), np.array([3, 69]))
    np.testing.assert_array_equal(floats.panels[0, [3, 69]], gram[[3, 69], :64].astype(np.float32))
    np.testing.assert_array_equal(floats.panels[1, 69, :6], gram[69, 64:].astype(np.float32))
    assert not floats.panels[:, 4].any()
    assert not floats.panels[1, :, 6:].any()
    assert floats.largest == np.abs(gram[[3, 69]].astype(np.float32)).max()
    assert (floats.half_squares[:70] == 0.375).all()
    assert np.isinf(floats.half_squares[70:]).all()


def test_when_the_kept_matrix_is_searched():
    """For sparse weights over training outputs whose Gram matrix is kept."""
    rng = np.random.default_rng(0)
    span = Span(RBF(1.0), rng.normal(size=(50, 2)))
    W = as_weights(sp.csr_array(np.eye(50)))
    assert is_kept(W, span, span.training)
    assert not is_kept(DenseWeights(np.eye(50)), span, span.training)
    assert not is_kept(W, span, span.training.take(np.arange(50)))
    large = Span(RBF(1.0), rng.normal(size=(3000, 2)))
    assert not is_kept(as_weights(sp.csr_array(np.eye(3000))), large, large.training)
    stump = OKTree(kernel="rbf", max_depth=1).fit(np.arange(30)[:, None], np.arange(30.0))
    leaves = stump.weight_matrix([[1.0]])
    assert not is_kept(leaves, stump.span_, stump.span_.training)  # few and large


@pytest.mark.parametrize(
    "changed",
    [
        {"places": np.array([0, 3])},
        {"places": np.array([0, -1])},
        {"places": np.array([0])},
        {"gram": np.zeros((3, 4))},
        {"squares": np.zeros(2)},
        {"panels": np.zeros((1, 2, 64), np.float32)},
        {"panels": np.zeros((1, 3, 32), np.float32)},
        {"half_squares": np.zeros(63, np.float32)},
    ],
    ids=str,
)
def test_wrong_arrays_are_refused(changed):
    """Arrays that do not fit each other are refused, not read out of bounds."""
    arrays = {
        "weights": sp.csr_array(np.array([[0.5, 0.5]])),
        "places": np.array([0, 1]),
        "gram": np.eye(3),
        "squares": np.ones(3),
        "panels": np.zeros((1, 3, 64), np.float32),
        "half_squares": np.zeros(64, np.float32),
        "largest": 1.0,
    }
    find_nearest(**arrays)
    with pytest.raises(ValueError, match="are inconsistent"):
        find_nearest(**arrays | changed)


def test_precomputed_kernel_with_equal_columns():
    """Different positions with equal inner products: the first is predicted."""
    A = np.repeat(np.random.default_rng(0).normal(size=(20, 2)), 3, axis=0)
    model = OKExtraTrees(10, kernel=Precomputed(A @ A.T), random_state=0)
    model.fit(A, np.arange(60))
    assert set(model.predict(A) % 3) == {0}
