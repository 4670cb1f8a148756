"""Boosting of trees against the algorithms of the paper and against scikit-learn."""

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor

from okforest import OKBagging, OKBoost
from okforest.datasets import make_friedman1
from okforest.embedding import Embedding
from okforest.kernels import RBF, Dirac, Linear, Precomputed
from okforest.metrics import kernel_loss, kernel_r2
from okforest.models.boosting import trees
from okforest.models.boosting.rounds import VectorResiduals
from okforest.models.tree_methods import sample_count
from reference.boosting import learning_stage, prediction_stage, tree_learner

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 4))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 2] > 0, rng.normal(size=40)]
NEW = rng.normal(size=(11, 4))
Y_NEW = np.c_[NEW[:, 0] * NEW[:, 1], NEW[:, 2] > 0, rng.normal(size=11)]
WEIGHT = rng.integers(0, 4, 40) * 0.5
FORMS = {
    "features": {"kernel": "linear"},
    "gram of features": {"kernel": "linear", "embedding": "gram"},
    "gram": {"kernel": RBF(1.0)},
    "factor": {"kernel": RBF(1.0), "embedding": "factor"},
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighted"])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"growth": "gain", "max_splits": 3},
        {"splitter": "random", "max_features": 2, "learning_rate": 1.0},
        {"max_depth": 2, "min_samples_leaf": 3},
        {"subsample": 0.6},
    ],
    ids=["best", "by gain", "random", "small", "subsample"],
)
def test_all_forms_are_the_algorithms_of_the_paper(form, weight, params):
    """Trees, weights of every stage, predicted kernels and losses follow Algorithms 3 and 4.

    Weights are the same with leaf coefficients and, in a compact model, without them.
    """
    model = OKBoost(12, random_state=3, **{"learning_rate": 0.3, "max_splits": 5} | form | params)
    model.fit(X, Y, weight)
    weight = np.ones(40) if weight is None else weight
    drawn = [np.isin(np.arange(40), model.trees_[m].members) for m in range(12)]
    K = model.kernel_(Y)
    learn = tree_learner(
        X, model._rules(X.shape[1], sample_count(weight)), weight, model.seed_, lambda m: drawn[m]
    )

    def scale(m):
        return model.learning_rate

    models = learning_stage(K, X, learn, weight, scale, 12)
    stages = prediction_stage(models, X, NEW, weight, scale)
    for m, W in enumerate(model.staged_weights(NEW)):
        np.testing.assert_allclose(W.toarray(), stages[m], atol=1e-10)
    for same in (model, model.compact(), pickle.loads(pickle.dumps(model))):
        W = same.predict_weights(NEW)
        assert isinstance(W, sp.csr_array)
        np.testing.assert_allclose(W.toarray(), stages[-1], atol=1e-10)
        np.testing.assert_allclose(same.weight_matrix(NEW) @ K, stages[-1] @ K, atol=1e-10)
        np.testing.assert_allclose(same.weight_matrix(NEW) @ K[0], stages[-1] @ K[0], atol=1e-10)
    np.testing.assert_allclose(W.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.predict_kernel(NEW), stages[-1] @ K @ stages[-1].T, atol=1e-10)
    training = prediction_stage(models, X, X, weight, scale)
    for loss, W in zip(model.train_loss_, training, strict=True):
        residuals = np.eye(40) - W
        expected = np.average(np.diag(residuals @ K @ residuals.T), weights=weight)
        assert loss == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_stages_are_the_models_of_fewer_rounds(form):
    """Predictions, scores, losses and weights of stage m equal a model's with m rounds."""
    model = OKBoost(6, random_state=0, **form).fit(X, Y)
    stages = zip(
        model.staged_predict(NEW),
        model.staged_score(NEW, Y_NEW),
        model.staged_losses(NEW, Y_NEW),
        model.staged_weights(NEW),
        strict=True,
    )
    for m, (predicted, score, losses, W) in enumerate(stages):
        fewer = clone(model).set_params(n_estimators=m + 1).fit(X, Y)
        np.testing.assert_allclose(predicted, fewer.predict(NEW))
        assert score == pytest.approx(fewer.score(NEW, Y_NEW))
        assert losses.mean() == pytest.approx(kernel_loss(fewer, NEW, Y_NEW))
        np.testing.assert_allclose(W.toarray(), fewer.predict_weights(NEW).toarray(), atol=1e-12)
    assert m == 5
    np.testing.assert_allclose(
        list(model.staged_predict(NEW, candidates=Y_NEW))[-1], model.predict(NEW, Y_NEW)
    )
    weight = np.arange(1.0, 12.0)
    assert list(model.staged_score(NEW, Y_NEW, weight))[-1] == pytest.approx(
        kernel_r2(model, NEW, Y_NEW, weight)
    )


