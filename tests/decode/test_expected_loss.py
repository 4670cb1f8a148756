"""Decoding for a loss of the user's own: exact over candidates, and the fixed point of RBF."""

from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from okforest import OKExtraTrees, OKRidge, OKTree
from okforest.decode import CandidateLists, ExpectedLoss, FixedPoint, TrainingSet
from okforest.kernels import RBF, FromCallable, Linear
from okforest.metrics import make_output_scorer
from okforest.weights import DenseWeights, Span

LABELS = "abcd"
SETS = [
    frozenset(labels)
    for labels in chain.from_iterable(combinations(LABELS, size) for size in range(len(LABELS) + 1))
]
OVERLAP = FromCallable(lambda a, b: float(len(a & b)), elementwise=True)


def as_objects(values):
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


def f1_loss(true, predicted):
    return 1.0 - 2.0 * len(true & predicted) / max(1, len(true) + len(predicted))


def hamming(true, predicted):
    return len(true ^ predicted)


def matrices_of(loss):
    """Return the same loss as a function of two arrays."""
    return lambda true, predicted: np.array([[loss(y, c) for c in predicted] for y in true])


@given(seed=st.integers(0, 2**31), n=st.integers(1, 8), loss=st.sampled_from([f1_loss, hamming]))
def test_the_minimum_over_all_sets_is_found(seed, n, loss):
    """Of all subsets of the labels, none has a smaller expected loss, also for signed weights."""
    rng = np.random.default_rng(seed)
    outputs = as_objects([SETS[i] for i in rng.integers(0, len(SETS), n)])
    W = rng.normal(0.3, 1.0, size=(4, n))
    span = Span(OVERLAP, outputs)
    expected = np.array(
        [
            [sum(w * loss(y, c) for w, y in zip(row, outputs, strict=True)) for c in SETS]
            for row in W
        ]
    )
    decoder = ExpectedLoss(loss, candidates=SETS)
    decoded = decoder.decode(DenseWeights(W), span)
    reached = expected[np.arange(4), [SETS.index(output) for output in decoded]]
    np.testing.assert_allclose(reached, expected.min(axis=1), atol=1e-12)
    best, losses = decoder.top(DenseWeights(W), span, 3)
    np.testing.assert_allclose(losses, np.sort(expected, axis=1)[:, :3], atol=1e-12)
    faster = ExpectedLoss(matrices_of(loss), candidates=SETS, elementwise=False)
    assert (faster.decode(DenseWeights(W), span) == best[:, 0]).all()


def test_squared_and_absolute_errors_have_known_minima():
    """Among fine candidates: the weighted mean, and the weighted median."""
    rng = np.random.default_rng(0)
    y, grid = rng.normal(size=15), np.linspace(-3, 3, 601)
    W = rng.dirichlet(np.ones(15), size=5)
    span = Span(Linear(), y)
    squares = ExpectedLoss(lambda a, b: np.subtract.outer(a, b) ** 2, grid, elementwise=False)
    np.testing.assert_allclose(squares.decode(DenseWeights(W), span), W @ y, atol=0.006)
    absolute = ExpectedLoss(lambda a, b: abs(a - b))
    order = np.argsort(y)
    medians = y[order][(W[:, order].cumsum(axis=1) >= 0.5).argmax(axis=1)]
    assert (absolute.decode(DenseWeights(W), span) == medians).all()


