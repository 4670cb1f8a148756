"""The public contract, for every model: predictions, weights, kernels, leaves, importances."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from okforest import (
    OKBagging,
    OKExtraTrees,
    OKRandomForest,
    OKTotallyRandomTrees,
    OKTree,
)
from okforest._utils import progress
from okforest.decode import Support
from okforest.kernels import RBF, FromCallable, Linear, Precomputed
from reference.trees import forest_weights

FORESTS = [OKExtraTrees, OKRandomForest, OKBagging, OKTotallyRandomTrees]
MODELS = [OKTree, *FORESTS]
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 5))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 2] > 0] + 0.1 * rng.normal(size=(60, 2))
NEW = rng.normal(size=(15, 5))


def make(model, **params):
    return model(**({} if model is OKTree else {"n_estimators": 8}) | {"random_state": 0} | params)


@pytest.fixture(params=MODELS, ids=lambda model: model.__name__)
def model(request):
    return make(request.param, kernel=RBF(1.0), min_samples_leaf=2).fit(X, Y)


def test_weights(model):
    """Weights are a CSR matrix of distributions over training rows, equal to the oracle's."""
    W = model.predict_weights(NEW)
    assert isinstance(W, sp.csr_array)
    assert W.shape == (15, 60)
    np.testing.assert_allclose(W.sum(axis=1), 1.0)
    np.testing.assert_allclose(W.toarray(), forest_weights(model.trees_, NEW, 60))


def test_predictions_are_training_outputs_nearest_in_h(model):
    """Without a closed form, the prediction is the nearest training output."""
    K = RBF(1.0)(Y)
    scores = 1 - 2 * model.predict_weights(NEW).toarray() @ K
    np.testing.assert_array_equal(model.predict(NEW), Y[scores.argmin(axis=1)])
    outputs, losses = model.predict_top(NEW, k=3)
    np.testing.assert_array_equal(outputs[:, 0], model.predict(NEW))
    assert losses.shape == (15, 3)


def test_candidates(model):
    """Predictions are chosen among the candidates given by the user."""
    candidates = rng.normal(size=(4, 2))
    predicted = model.predict(NEW, candidates=candidates)
    assert all((row == candidates).all(axis=1).any() for row in predicted)
    outputs, _ = model.predict_top(NEW, k=2, candidates=candidates)
    np.testing.assert_array_equal(outputs[:, 0], predicted)


def test_support_decoder(model):
    """The decoder of the papers only considers outputs with non-zero weight."""
    W = model.predict_weights(NEW).toarray()
    scores = np.where(W > 0, 1 - 2 * W @ RBF(1.0)(Y), np.inf)
    for decoder in ("support", Support()):
        predicted = model.set_params(decoder=decoder).predict(NEW)
        np.testing.assert_array_equal(predicted, Y[scores.argmin(axis=1)])


def test_predicted_kernels(model):
    """The convolved kernel is WKWᵀ; the average kernel is its mean over trees. Both are PSD."""
    K = RBF(1.0)(Y)
    w = model.predict_weights(NEW).toarray()
    np.testing.assert_allclose(model.predict_kernel(NEW), w @ K @ w.T)
    np.testing.assert_allclose(model.predict_kernel(NEW, NEW[:4]), w @ K @ w[:4].T)
    by_tree = [forest_weights(model.trees_[t], NEW, 60) for t in range(len(model.trees_))]
    average = np.mean([w @ K @ w.T for w in by_tree], axis=0)
    np.testing.assert_allclose(model.predict_kernel(NEW, scheme="average"), average)
    np.testing.assert_allclose(
        model.predict_kernel(NEW, NEW[3:6], scheme="average"), average[:, 3:6]
    )
    for scheme in ("convolve", "average"):
        assert np.linalg.eigvalsh(model.predict_kernel(NEW, scheme=scheme)).min() > -1e-10
    with pytest.raises(ValueError, match="use 'convolve' or 'average'"):
        model.predict_kernel(NEW, scheme="sum")