@pytest.mark.parametrize("seed", range(3))
def test_stumps_are_scikit_learns(seed):
    """With the linear kernel and one split, 100 rounds equal GradientBoostingRegressor."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(200, 6))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 5 * X[:, 2] + rng.normal(size=200)
    new = rng.uniform(size=(100, 6))
    theirs = GradientBoostingRegressor(n_estimators=100, max_depth=1, learning_rate=0.1)
    theirs.fit(X, y)
    ours = OKBoost(100, max_splits=1, learning_rate=0.1).fit(X, y)
    for a, b in zip(ours.staged_predict(new), theirs.staged_predict(new), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    np.testing.assert_allclose(ours.train_loss_, theirs.train_score_)
    np.testing.assert_allclose(ours.predict_weights(new) @ y, ours.predict(new))


@pytest.mark.parametrize("splits", [3, 10])
def test_growth_by_gain_is_scikit_learns(splits):
    """Trees that grow by gain equal scikit-learn's with as many leaves; by variance, not."""
    X, y = make_friedman1(200, seed=0)
    theirs = GradientBoostingRegressor(max_depth=None, max_leaf_nodes=splits + 1, random_state=0)
    expected = theirs.fit(X, y).predict(X)
    model = OKBoost(100, learning_rate=0.1, max_splits=splits)
    by_gain = model.set_params(growth="gain").fit(X, y).predict(X)
    np.testing.assert_allclose(by_gain, expected, atol=1e-6)
    by_variance = model.set_params(growth="variance").fit(X, y).predict(X)
    assert np.abs(by_variance - expected).max() > 0.1


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**32 - 1),
    rate=st.floats(0.01, 1.0),
    splitter=st.sampled_from(["best", "random"]),
    form=st.sampled_from(list(FORMS.values())),
)
def test_the_training_loss_never_increases(seed, rate, splitter, form):
    """It decreases in every round, up to rounding, and losses follow from the weights."""
    model = OKBoost(25, learning_rate=rate, splitter=splitter, random_state=seed, **form)
    model.fit(X, Y)
    assert (np.diff(model.train_loss_) <= 1e-12).all()
    assert model.train_loss_[-1] == pytest.approx(kernel_loss(model, X, Y), abs=1e-10)
    W = model.predict_weights(NEW)
    np.testing.assert_allclose(W.sum(axis=1), 1.0)
    losses = model.span_.losses(W, Y_NEW)
    np.testing.assert_allclose(losses, model.span_.losses(model.weight_matrix(NEW), Y_NEW))


def test_sums_of_the_residuals(monkeypatch):
    """Trees are grown from a Gram matrix with the sums of its rows, except the first."""
    seen = []

    def grow(plan, *args):
        seen.append((plan.row_sums, plan.outputs.sum(axis=1), np.abs(plan.outputs).sum(axis=1)))
        return engine_grow(plan, *args)

    engine_grow = trees.grow
    monkeypatch.setattr(trees, "grow", grow)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=(60, 2))
    for embedding in ("gram", "features"):
        OKBoost(5, kernel=Linear(), embedding=embedding, random_state=0).fit(X, y)
    assert [sums is None for sums, *_ in seen] == [True] + [False] * 4 + [True] * 5
    for sums, expected, size in seen[1:5]:
        assert (np.abs(sums - expected) <= 1e-14 * size).all()


