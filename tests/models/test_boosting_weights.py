"""The weights of boosted predictions, in every form."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from okforest import DirectionBase, OKBoost, OKNeighbors, OKRidge
from okforest.decode import as_decoder
from okforest.kernels import RBF, Linear
from okforest.models.boosting import bases, rounds, trees
from okforest.weights import DenseWeights, Span, WeightMatrix

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 4))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 2] > 0, rng.normal(size=40)]
NEW = rng.normal(size=(64, 4))
Y_NEW = np.c_[NEW[:, 0] * NEW[:, 1], NEW[:, 2] > 0, rng.normal(size=64)]
LABELS = np.where(X[:, 0] > 0.5, "up", np.where(X[:, 1] > 0, "side", "down"))
MODELS = {
    "features": OKBoost(6, random_state=0),
    "gram": OKBoost(6, kernel=RBF(1.0), random_state=0),
    "factor": OKBoost(6, kernel=RBF(1.0), embedding="factor", random_state=0),
    "neighbours": OKBoost(4, base=OKNeighbors(3)),
    "ridge": OKBoost(4, kernel=RBF(1.0), base=OKRidge()),
    "direction": OKBoost(4, kernel=RBF(1.0), base=DirectionBase(LinearRegression())),
}
ROWS = [slice(None), slice(5, 9), slice(None, None, 2), slice(None, None, -1), slice(3, 3)]


@pytest.mark.parametrize("kept_bytes", [2**28, 0], ids=["kept", "not kept"])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_forms_equal_the_dense_matrix(model, kept_bytes, monkeypatch):
    """Rows and products, computed before the matrix and after, with few columns and many."""
    monkeypatch.setattr(rounds, "KEPT_BYTES", kept_bytes)
    model.fit(X, Y)
    dense = model.predict_weights(NEW).toarray()
    values = [rng.normal(size=shape) for shape in (40, (40, 1), (40, 50))]
    for _ in range(2):
        W = model.weight_matrix(NEW)
        assert isinstance(W, WeightMatrix)
        assert W.shape == (64, 40)
        for vectors in values:
            expected = np.tensordot(dense, vectors, axes=1)
            np.testing.assert_allclose(W @ vectors, expected, atol=1e-11)
        for rows in ROWS[:-1]:
            np.testing.assert_allclose(W[rows].tocsr().toarray(), dense[rows], atol=1e-12)
        assert W[ROWS[-1]].shape == (0, 40)
        np.testing.assert_allclose(W.entries(), dense, atol=1e-12)
    np.testing.assert_allclose(dense.sum(axis=1), 1.0)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_blocks_do_not_change_results(model, monkeypatch):
    """Large products are divided into blocks, so that they can be interrupted."""

    def predictions(model):
        return [
            model.predict_weights(NEW).toarray(),
            model.weight_matrix(NEW) @ Y,
            np.array(list(model.staged_losses(NEW, Y_NEW))),
            np.array([W.toarray() for W in model.staged_weights(NEW)]),
        ]

    expected = predictions(model.fit(X, Y))
    monkeypatch.setattr(bases, "BLOCK_BYTES", 8 * 40 * 7)
    monkeypatch.setattr(rounds, "BLOCK_PRODUCTS", 7 * 40 * 40)
    monkeypatch.setattr(bases, "BLOCK_PRODUCTS", 7 * 40 * 40)
    for found, value in zip(predictions(model), expected, strict=True):
        np.testing.assert_allclose(found, value, atol=1e-11)


@pytest.mark.parametrize(("kernel", "y"), [("linear", Y), ("linear", Y[:, 0]), ("dirac", LABELS)])
def test_predictions_from_leaf_means_compute_no_weights(kernel, y, monkeypatch):
    """Outputs, kernels, scores and stages follow from sums of explicit features."""
    model = OKBoost(6, kernel=kernel, random_state=0).fit(X, y)
    W = DenseWeights(model.predict_weights(X).toarray())
    expected = model.span_.gram(W)
    with monkeypatch.context() as patched:
        computed = property(lambda self: pytest.fail("weights are computed"))
        for name in ("_dense", "multiply"):
            patched.setattr(rounds.BoostedWeights, name, computed)
        predicted = model.predict(X)
        np.testing.assert_allclose(model.predict_kernel(X), expected, atol=1e-12)
        scores = list(model.staged_score(X, y))
        assert model.score(X, y) == pytest.approx(scores[-1])
        last = list(model.staged_predict(X))[-1]
        model.predict_top(X, 2, candidates=y[:5])
    if kernel == "dirac":
        np.testing.assert_array_equal(last, predicted)
    else:
        np.testing.assert_allclose(last, predicted, atol=1e-12)
    with_weights = model.weight_matrix(X).weights
    decoded = model.span_.gram(with_weights)
    np.testing.assert_allclose(decoded, expected, atol=1e-12)


def test_sums_of_features_belong_to_one_kernel_and_one_set_of_outputs():
    """For any other kernel or outputs the sums are computed from the weights."""
    model = OKBoost(6, random_state=0).fit(X, Y)
    W, dense = model.weight_matrix(NEW), model.predict_weights(NEW).toarray()
    assert W.feature_sums(model.span_) is W.sums
    assert W.feature_sums(Span(model.kernel_, model.outputs_)) is W.sums
    np.testing.assert_allclose(W.sums, dense @ Y, atol=1e-12)
    for span in (Span(Linear(), 2 * Y), Span(Linear(), Y), Span(RBF(1.0) + Linear(), Y)):
        for weights in (W, W[5:9]):
            expected = DenseWeights(weights.tocsr().toarray())
            np.testing.assert_allclose(span.gram(weights), span.gram(expected), atol=1e-11)
    np.testing.assert_array_equal(W[5:9].sums, W.sums[5:9])


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_one_row(model):
    """A row is predicted alone as among others."""
    model.fit(X, Y)
    np.testing.assert_allclose(model.predict(NEW[3:4])[0], model.predict(NEW)[3])
    W = model.predict_weights(NEW[3:4]).toarray()
    np.testing.assert_allclose(W[0], model.predict_weights(NEW).toarray()[3], atol=1e-12)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("subsample", [1.0, 0.5])
def test_coefficients_of_leaves_follow_from_the_rounds(n_jobs, subsample):
    """Computed for some outputs at a time, they are what the trees subtract from weights of all."""
    n = 530  # several parts, and residuals that are large enough for several threads
    inputs = np.random.default_rng(3).normal(size=(n, 3))
    outputs = np.c_[np.sin(inputs[:, 0]), inputs[:, 1] * inputs[:, 2]]
    weight = np.random.default_rng(4).uniform(0.5, 2.0, n)
    model = OKBoost(
        3, kernel=RBF(1.0), subsample=subsample, warm_start=True, random_state=0, n_jobs=n_jobs
    )
    model.fit(inputs, outputs, weight)
    model.set_params(n_estimators=5).fit(inputs, outputs, weight)
    assert model.embedding_ == "gram"
    fitted = model._rounds()
    left = np.eye(n) - weight / weight.sum()
    expected = []
    for m in range(5):
        leaves = fitted[m].leaves
        means = fitted.scales[m] * (leaves.means @ left)
        left -= means[leaves.places]
        expected.append(means)
    np.testing.assert_allclose(model.leaf_coefficients_, np.concatenate(expected), atol=1e-14)


def test_sums_of_values_that_the_span_keeps_need_no_weights(monkeypatch):
    """A decoder of rankings sums signs of pairs, which leaves have means of, as of features."""
    ranks = np.argsort(np.argsort(X @ rng.normal(size=(4, 5)), axis=1), axis=1) + 1
    model = OKBoost(6, kernel="kendall", random_state=0).fit(X, ranks)
    by_weights = as_decoder("auto", model.kernel_).decode(model.weight_matrix(NEW), model.span_)

    def fail(*args):
        raise AssertionError("weights were computed")

    with monkeypatch.context() as patched:
        patched.setattr(trees.TreeRounds, "dense_weights", fail)
        np.testing.assert_array_equal(model.predict(NEW), by_weights)
        np.testing.assert_array_equal(model.predict(NEW[:1]), by_weights[:1])
    model.fit(X, ranks[::-1])  # nothing of the previous fit is kept
    by_weights = as_decoder("auto", model.kernel_).decode(model.weight_matrix(NEW), model.span_)
    np.testing.assert_array_equal(model.predict(NEW), by_weights)
