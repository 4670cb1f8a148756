"""A kernel, a decoder and a model of the user's do what okforest's own do."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import okforest
from extending.user_classes import CommonSubstrings, HeavyOutputs, KernelSmoother
from okforest import OKBagging, OKBoost, OKExtraTrees, OKNeighbors, OKRidge, OKTree
from okforest.kernels import RBF, Normalized
from okforest.metrics import kernel_loss, make_kernel_scorer, output_loss
from okforest.network import NetworkCompletion
from okforest.persistence import FileFormatError

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3))
WORDS = np.array(["forest", "fortress", "tree", "trees"])[(X[:, 0] > 0) * 2 + (X[:, 1] > 0)]
NEW = rng.normal(size=(7, 3))

MODELS = {
    "tree": OKTree(max_depth=3, random_state=0),
    "extra-trees": OKExtraTrees(3, max_depth=3, random_state=0),
    "bagging": OKBagging(20, oob_score=True, random_state=0),
    "boosting": OKBoost(3, random_state=0),
    "boosting of the user's model": OKBoost(3, base=KernelSmoother(0.5), random_state=0),
    "neighbours": OKNeighbors(3),
    "ridge": OKRidge(),
    "user's model": KernelSmoother(0.5),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def make(model):
    params = clone(model).get_params(deep=False)
    return type(model)(**params | {"kernel": CommonSubstrings(), "decoder": HeavyOutputs(0.2)})


def accuracy(model, inputs, words):
    return np.mean(model.predict(inputs) == words)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([KernelSmoother()])
def test_scikit_learn_checks(estimator, check):
    """The model passes scikit-learn's checks of estimators."""
    check(estimator)


def test_parameters():
    """Parameters are read, set, cloned and printed, also through a model."""
    model = make(KernelSmoother()).set_params(kernel__length=3, decoder__share=0.9, bandwidth=2.0)
    params = clone(model).get_params()
    assert params["kernel__length"] == 3
    assert params["decoder__share"] == 0.9
    assert params["bandwidth"] == 2.0
    assert "CommonSubstrings(length=3)" in repr(model)
    with pytest.raises(ValueError, match="Invalid parameter 'width' for estimator Common"):
        model.set_params(kernel__width=1)


def test_the_kernel_is_consistent():
    """Diagonal, pairs and compositions follow from the Gram matrix."""
    kernel = CommonSubstrings()
    words = kernel.check(WORDS[:6])
    gram = kernel(words)
    np.testing.assert_array_equal(gram, kernel(words, words))
    np.testing.assert_array_equal(kernel.diag(words), np.diag(gram))
    np.testing.assert_array_equal(kernel.pairs(words[:3], words[3:]), np.diag(gram[:3, 3:]))
    np.testing.assert_allclose((2.0 * kernel + kernel * kernel)(words), 2.0 * gram + gram**2)
    roots = np.sqrt(np.diag(gram))
    np.testing.assert_allclose(Normalized(kernel)(words), gram / np.outer(roots, roots))
    squares = np.diag(gram)[:, None] + np.diag(gram) - 2.0 * gram
    np.testing.assert_allclose(RBF(1.5, base=kernel)(words), np.exp(-squares / (2 * 1.5**2)))
    with pytest.raises(ValueError, match="y has type float64; it must be a list of words"):
        OKTree(kernel=kernel).fit(X, X[:, 0])


@every_model
def test_predictions(model):
    """Every model predicts, scores and ranks words with the kernel and the decoder."""
    model = make(model).fit(X, WORDS)
    assert set(model.predict(NEW)) <= set(WORDS)
    words, losses = model.predict_top(NEW, k=2)
    assert words.shape == losses.shape == (7, 2)
    assert set(model.predict(NEW, candidates=["tree", "oak"])) <= {"tree", "oak"}
    W = model.predict_weights(NEW)
    np.testing.assert_allclose(model.predict_kernel(NEW), W @ model.kernel_(WORDS) @ W.T, atol=1e-9)
    assert model.score(X, WORDS) > 0
    assert kernel_loss(model, X, WORDS) >= 0
    assert output_loss(model.kernel_, WORDS, model.predict(X)) < 5
    compact = model.compact()
    np.testing.assert_array_equal(compact.predict(NEW), model.predict(NEW))


def test_the_decoder_decides():
    """With share=1 it returns the output of the largest weight."""
    model = make(KernelSmoother()).set_params(decoder__share=1.0).fit(X, WORDS)
    W = model.predict_weights(NEW).toarray()
    np.testing.assert_array_equal(model.predict(NEW), WORDS[W.argmax(axis=1)])