def test_what_is_kept_of_leaves():
    """Means with explicit features; coefficients with a Gram matrix, if they take little memory."""
    features = OKBoost(5).fit(X, Y)
    assert features.leaf_means_.shape == (55, 3)
    assert not hasattr(features, "leaf_coefficients_")
    gram = OKBoost(5, kernel=RBF(1.0)).fit(X, Y)
    assert gram.leaf_coefficients_.shape == (55, 40)
    assert gram.embedding_ == "gram"
    assert features.training_leaves_.dtype == np.uint8


def test_without_leaf_coefficients(monkeypatch):
    """If they would take too much memory, predictions are the same without them."""
    kept = OKBoost(8, kernel=RBF(1.0), random_state=0).fit(X, Y)
    monkeypatch.setattr(trees, "COEFFICIENTS_BYTES", 1000)
    model = OKBoost(8, kernel=RBF(1.0), random_state=0).fit(X, Y)
    assert not hasattr(model, "leaf_coefficients_")
    np.testing.assert_allclose(
        model.predict_weights(NEW).toarray(), kept.predict_weights(NEW).toarray(), atol=1e-12
    )
    np.testing.assert_array_equal(model.predict(NEW), kept.predict(NEW))


def test_labels_and_positions():
    """Labels are predicted by majority; with a Gram matrix positions are predicted."""
    labels = np.where(X[:, 0] > 0, "up", "down")
    model = OKBoost(50, kernel=Dirac(), random_state=0).fit(X, labels)
    assert (model.predict(X) == labels).all()
    K = RBF(1.0)(Y)
    positions = OKBoost(10, kernel=Precomputed(K), random_state=0).fit(X, np.arange(40))
    explicit = OKBoost(10, kernel=RBF(1.0), random_state=0).fit(X, Y)
    np.testing.assert_array_equal(Y[positions.predict(NEW)], explicit.predict(NEW))
    np.testing.assert_allclose(positions.predict_top(NEW, 3)[1], explicit.predict_top(NEW, 3)[1])


def test_rows_of_weight_zero_have_no_effect():
    """The model equals one fitted without them."""
    model = OKBoost(10, kernel=RBF(1.0), random_state=0).fit(X, Y, WEIGHT)
    used = WEIGHT > 0
    fewer = OKBoost(10, kernel=RBF(1.0), random_state=0).fit(X[used], Y[used], WEIGHT[used])
    W = model.predict_weights(NEW).toarray()
    assert (W[:, ~used] == 0).all()
    np.testing.assert_allclose(W[:, used], fewer.predict_weights(NEW).toarray(), atol=1e-12)


def test_leaves_kernel_and_importances():
    """Boosted trees have leaves, a tree kernel and importances, like forests."""
    model = OKBoost(7, kernel="linear", random_state=0).fit(X, Y)
    leaves = model.apply(NEW)
    assert leaves.shape == (11, 7)
    same = (leaves[:, None] == leaves[None]).any(axis=2)
    assert ((model.tree_kernel(NEW) > 0) == same).all()
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    only_first = OKBoost(7, random_state=0).fit(X, X[:, 0])
    assert only_first.feature_importances_[0] > 0.9


@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_array])
def test_sparse_inputs_grow_the_same_trees(container):
    """Sparse inputs give the same model as dense ones."""
    dense = np.where(np.abs(X) > 0.5, X, 0.0)
    a = OKBoost(6, random_state=0).fit(dense, Y)
    b = OKBoost(6, random_state=0).fit(container(dense), Y)
    np.testing.assert_allclose(a.predict(dense), b.predict(container(dense)))
    np.testing.assert_allclose(
        a.predict_weights(dense).toarray(), b.predict_weights(container(dense)).toarray()
    )


