"""Models that search for splits in few directions, or use an approximate embedding."""

import pickle
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

import okforest
import okforest._utils.resources as memory_module
import okforest.weights.span as span_module
from okforest import OKBagging, OKExtraTrees, OKRandomForest, OKTotallyRandomTrees, OKTree
from okforest.kernels import RBF, Linear
from okforest.metrics import kernel_loss

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 5))
SIGNAL = np.c_[X[:, 0] * X[:, 1], X[:, 2] > 0, np.sin(X[:, 3])]
Y = SIGNAL @ rng.normal(size=(3, 12)) + 0.1 * rng.normal(size=(150, 12))
MODELS = [OKTree, OKExtraTrees, OKRandomForest, OKBagging]
OPTIONS = {
    "search": {"search_rank": 4},
    "share": {"search_rank": 0.9},
    "cholesky": {"embedding": "cholesky", "embedding_rank": 30},
    "nystrom": {"embedding": "nystrom", "embedding_rank": 30, "search_rank": 5},
    "fourier": {"embedding": "fourier", "embedding_rank": 30},
}


def assert_same_trees(a, b):
    """Compare everything but the variances, which may differ in rounding."""
    for name, array in vars(a.trees_).items():
        if name == "variance":
            np.testing.assert_allclose(array, b.trees_.variance, atol=1e-8 * array.max())
        else:
            assert np.array_equal(array, getattr(b.trees_, name)), name


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("embedding", ["features", "gram", "factor"])
def test_all_directions_of_the_outputs_grow_the_same_trees(model, embedding):
    """Outputs of rank 3 in 12 dimensions lose nothing in three directions."""
    low = SIGNAL @ rng.normal(size=(3, 12))
    exact = model(random_state=1).fit(X, low)
    searched = model(embedding=embedding, search_rank=3, random_state=1).fit(X, low)
    assert_same_trees(exact, searched)
    assert searched.search_rank_ == 3
    assert searched.search_variance_ == pytest.approx(1.0)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("embedding", ["cholesky", "nystrom"])
def test_full_rank_grows_the_same_trees(model, embedding):
    """An approximate factor of full rank is exact."""
    exact = model(kernel=Linear(), random_state=1).fit(X, SIGNAL)
    ours = model(kernel=Linear(), embedding=embedding, random_state=1).fit(X, SIGNAL)
    assert_same_trees(exact, ours)
    assert (ours.embedding_, ours.embedding_rank_) == (embedding, 3)
    assert ours.embedding_residual_ == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_threads_and_steps_do_not_change_the_trees(options):
    """Directions, landmarks and trees are the same for any n_jobs, and after a warm start."""
    at_once = OKExtraTrees(9, kernel=RBF(), random_state=3, **options).fit(X, Y)
    threads = OKExtraTrees(9, kernel=RBF(), random_state=3, n_jobs=2, **options).fit(X, Y)
    steps = OKExtraTrees(4, kernel=RBF(), random_state=3, warm_start=True, **options).fit(X, Y)
    steps.set_params(n_estimators=9).fit(X, Y)
    for model in (threads, steps):
        for name, array in vars(at_once.trees_).items():
            assert np.array_equal(array, getattr(model.trees_, name)), name


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_predictions_are_exact(options):
    """Losses, kernels and pre-images follow from the weights and the true Gram matrix."""
    model = OKExtraTrees(10, kernel=RBF(3.0), random_state=0, **options).fit(X[:100], Y[:100])
    W, K = model.predict_weights(X[100:]).toarray(), RBF(3.0)(Y)
    np.testing.assert_allclose(model.predict_kernel(X[100:]), W @ K[:100, :100] @ W.T, atol=1e-12)
    losses = 1 - 2 * (W * K[100:, :100]).sum(axis=1) + np.diag(W @ K[:100, :100] @ W.T)
    assert kernel_loss(model, X[100:], Y[100:]) == pytest.approx(losses.mean())
    assert kernel_loss(model, X[:100], Y[:100]) == pytest.approx(0.0, abs=1e-12)
    nearest = (1 - 2 * W @ K[:100, :100]).argmin(axis=1)
    np.testing.assert_array_equal(model.predict(X[100:]), Y[:100][nearest])


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("seed", range(3))
def test_approximations_predict_nearly_as_well(options, seed):
    """The signal is in few directions: searching only these costs little."""
    exact = OKExtraTrees(50, kernel=RBF(), random_state=seed).fit(X[:100], Y[:100])
    model = OKExtraTrees(50, kernel=RBF(), random_state=seed, **options).fit(X[:100], Y[:100])
    assert model.score(X[100:], Y[100:]) > exact.score(X[100:], Y[100:]) - 0.05