def test_models_use_it():
    """In fit, predict, predict_top, with other candidates, and with candidates of each row."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = [SETS[5] if row[0] > 0 else SETS[9] for row in X]
    model = OKExtraTrees(5, kernel=OVERLAP, decoder=ExpectedLoss(f1_loss), random_state=0)
    model = clone(model).fit(X, y)
    assert model.predict(X).tolist() == y
    outputs, losses = model.predict_top(X[:3], k=2)
    assert (losses[:, 0] <= losses[:, 1]).all()
    assert outputs[:, 0].tolist() == y[:3]
    other = model.predict(X[:3], candidates=[SETS[0], SETS[15]])
    assert set(other) <= {SETS[0], SETS[15]}
    lists = CandidateLists([[SETS[0]], [SETS[15], SETS[0]], SETS])
    found = model.predict(X[:3], candidates=lists)
    assert found.tolist() == [SETS[0], SETS[15], y[2]]
    search = GridSearchCV(
        OKTree(kernel=OVERLAP),
        {"decoder": [ExpectedLoss(f1_loss, [SETS[0]]), ExpectedLoss(f1_loss)]},
        scoring=make_output_scorer(f1_loss),
        cv=2,
    )
    assert search.fit(X, y).best_params_["decoder"].candidates is None


@pytest.mark.parametrize(
    ("decoder", "message"),
    [
        (ExpectedLoss("f1"), "loss='f1' is not a function"),
        (ExpectedLoss(lambda a, b: "bad"), "returned 'bad' for two outputs"),
        (ExpectedLoss(lambda a, b: np.nan), "returned nan for 1.0 and 1.0|returned nan for"),
        (ExpectedLoss(lambda a, b: abs(a - b), elementwise=False), r"of shape \(1,\)"),
        (ExpectedLoss(lambda a, b: 0.0, candidates=[]), "candidates is empty"),
        (ExpectedLoss(lambda a, b: 0.0, candidates=["a"]), "candidates are not valid outputs"),
    ],
)
def test_errors_in_fit(decoder, message):
    """Losses and candidates that cannot work are refused by fit."""
    with pytest.raises(ValueError, match=message):
        OKTree(decoder=decoder).fit([[0.0], [1.0]], [1.0, 2.0])


@pytest.mark.parametrize("candidates", [[], None], ids=repr)
def test_empty_candidates_in_predict(candidates):
    """An empty list is refused; None is the default."""
    tree = OKTree(decoder=ExpectedLoss(lambda a, b: abs(a - b))).fit([[0.0], [1.0]], [1.0, 2.0])
    if candidates is None:
        assert tree.predict([[0.0]], candidates=None) == [1.0]
    else:
        with pytest.raises(ValueError, match="pass at least one output"):
            tree.predict([[0.0]], candidates=candidates)


@given(seed=st.integers(0, 2**31), negative=st.booleans())
def test_the_fixed_point_is_nearer_than_training_outputs(seed, negative):
    """Its distance in feature space is at most the nearest training output's."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(12, 2))
    W = rng.dirichlet(np.ones(12), size=5) - (0.05 if negative else 0.0)
    span = Span(RBF(1.5), y)
    found = FixedPoint(max_iter=5000).decode(DenseWeights(W), span)
    nearest = TrainingSet().decode(DenseWeights(W), span)
    losses, limits = span.losses(W, found), span.losses(W, nearest)
    assert (losses <= limits + 1e-12).all()
    if not negative:  # where the iteration has ended, the gradient vanishes
        K = W * RBF(1.5)(found, y)
        gradient = (K[:, :, None] * (y - found[:, None])).sum(axis=1)
        assert np.abs(gradient).max() < 1e-4


def test_the_fixed_point_of_one_bump_is_the_global_optimum():
    """With a wide kernel, no point of a fine grid is nearer."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=20)
    W = rng.dirichlet(np.ones(20), size=3)
    span, grid = Span(RBF(4.0), y), np.linspace(-3, 3, 4001)
    best = grid[(W @ RBF(4.0)(y, grid)).argmax(axis=1)]
    np.testing.assert_allclose(FixedPoint().decode(DenseWeights(W), span), best, atol=2e-3)


def test_the_fixed_point_needs_rbf_on_vectors():
    """Other kernels and bad parameters are refused by fit; ridge regression works."""
    X, y = np.arange(6.0).reshape(-1, 1), np.arange(6.0)
    for kernel in ("linear", RBF(base=FromCallable(lambda a, b: np.outer(a, b)))):
        with pytest.raises(ValueError, match=r"FixedPoint needs the kernel RBF\(\) on vectors"):
            OKTree(kernel=kernel, decoder=FixedPoint()).fit(X, y)
    for parameters in ({"max_iter": 0}, {"max_iter": 1.5}, {"tol": -1.0}):
        with pytest.raises(ValueError, match="parameter of FixedPoint must be"):
            OKTree(kernel="rbf", decoder=FixedPoint(**parameters)).fit(X, y)
    ridge = OKRidge(kernel=RBF(2.0), input_kernel="rbf", decoder=FixedPoint()).fit(X, y)
    assert np.abs(ridge.predict(X) - y).max() < 1.0


def test_the_true_output_comes_first():
    """A loss may be asymmetric: with predictions that are too low five times as bad."""

    def loss(true, predicted):
        return 5.0 * (true - predicted) if predicted < true else predicted - true

    def matrix(true, predicted):
        return np.array([[loss(y, c) for c in predicted] for y in true])

    y = np.arange(11.0)
    span, W = Span(Linear(), y), DenseWeights(np.full((1, 11), 1 / 11))
    for decoder in (ExpectedLoss(loss), ExpectedLoss(matrix, elementwise=False)):
        assert decoder.decode(W, span).tolist() == [9.0]  # the quantile of level 5/6


def test_other_candidates_for_a_loss_of_arrays():
    """Candidates passed to predict are compared by the same function of two arrays."""

    def matrix(true, predicted):
        return np.abs(true[:, None] - predicted[None, :])

    tree = OKTree(decoder=ExpectedLoss(matrix, elementwise=False))
    tree.fit(np.zeros((5, 1)), [1.0, 2.0, 3.0, 4.0, 90.0])
    assert tree.predict([[0.0]], candidates=[0.0, 2.8, 50.0]).tolist() == [2.8]