def test_missing_values_and_categories():
    """Splits learn a side for missing values, and subsets of categories."""
    import pandas as pd

    rng = np.random.default_rng(1)
    colour = rng.choice(["red", "green", "blue", "grey"], 300)
    x = np.where(rng.uniform(size=300) < 0.2, np.nan, rng.normal(size=300))
    y = np.isin(colour, ["red", "grey"]) * 2.0 + np.isnan(x)
    frame = pd.DataFrame({"colour": pd.Categorical(colour), "x": x})
    model = OKBoost(100, learning_rate=0.2, random_state=0).fit(frame, y)
    assert model.score(frame, y) > 0.999
    assert model.categories_[0].tolist() == ["blue", "green", "grey", "red"]


@pytest.mark.parametrize(
    ("kernel", "n_outputs", "embedding"),
    [("linear", 3, "features"), ("linear", 3, "gram"), ("linear", 60, "auto"), (None, 3, "auto")],
)
def test_trees_do_not_fit_rounding_errors(kernel, n_outputs, embedding):
    """Where a tree fits the outputs, nothing is left for the next: it is a single leaf."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        y = (rng.normal(size=(5, n_outputs)) + 10)[rng.integers(5, size=40)]
        options = {"embedding": embedding, "learning_rate": 1.0, "max_splits": 40, "growth": "gain"}
        model = OKBoost(4, kernel=kernel or Precomputed(y @ y.T), random_state=seed, **options)
        model.fit(rng.normal(size=(40, 4)), y if kernel else np.arange(40))
        sizes = np.diff(model.trees_.node_offsets)
        assert sizes[0] > 1
        assert sizes[1:].tolist() == [1, 1, 1]


@pytest.mark.parametrize("embedding", ["factor", "gram"])
def test_nodes_of_equal_outputs_are_not_split(embedding):
    """The rounding errors of a kernel matrix stay in proportion to its residuals."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        group = rng.integers(4, size=60)
        y = (rng.normal(size=(4, 33)) + 1e5)[group]
        model = OKBoost(1, kernel=Precomputed(y @ y.T), embedding=embedding, max_splits=60)
        trees = model.fit(rng.normal(size=(60, 4)), np.arange(60)).trees_
        for node in np.flatnonzero(trees.left >= 0):
            assert len(set(group[trees.members[trees.begin[node] : trees.end[node]]])) > 1


def test_constant_outputs():
    """The constant is predicted, and the loss is zero."""
    model = OKBoost(3, kernel=Linear()).fit(X, np.full(40, 7.0))
    np.testing.assert_allclose(model.predict(NEW), 7.0)
    np.testing.assert_allclose(model.train_loss_, 0.0, atol=1e-20)


@pytest.mark.slow
@pytest.mark.parametrize("sample", range(3))
def test_friedman(sample):
    """Boosting has a clearly smaller loss than bagging on Friedman1: 3.6 and 5.1 in the paper.

    No model can have a loss below 1, the variance of the noise.
    """
    train, test = make_friedman1(300, seed=sample), make_friedman1(1000, seed=10_000)
    bagging = kernel_loss(OKBagging(100, random_state=0).fit(*train), *test)
    for params in ({"max_splits": 8}, {"max_splits": 20, "splitter": "random", "max_features": 4}):
        model = OKBoost(500, learning_rate=0.01, random_state=0, **params).fit(*train)
        assert 1.0 < kernel_loss(model, *test) < 0.8 * bagging


def test_no_square_matrix_of_many_rows():
    """Fitting, predicting and the weights of some rows take memory proportional to the rows."""
    n = 4000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = X @ rng.normal(size=(3, 4))
    tracemalloc.start()
    try:
        model = OKBoost(20, splitter="random", random_state=0).fit(X, y)
        model.predict(X)
        model.score(X, y)
        model.predict_weights(X[:20])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * n * n / 10


def test_residuals_have_rounding_errors_of_their_own():
    """Outputs with smaller errors do not hide them."""
    values, initial = rng.normal(size=(50, 3)), np.full(50, 0.02)
    none = VectorResiduals(Embedding("features", values.copy()), initial).row_errors
    small = Embedding("factor", values.copy(), errors=1e-40 * np.ones(50))
    np.testing.assert_array_equal(VectorResiduals(small, initial).row_errors, none)