def test_what_is_reported():
    """The residual and rank of the embedding, the rank of the search and its share of variance."""
    exact = OKTree(kernel=RBF()).fit(X, Y)
    assert (exact.embedding_residual_, exact.search_variance_) == (0.0, 1.0)
    assert exact.search_rank_ == exact.embedding_rank_ == 150
    model = OKTree(kernel=RBF(), embedding="cholesky", embedding_rank=40, search_rank=4).fit(X, Y)
    assert (model.embedding_, model.embedding_rank_, model.search_rank_) == ("cholesky", 40, 4)
    assert 0 < model.embedding_residual_ < 0.2
    assert 0.5 < model.search_variance_ < 1
    assert OKTree(kernel=RBF(), embedding="nystrom").fit(X, Y).embedding_rank_ == 150
    model = OKTotallyRandomTrees(2).fit(X, Y).fit(X)
    for name in ("embedding_residual_", "search_rank_", "search_variance_"):
        assert not hasattr(model, name)


@pytest.mark.parametrize("weight", [None, rng.integers(1, 4, 150)], ids=["equal", "weighted"])
def test_variances_are_those_of_the_directions(weight):
    """The variance of the root, relative to the exact tree, is search_variance_."""
    exact = OKTree(kernel=RBF(), random_state=0).fit(X, Y, weight).trees_
    model = OKTree(kernel=RBF(), search_rank=4, random_state=0).fit(X, Y, weight)
    assert model.trees_.variance[0] / exact.variance[0] == pytest.approx(model.search_variance_)


def test_weights_are_repetitions():
    """Directions depend on weights of the outputs: weight 3 equals three copies of a row."""
    times = rng.integers(0, 4, 150)
    rows = np.repeat(np.arange(150), times)
    options = {"max_depth": 3, "search_rank": 3, "random_state": 0}
    weighted = OKTree(**options).fit(X, Y, times)
    repeated = OKTree(**options).fit(X[rows], Y[rows])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X))
    assert weighted.search_variance_ == pytest.approx(repeated.search_variance_, abs=1e-6)


def test_constant_outputs_stay_one_leaf():
    """Equal outputs leave nothing to split."""
    for kernel in (Linear(), RBF(1.0)):
        for options in OPTIONS.values():
            if kernel.default_decoder == "training_set" or options.get("embedding") != "fourier":
                model = OKTree(kernel=kernel, **options).fit(X, np.full((150, 12), 0.3))
                assert len(model.trees_.feature) == 1


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_copies(options, tmp_path):
    """Clones keep the parameters; files and pickles keep the fitted attributes, too."""
    model = OKExtraTrees(5, kernel=RBF(), random_state=0, **options)
    copy = clone(model)
    assert {name: copy.get_params()[name] for name in options} == options
    model.fit(X, Y)
    okforest.save(model, tmp_path / "model")
    for copy in (okforest.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert {name: copy.get_params()[name] for name in options} == options
        for name in ("embedding_", "embedding_rank_", "embedding_residual_"):
            assert getattr(copy, name) == getattr(model, name)
        for name in ("search_rank_", "search_variance_"):
            assert getattr(copy, name) == getattr(model, name)
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))


def test_totally_random_trees_do_not_search():
    """They do not search for splits; their embedding is only used for node variances."""
    assert "search_rank" not in OKTotallyRandomTrees().get_params()
    with pytest.raises(TypeError, match="OKTotallyRandomTrees has no parameter 'search_rank'"):
        OKTotallyRandomTrees(search_rank=3)
    model = OKTotallyRandomTrees(3, kernel=RBF(), embedding="nystrom", random_state=0).fit(X, Y)
    assert clone(model).embedding == "nystrom"


@pytest.mark.parametrize("value", [0, -1, 2.5, "all"])
def test_bad_ranks_are_refused(value):
    """Ranks are positive integers."""
    for name in ("search_rank", "embedding_rank"):
        with pytest.raises(ValueError, match=f"'{name}' parameter of"):
            OKTree(embedding="cholesky").set_params(**{name: value}).fit(X, Y)


@pytest.mark.parametrize("decoder", ["training_set", "support"])
def test_memory_of_predictions_is_bounded(decoder, monkeypatch):
    """No array of rows × N (36 MB) or N × N (72 MB) is allocated; blocks have 1 MB."""
    monkeypatch.setattr(span_module, "BLOCK_BYTES", 2**20)
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(4500, 3))
    outputs = inputs @ rng.normal(size=(3, 2)) + 0.1 * rng.normal(size=(4500, 2))
    model = OKExtraTrees(
        3, kernel=RBF(), embedding="cholesky", embedding_rank=8, decoder=decoder, random_state=0
    ).fit(inputs[:3000], outputs[:3000])
    tracemalloc.start()
    model.predict(inputs[3000:])
    model.predict_top(inputs[3000:], 2)
    model.score(inputs[3000:], outputs[3000:])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * 2**20


def test_the_estimated_size_of_weights_is_that_of_all_rows(monkeypatch):
    """From a sample of the rows, the estimate is near the entries of the whole matrix."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    W = OKExtraTrees(5, min_samples_leaf=10, random_state=0).fit(X, X).weight_matrix(X)
    monkeypatch.setattr(memory_module, "ESTIMATED", 1)
    assert 0.7 < memory_module.csr_bytes(W) / (12 * W.tocsr().nnz) < 1.3