def test_leaves_and_tree_kernel(model):
    """tree_kernel sums 1/weight(leaf) over the trees in which two rows share a leaf."""
    leaves = model.apply(NEW).reshape(15, -1)
    assert model.apply(NEW).shape == ((15,) if isinstance(model, OKTree) else (15, 8))
    expected = np.zeros((15, 15))
    for t in range(leaves.shape[1]):
        same = leaves[:, t, None] == leaves[None, :, t]
        expected += same / model.trees_[t].weight[leaves[:, t]][:, None] / leaves.shape[1]
    np.testing.assert_allclose(model.tree_kernel(NEW), expected)
    np.testing.assert_allclose(model.tree_kernel(NEW, NEW[:3]), expected[:, :3])
    if not getattr(model, "bootstrap", False):
        np.testing.assert_allclose(model.tree_kernel(NEW, X), model.predict_weights(NEW).toarray())


def test_importances(model):
    """Importances sum to one; relevant inputs have the largest."""
    importances = model.feature_importances_
    assert importances.sum() == pytest.approx(1.0)
    assert (importances >= 0).all()
    if not isinstance(model, OKTotallyRandomTrees):
        assert importances[:3].sum() > 0.6


def test_fitted_state_is_plain(model):
    """Pickled models predict the same; the state is arrays and parameters."""
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(NEW), model.predict(NEW))
    assert all(isinstance(array, np.ndarray) for array in vars(model.trees_).values())


@pytest.mark.parametrize("model", MODELS)
def test_score_of_training_data(model):
    """Fully grown trees without a bootstrap fit their training outputs."""
    model = make(model).fit(X, Y)
    assert model.score(X, Y) > (0.5 if getattr(model, "bootstrap", False) else 0.999)


@pytest.mark.parametrize("model", FORESTS)
@pytest.mark.parametrize("n_jobs", [2, 3, -1])
def test_threads(model, n_jobs):
    """The forest does not depend on n_jobs."""
    a = make(model).fit(X, Y)
    b = make(model, n_jobs=n_jobs).fit(X, Y)
    assert np.array_equal(a.trees_.feature, b.trees_.feature)
    np.testing.assert_array_equal(a.predict(NEW), b.predict(NEW))


@pytest.mark.parametrize("shape", [(60,), (60, 1), (60, 2)])
def test_shapes_of_outputs(shape):
    """Predictions have the shape of y, apart from the number of rows."""
    y = Y[:, : shape[-1]] if len(shape) == 2 else Y[:, 0]
    for kernel in ("linear", "rbf"):
        assert OKTree(kernel=kernel).fit(X, y).predict(NEW).shape == (15, *shape[1:])


def test_objects_as_outputs():
    """Outputs may be a list of strings, with a function of two strings as kernel."""
    words = ["".join(rng.choice(list("abcd"), size=4)) for _ in range(60)]
    common = FromCallable(lambda a, b: len(set(a) & set(b)), elementwise=True)
    model = OKExtraTrees(5, kernel=common, random_state=0).fit(X, words)
    predicted = model.predict(NEW)
    assert set(predicted) <= set(words)
    assert -1 < model.score(X, words) <= 1


def test_a_function_as_the_kernel():
    """kernel= takes a function of two arrays of outputs."""
    a = OKTree(kernel=lambda a, b: a @ b.T, decoder="mean", random_state=0).fit(X, Y)
    b = OKTree(kernel=Linear(), random_state=0).fit(X, Y)
    np.testing.assert_allclose(a.predict(NEW), b.predict(NEW))


def test_totally_random_trees_need_no_outputs():
    """The trees are the same with and without y; without it there is nothing to predict."""
    without = make(OKTotallyRandomTrees).fit(X)
    other = make(OKTotallyRandomTrees, kernel="dirac").fit(X, np.zeros(60))
    assert np.array_equal(without.trees_.threshold, other.trees_.threshold)
    assert without.predict_weights(NEW).shape == (15, 60)
    assert (without.feature_importances_ == 0).all()
    for call in (without.predict, without.predict_kernel, lambda x: without.score(x, x)):
        with pytest.raises(ValueError, match="was fitted without y"):
            call(NEW)
    refitted = other.fit(X)
    assert not hasattr(refitted, "outputs_")