@pytest.mark.parametrize("model", [MODELS["tree"], MODELS["user's model"]], ids=["tree", "user's"])
def test_searches(model):
    """Grid search and cross-validation, over the parameters of the kernel and the decoder."""
    grid = {"kernel__length": [1, 2], "decoder__share": [0.1, 0.9]}
    search = GridSearchCV(make(model), grid, scoring=accuracy, cv=3).fit(X, WORDS)
    assert search.best_params_.keys() == grid.keys()
    assert search.best_estimator_.kernel_.length == search.best_params_["kernel__length"]
    assert len(cross_val_score(make(model), X, WORDS, cv=3)) == 3
    searched = {"kernel__length": [1, 2]}
    scoring = make_kernel_scorer(CommonSubstrings(3))
    search = GridSearchCV(make(model), searched, scoring=scoring, cv=3).fit(X, WORDS)
    assert search.best_score_ <= 1
    pipeline = make_pipeline(StandardScaler(), make(model))
    name = pipeline.steps[-1][0]
    grid = {f"{name}__kernel__length": [1, 2], f"{name}__decoder__share": [0.1, 0.9]}
    search = GridSearchCV(pipeline, grid, scoring=accuracy, cv=3).fit(X, WORDS)
    assert set(search.predict(NEW)) <= set(WORDS)


def test_sample_weights():
    """A row of weight 2 equals two rows, and a row of weight 0 no row."""
    weight = np.arange(30) % 3
    weighted = make(KernelSmoother()).fit(X, WORDS, weight)
    rows = np.repeat(np.arange(30), weight)
    repeated = make(KernelSmoother()).fit(X[rows], WORDS[rows])
    np.testing.assert_allclose(weighted.predict_kernel(NEW), repeated.predict_kernel(NEW))


def test_networks():
    """The model predicts links."""
    links = np.abs(X[:, :1] - X[:, 0]) < 0.3
    model = NetworkCompletion(KernelSmoother(0.5)).fit(X, links & ~np.eye(30, dtype=bool))
    scores = model.predict_links(NEW)
    assert np.corrcoef(scores.ravel(), (np.abs(NEW[:, :1] - X[:, 0]) < 0.3).ravel())[0, 1] > 0.3


def by_pickle(model, path):
    return pickle.loads(pickle.dumps(model))


def by_file(model, path):
    okforest.save(model, path)
    return okforest.load(path)


def by_mapped_file(model, path):
    okforest.save(model, path)
    return okforest.load(path, mmap=True, verify=True)


@pytest.mark.parametrize("copy", [by_pickle, by_file, by_mapped_file])
@every_model
def test_copies(tmp_path, model, copy):
    """Models are pickled, saved and loaded; the classes are imported."""
    model = make(model).fit(X, WORDS)
    same = copy(model, tmp_path / "model")
    assert repr(same) == repr(model)
    assert type(same.kernel_) is CommonSubstrings
    np.testing.assert_array_equal(same.predict(NEW), model.predict(NEW))
    np.testing.assert_array_equal(same.predict_kernel(NEW), model.predict_kernel(NEW))
    assert same.score(X, WORDS) == model.score(X, WORDS)


def test_copies_of_networks_and_pipelines(tmp_path):
    """Models that hold the user's model are saved with it."""
    pipeline = make_pipeline(StandardScaler(), make(KernelSmoother())).fit(X, WORDS)
    same = by_file(pipeline, tmp_path / "model")
    np.testing.assert_array_equal(same.predict(NEW), pipeline.predict(NEW))
    links = np.abs(X[:, :1] - X[:, 0]) < 0.3
    network = NetworkCompletion(KernelSmoother()).fit(X, links & ~np.eye(30, dtype=bool))
    same = by_file(network, tmp_path / "model")
    np.testing.assert_array_equal(same.predict_links(NEW), network.predict_links(NEW))


def test_the_state_is_checked(tmp_path):
    """A model that is saved or loaded checks its attributes itself."""
    model = make(KernelSmoother()).fit(X, WORDS)
    model.inputs_ = X[1:]
    with pytest.raises(ValueError, match="inputs_ and row_weight_ do not fit outputs_"):
        okforest.save(model, tmp_path / "model")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KernelSmoother, "check_state", lambda self: None)
        okforest.save(model, tmp_path / "model")
    with pytest.raises(FileFormatError, match="inputs_ and row_weight_ do not fit outputs_"):
        okforest.load(tmp_path / "model")


def test_a_kernel_may_bring_its_decoder():
    """What decoder="auto" means is the kernel's choice."""

    class Heavy(CommonSubstrings):
        default_decoder = HeavyOutputs(1.0)

    chosen = KernelSmoother(kernel=Heavy()).fit(X, WORDS)
    direct = KernelSmoother(kernel=CommonSubstrings(), decoder=HeavyOutputs(1.0)).fit(X, WORDS)
    np.testing.assert_array_equal(chosen.predict(NEW), direct.predict(NEW))
