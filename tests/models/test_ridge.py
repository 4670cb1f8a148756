"""Ridge regression between kernels: against the oracle, scikit-learn's own, and refits."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF as GaussianProcessRBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from okforest import OKRidge
from okforest.kernels import RBF, Laplacian, Precomputed
from okforest.metrics import kernel_loss, kernel_loss_scorer, output_loss_scorer
from reference.averagers import (
    leave_one_out,
    losses,
    nystrom_weights,
    principal_projection,
    ridge_weights,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 4))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 2]] + 0.1 * rng.normal(size=(40, 2))
NEW = rng.normal(size=(15, 4))
COUNTS = np.tile([0, 1, 2, 1], 10)
WEIGHTS = {"equal": None, "counts": COUNTS, "fractions": rng.uniform(0.1, 3.0, size=40)}
K_Y = RBF(1.0)(Y)


def product(a, b, power=1):
    return (1 + a @ b) ** power


KERNELS = {
    "linear": {"kernel": "linear"},
    "rbf": {"kernel": "rbf"},
    "rbf, gamma": {"kernel": "rbf", "gamma": 0.7},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 0.5},
    "laplacian": {"kernel": "laplacian", "gamma": 0.2},
    "cosine": {"kernel": "cosine"},
    "function": {"kernel": product, "kernel_params": {"power": 2}},
    "object": {"kernel": GaussianProcessRBF(1.5)},
}


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("params", KERNELS.values(), ids=KERNELS)
def test_linear_outputs_are_those_of_scikit_learn(params, weight):
    """KernelRidge, for numbers and vectors, with one penalty or the best of one."""
    ours = {
        {"kernel": "input_kernel", "kernel_params": "input_kernel_params"}.get(name, name): value
        for name, value in params.items()
    }
    for y in (Y, Y[:, 0]):
        for alpha in (0.01, 2.0):
            expected = KernelRidge(alpha=alpha, **params).fit(X, y, weight).predict(NEW)
            for penalty in (alpha, [alpha]):
                predicted = OKRidge(penalty, **ours).fit(X, y, weight).predict(NEW)
                np.testing.assert_allclose(predicted, expected, rtol=1e-8, atol=1e-8)


def test_precomputed_inputs():
    """X may hold the input kernel; folds of cross-validation take its rows and columns."""
    K, K_new = pairwise_kernels(X, metric="rbf"), pairwise_kernels(NEW, X, metric="rbf")
    for params in ({}, {"n_landmarks": 20, "random_state": 3}, {"n_components": 5}):
        for weight in WEIGHTS.values():
            a = OKRidge(kernel="rbf", input_kernel="precomputed", **params).fit(K, Y, weight)
            b = OKRidge(kernel="rbf", **params).fit(X, Y, weight)
            np.testing.assert_allclose(
                a.predict_weights(K_new).toarray(), b.predict_weights(NEW).toarray(), atol=1e-9
            )
    np.testing.assert_allclose(
        cross_val_score(OKRidge(kernel="rbf", input_kernel="precomputed"), K, Y),
        cross_val_score(OKRidge(kernel="rbf"), X, Y),
    )


def test_kernels_of_okforest_on_inputs():
    """RBF(sigma) is gamma = 1/2σ²; sigma="median" is learnt from the training inputs."""
    a = OKRidge(input_kernel=RBF(sigma=1.7)).fit(X, Y).predict(NEW)
    b = OKRidge(gamma=1 / (2 * 1.7**2)).fit(X, Y).predict(NEW)
    np.testing.assert_allclose(a, b)
    model = OKRidge(input_kernel=Laplacian()).fit(X, Y)
    assert model.input_kernel_["metric"].sigma == Laplacian().resolve(X).sigma


@given(
    counts=st.lists(st.integers(0, 3), min_size=9, max_size=9).filter(
        lambda counts: np.count_nonzero(counts) > 1
    ),
    alpha=st.floats(1e-3, 1e3),
    seed=st.integers(0, 99),
)
def test_weights_against_the_oracle(counts, alpha, seed):
    """(K + αI)⁻¹ k(x), rows being repeated as often as they weigh, whatever the output kernel."""
    rng = np.random.default_rng(seed)
    X, new, counts = rng.normal(size=(9, 3)), rng.normal(size=(4, 3)), np.array(counts)
    K, K_new = (pairwise_kernels(Z, X, metric="rbf") for Z in (X, new))
    expected = ridge_weights(K, K_new, alpha, counts)
    for penalty in (alpha, [alpha]):
        W = OKRidge(penalty, kernel="rbf").fit(X, X, counts).predict_weights(new)
        assert isinstance(W, sp.csr_array)
        np.testing.assert_allclose(W.toarray(), expected, atol=1e-9)


@given(
    counts=st.lists(st.integers(0, 3), min_size=9, max_size=9).filter(
        lambda counts: np.count_nonzero(counts) > 2
    ),
    seed=st.integers(0, 99),
    kernel=st.sampled_from(["linear", "rbf"]),
)
def test_leave_one_out_is_refitting(counts, seed, kernel):
    """For every penalty, the closed form is the mean loss of models fitted without a row."""
    rng = np.random.default_rng(seed)
    X, Y, counts = rng.normal(size=(9, 3)), rng.normal(size=(9, 2)), np.array(counts)
    alphas = np.array([1e-4, 1e-2, 1.0, 30.0])
    model = OKRidge(alphas, kernel=kernel).fit(X, Y, counts)
    K, K_outputs = pairwise_kernels(X, metric="rbf"), model.kernel_(Y)
    expected = [
        leave_one_out(
            lambda i, alpha=alpha: ridge_weights(
                K, K[[i]], alpha, np.where(np.arange(9) == i, 0, counts)
            )[0],
            K_outputs,
            counts,
        )
        for alpha in alphas
    ]
    np.testing.assert_allclose(model.loo_loss_, expected, rtol=1e-7)
    chosen = model.alphas_.tolist().index(model.alpha_)
    assert expected[chosen] <= min(expected) * (1 + 1e-6)
    np.testing.assert_allclose(
        model.predict(X), OKRidge(model.alpha_, kernel=kernel).fit(X, Y, counts).predict(X)
    )


@pytest.mark.parametrize("kernel", ["linear", RBF(1.0)], ids=["features", "gram"])
@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
def test_leave_one_out_with_landmarks(kernel, weight):
    """The landmarks stay, also that of the row that is left out."""
    omega = np.ones(40) if weight is None else np.asarray(weight, float)
    alphas = np.array([1e-2, 1.0])
    model = OKRidge(alphas, kernel=kernel, n_landmarks=12, random_state=0).fit(X, Y, weight)
    K = pairwise_kernels(X, X[model.landmarks_], metric="rbf")

    def weights_without(i, alpha):
        rest = np.where(np.arange(40) == i, 0.0, omega)
        return nystrom_weights(K, K[model.landmarks_], K[[i]], alpha, rest)[0]

    expected = [
        leave_one_out(lambda i, a=alpha: weights_without(i, a), model.kernel_(Y), omega)
        for alpha in alphas
    ]
    np.testing.assert_allclose(model.loo_loss_, expected, rtol=1e-6)


def test_the_default_grid_follows_the_scale_of_the_kernel():
    """The chosen penalty of a linear kernel on inputs ten times as large is a hundred times it."""
    a = OKRidge("loo", input_kernel="linear").fit(X, Y)
    b = OKRidge("loo", input_kernel="linear").fit(10 * X, Y)
    np.testing.assert_allclose(b.alphas_, 100 * a.alphas_)
    np.testing.assert_allclose(b.loo_loss_, a.loo_loss_, rtol=1e-6)
    assert b.alpha_ == pytest.approx(100 * a.alpha_)
    for params in ({}, {"n_landmarks": 5}):
        model = OKRidge("loo", input_kernel="linear", **params).fit(0 * X, Y)
        np.testing.assert_array_equal(model.predict(NEW), 0.0)


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
def test_landmarks_against_the_oracle(weight):
    """The Nyström method is the ridge regression on k(x, z) of landmarks z."""
    omega = np.ones(40) if weight is None else np.asarray(weight, float)
    model = OKRidge(0.3, kernel="rbf", n_landmarks=8, random_state=1).fit(X, Y, weight)
    assert len(model.landmarks_) == 8
    assert (omega[model.landmarks_] > 0).all()
    K, K_new = (pairwise_kernels(Z, X[model.landmarks_], metric="rbf") for Z in (X, NEW))
    expected = nystrom_weights(K, K[model.landmarks_], K_new, 0.3, omega)
    np.testing.assert_allclose(model.predict_weights(NEW).toarray(), expected, atol=1e-9)
    assert model.dual_.size + model.basis_.size <= 8 * 8 + 8 * 40


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian"])
def test_all_landmarks_are_exact(kernel, weight):
    """Also when more are asked for than there are, and with the penalty chosen."""
    for alpha in (0.1, [0.01, 0.3, 10.0]):
        exact = OKRidge(alpha, kernel="rbf", input_kernel=kernel).fit(X, Y, weight)
        for m in (40, 1000):
            model = OKRidge(alpha, kernel="rbf", input_kernel=kernel, n_landmarks=m)
            W = model.fit(X, Y, weight).predict_weights(NEW).toarray()
            assert model.alpha_ == pytest.approx(exact.alpha_)
            np.testing.assert_allclose(W, exact.predict_weights(NEW).toarray(), atol=1e-7)


def test_more_landmarks_come_nearer():
    """To the exact prediction, in the mean over seeds."""
    exact = OKRidge(0.1).fit(X, Y).predict(NEW)
    errors = [
        np.mean(
            [
                np.abs(OKRidge(0.1, n_landmarks=m, random_state=s).fit(X, Y).predict(NEW) - exact)
                for s in range(10)
            ]
        )
        for m in (2, 10, 25, 40)
    ]
    assert errors[0] > 1.5 * errors[1] > 3 * errors[2]
    assert errors[3] < 1e-9


def test_no_square_matrix_with_landmarks(monkeypatch):
    """Neither of inputs nor of outputs, with the penalty chosen and with components."""
    import okforest.embedding.span as span_module
    from okforest.models import ridge

    sides = []
    gram, call = ridge.input_gram, RBF.__call__
    monkeypatch.setattr(span_module, "BLOCK_BYTES", 8 * 40 * 5)
    monkeypatch.setattr(ridge, "input_gram", lambda *a: sides.append((K := gram(*a)).shape) or K)
    monkeypatch.setattr(RBF, "__call__", lambda *a: sides.append((K := call(*a)).shape) or K)
    for params in ({}, {"n_components": 3}):
        model = OKRidge("loo", kernel=RBF(1.0), n_landmarks=6, random_state=0, **params)
        model.fit(X, Y).predict(NEW)
    assert {min(shape) for shape in sides} <= {5, 6}


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("n_landmarks", [None, 15])
@pytest.mark.parametrize("alpha", [0.2, [0.2]])
def test_components_against_the_oracle(alpha, n_landmarks, weight):
    """Predictions are projected on the leading directions of the outputs, in feature space."""
    omega = np.ones(40) if weight is None else np.asarray(weight, float)
    options = {"n_landmarks": n_landmarks, "random_state": 0}
    values, vectors = np.linalg.eigh(K_Y)
    features = vectors * np.sqrt(np.maximum(values, 0.0))  # ΦΦᵀ = K_Y
    whole = OKRidge(alpha, kernel=RBF(1.0), **options).fit(X, Y, weight).predict_weights(NEW)
    for c in (1, 4, 40):
        model = OKRidge(alpha, kernel=RBF(1.0), n_components=c, **options).fit(X, Y, weight)
        F = model.predict_weights(NEW) @ features
        projection = principal_projection(features, omega, c)
        np.testing.assert_allclose(F, whole @ features @ projection, atol=1e-7)
        assert model.dual_.shape[1] <= c


def test_components_of_vectors():
    """Few features: principal directions of y itself, not centred."""
    y = Y @ rng.normal(size=(2, 5)) + 0.1 * rng.normal(size=(40, 5))
    whole = OKRidge().fit(X, y).predict(NEW)
    for c in (1, 2, 5, 9):
        predicted = OKRidge(n_components=c).fit(X, y).predict(NEW)
        projection = principal_projection(y, np.ones(40), c)
        np.testing.assert_allclose(predicted, whole @ projection, atol=1e-9)


def test_leave_one_out_with_components():
    """The directions stay; what they leave out of an output is part of its loss."""
    values, vectors = np.linalg.eigh(K_Y)
    features = vectors * np.sqrt(np.maximum(values, 0.0))
    projection = principal_projection(features, COUNTS, 3)
    K = pairwise_kernels(X, metric="rbf")
    model = OKRidge([0.05, 2.0], kernel=RBF(1.0), n_components=3).fit(X, Y, COUNTS)
    for alpha, loss in zip(model.alphas_, model.loo_loss_, strict=True):
        total = 0.0
        for i in np.flatnonzero(COUNTS):
            w = ridge_weights(K, K[[i]], alpha, np.where(np.arange(40) == i, 0, COUNTS))[0]
            total += COUNTS[i] * ((features[i] - w @ features @ projection) ** 2).sum()
        assert loss == pytest.approx(total / COUNTS.sum())


def test_what_follows_from_weights():
    """Losses, kernels, pre-images and ranks, with weights of both signs, by dense algebra."""
    model = OKRidge(0.1, kernel=RBF(1.0)).fit(X, Y)
    W = model.predict_weights(NEW).toarray()
    assert W.min() < 0
    np.testing.assert_allclose(model.predict_kernel(NEW), W @ K_Y @ W.T, atol=1e-10)
    np.testing.assert_allclose(model.predict_kernel(NEW, NEW[:4]), W @ K_Y @ W[:4].T, atol=1e-10)
    distances = 1 - 2 * W @ K_Y + np.einsum("ij,jk,ik->i", W, K_Y, W)[:, None]
    np.testing.assert_array_equal(model.predict(NEW), Y[distances.argmin(axis=1)])
    outputs, ranked = model.predict_top(NEW, k=3)
    np.testing.assert_allclose(ranked, np.sort(distances, axis=1)[:, :3], atol=1e-10)
    np.testing.assert_array_equal(outputs[:, 1], Y[distances.argsort(axis=1)[:, 1]])
    own = losses(model.predict_weights(X).toarray(), K_Y, np.arange(40))
    assert kernel_loss(model, X, Y) == pytest.approx(own.mean())
    assert model.score(X, Y) == pytest.approx(1 - own.sum() / (40 - K_Y.mean() * 40))
    candidates = Y[5:9]
    np.testing.assert_array_equal(
        model.predict(NEW, candidates), candidates[distances[:, 5:9].argmin(axis=1)]
    )
    support = OKRidge(0.1, kernel=RBF(1.0), decoder="support").fit(X, Y, COUNTS)
    allowed = {tuple(y) for y in Y[COUNTS > 0]}
    assert {tuple(y) for y in support.predict(NEW)} <= allowed


def test_labels():
    """The label with the largest sum of weights, negative ones included."""
    labels = np.array(["a", "b", "c"])[np.digitize(Y[:, 0], [-0.5, 0.5])]
    indicators = (labels[:, None] == np.array(["a", "b", "c"])).astype(float)
    model = OKRidge(0.1, kernel="dirac").fit(X, labels)
    votes = KernelRidge(alpha=0.1, kernel="rbf").fit(X, indicators).predict(NEW)
    np.testing.assert_array_equal(model.predict(NEW), np.array(list("abc"))[votes.argmax(axis=1)])


def test_predicting_makes_no_sparse_matrix(monkeypatch):
    """Dense weights stay dense in predictions and scores."""
    from okforest.embedding import ProductWeights

    monkeypatch.setattr(ProductWeights, "tocsr", lambda self: pytest.fail("made sparse"))
    for kernel in ("linear", RBF(1.0)):
        model = OKRidge(kernel=kernel).fit(X, Y)
        model.predict(NEW)
        model.predict_top(NEW, k=2)
        model.predict_kernel(NEW)
        assert model.score(X, Y) > 0


def test_far_inputs_have_no_weights():
    """Where the input kernel is zero in floating point, F = 0, and the nearest output to that."""
    far = np.full((1, 4), 1e3)
    for decoder in ("auto", "support"):
        model = OKRidge(kernel=RBF(1.0), decoder=decoder).fit(X, Y)
        assert model.predict_weights(far).nnz == 0
        np.testing.assert_array_equal(model.predict(far), Y[:1])
        assert np.isfinite(model.predict_top(far, k=2)[1]).all()


def test_inputs_of_other_kinds():
    """Sparse X is dense X; missing values and categories are refused in clear words."""
    sparse = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    a = OKRidge(n_landmarks=10, random_state=0).fit(sparse, Y).predict(sparse)
    b = OKRidge(n_landmarks=10, random_state=0).fit(sparse.toarray(), Y).predict(sparse.toarray())
    np.testing.assert_allclose(a, b, atol=1e-9)
    gaps = np.where(X > 1, np.nan, X)
    with pytest.raises(ValueError, match=r"X has missing values \(NaN\); fill them in, or use tr"):
        OKRidge().fit(gaps, Y)
    with pytest.raises(ValueError, match=r"X has missing values \(NaN\)"):
        OKRidge().fit(X, Y).predict(gaps)
    frame = pd.DataFrame(X, columns=list("abcd"))
    assert list(OKRidge().fit(frame, Y).feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="categorical or text columns; OKRidge takes numbers"):
        OKRidge().fit(frame.assign(e="red"), Y)


def test_lifecycle():
    """Pickles and compact copies predict the same; parameters set later change no fitted model."""
    model = OKRidge(kernel=Precomputed(K_Y), n_components=4).fit(X, np.arange(40))
    expected = model.predict_weights(NEW).toarray()
    for copy in (pickle.loads(pickle.dumps(model)), model.compact()):
        np.testing.assert_array_equal(copy.predict_weights(NEW).toarray(), expected)
        np.testing.assert_array_equal(copy.predict(NEW), model.predict(NEW))
    model.set_params(gamma=9.0, alpha=5.0, kernel="linear")
    np.testing.assert_array_equal(model.predict_weights(NEW).toarray(), expected)
    several = OKRidge("loo").fit(X, Y).set_params(alpha=1.0).fit(X, Y)
    assert not hasattr(several, "loo_loss_")
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model.fit(X, Y[:5])
    with pytest.raises(ValueError, match="not fitted"):
        model.predict_weights(NEW)


def test_searches_and_pipelines():
    """Grids over its parameters, scorers of both kinds, precomputed output kernels."""
    grid = {"okridge__gamma": [0.1, 1.0], "okridge__kernel__sigma": [0.5, 2.0]}
    pipeline = make_pipeline(StandardScaler(), OKRidge("loo", kernel=RBF()))
    for scoring in (None, kernel_loss_scorer, output_loss_scorer):
        search = GridSearchCV(pipeline, grid, cv=3, scoring=scoring).fit(X, Y)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    np.testing.assert_allclose(
        cross_val_score(OKRidge(kernel=Precomputed(K_Y)), X, np.arange(40)),
        cross_val_score(OKRidge(kernel=RBF(1.0)), X, Y),
    )


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"alpha": 0.0}, "'alpha' parameter"),
        ({"alpha": "gcv"}, "'alpha' parameter"),
        ({"alpha": []}, r"alpha=\[\]; use a positive number, a list of them, or 'loo'"),
        ({"alpha": [1.0, -1.0]}, "use a positive number, a list of them"),
        ({"alpha": [1.0, np.nan]}, "use a positive number, a list of them"),
        ({"alpha": [[1.0]]}, "use a positive number, a list of them"),
        ({"n_components": 0}, "'n_components' parameter"),
        ({"n_landmarks": 0}, "'n_landmarks' parameter"),
        ({"input_kernel": "gauss"}, "'input_kernel' parameter"),
        ({"input_kernel": "precomputed"}, r"X has shape \(40, 4\); with input_kernel='precomp"),
        ({"input_kernel": RBF(), "input_kernel_params": {"a": 1}}, "is for functions"),
        ({"input_kernel": lambda a, b: -a @ b}, "not positive definite; use a larger alpha"),
        ({"input_kernel": lambda a, b: -a @ b, "alpha": "loo"}, "the input kernel is indefinite"),
        ({"input_kernel": lambda a, b: -a @ b, "n_landmarks": 9}, "the input kernel is indefinite"),
        ({"kernel": "gauss"}, "kernel='gauss' is not known"),
        ({"decoder": "nearest"}, "decoder='nearest' is not known"),
    ],
)
def test_bad_parameters(params, message):
    """What came, what was expected, what to do."""
    with pytest.raises(ValueError, match=message):
        OKRidge(**params).fit(X, Y)


def test_a_sparse_gram_matrix_is_refused():
    """A matrix of numbers for pairs is dense."""
    with pytest.raises(ValueError, match="X is sparse; with input_kernel='precomputed'"):
        OKRidge(input_kernel="precomputed").fit(sp.eye_array(40, format="csr"), Y)