def test_embedding_is_reported():
    """The form used and its rank are attributes."""
    model = OKTree().fit(X, Y)
    assert (model.embedding_, model.embedding_rank_) == ("features", 2)
    model = OKTree(kernel="rbf").fit(X, Y)
    assert (model.embedding_, model.embedding_rank_) == ("gram", 60)


@pytest.mark.parametrize(
    ("max_features", "expected"),
    [(None, 5), ("sqrt", 2), ("log2", 2), (0.5, 2), (0.01, 1), (3, 3), (99, 5)],
)
def test_max_features(max_features, expected):
    """max_features has the same meaning as in scikit-learn."""
    model = OKTree(max_features=max_features).fit(X, Y)
    assert model._rules(5, 60.0).max_features == expected


@pytest.mark.parametrize(
    ("max_samples", "expected"), [(None, 60), (1.0, 60), (0.5, 30), (7, 7), (0.2, 12)]
)
def test_max_samples(max_samples, expected):
    """max_samples sets the number of rows drawn for each tree."""
    model = make(OKBagging, max_samples=max_samples).fit(X, Y)
    assert [model.trees_[t].times.sum() for t in range(8)] == [expected] * 8


def test_fractions_of_samples():
    """Fractions of the number of samples are rounded up, as in scikit-learn."""
    rules = OKTree(min_samples_leaf=0.11, min_samples_split=0.21).fit(X, Y)._rules(5, 60.0)
    assert (rules.min_samples_leaf, rules.min_samples_split) == (7, 13)


def test_verbose_shows_progress(capsys):
    """verbose=1 prints a progress bar to stderr; the default prints nothing."""
    make(OKExtraTrees, verbose=1).fit(X, Y)
    assert "growing trees [##############################] 8/8" in capsys.readouterr().err
    make(OKExtraTrees).fit(X, Y)
    captured = capsys.readouterr()
    assert captured.err == captured.out == ""


def test_progress_in_a_pipe(monkeypatch, capsys):
    """A file or a pipe gets a line a minute at most, and one at the end, without redrawing."""
    now = iter([0.0, 1.0, 59.0, 61.0, 100.0, 120.0])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    bar = progress.ProgressBar(10, "growing trees")
    for done in (1, 2, 3, 4, 10):
        bar(done)
    lines = capsys.readouterr().err.split("\n")
    assert [line.partition("] ")[2] for line in lines] == [
        "3/10, 61.0 s, 142.3 s left",
        "10/10, 120.0 s",
        "",
    ]
    assert not any("\r" in line for line in lines)


def test_inputs_are_not_copied(monkeypatch):
    """float32 and float64 arrays are passed to the engine without a copy."""
    import okforest.models.tree_model as module

    seen = []
    grow = module.grow_function("cpu")

    def record(plan, *args, **options):
        seen.append(plan.X)
        return grow(plan, *args, **options)

    monkeypatch.setattr(module, "grow_function", {"cpu": record}.get)
    for dtype in (np.float32, np.float64):
        inputs = np.asfortranarray(X, dtype)
        OKTree().fit(inputs, Y)
        assert np.shares_memory(seen[-1], inputs)


def test_precomputed_predicts_positions():
    """Predictions with a precomputed kernel are positions in its matrix."""
    K = RBF(1.0)(Y)
    by_position = OKExtraTrees(8, kernel=Precomputed(K), random_state=0).fit(X, np.arange(60))
    by_vector = OKExtraTrees(8, kernel=RBF(1.0), random_state=0).fit(X, Y)
    np.testing.assert_array_equal(Y[by_position.predict(NEW)], by_vector.predict(NEW))
