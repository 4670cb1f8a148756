"""Ridge regression between kernels, compared with NumPy, scikit-learn, and refits."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF as GaussianProcessRBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KernelCenterer, StandardScaler
from sklearn.utils import get_tags

from okforest import OKNeighbors, OKRidge
from okforest.kernels import RBF, Laplacian, Linear, Polynomial, Precomputed
from okforest.metrics import kernel_loss, kernel_loss_scorer, output_loss_scorer
from reference.averagers import leave_one_out, losses, ridge_weights
from ridge_data import COUNTS, NEW, WEIGHTS, X, Y, intercepts

rng = np.random.default_rng(0)
K_Y = RBF(1.0)(Y)


def product(a, b, power=1):
    return (1 + a @ b) ** power


def rbf_of_rows(a, b, gamma):
    return np.exp(-gamma * ((a - b) ** 2).sum())


# Input kernels, and the parameters of the same kernel in scikit-learn.
KERNELS = {
    "linear": ("linear", {"kernel": "linear"}),
    "rbf": ("rbf", {"kernel": "rbf"}),
    "rbf, sigma": (RBF(0.8), {"kernel": "rbf", "gamma": 1 / (2 * 0.8**2)}),
    "poly": ("poly", {"kernel": "poly"}),
    "polynomial": (
        Polynomial(2, gamma=0.25, coef0=0.5),
        {"kernel": "poly", "degree": 2, "gamma": 0.25, "coef0": 0.5},
    ),
    "laplacian by name": ("laplacian", {"kernel": "laplacian"}),
    "laplacian": (Laplacian(5.0), {"kernel": "laplacian", "gamma": 0.2}),
    "cosine": ("cosine", {"kernel": "cosine"}),
    "function": (partial(product, power=2), {"kernel": product, "kernel_params": {"power": 2}}),
    "object": (GaussianProcessRBF(1.5), {"kernel": GaussianProcessRBF(1.5)}),
}


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize(("input_kernel", "params"), KERNELS.values(), ids=KERNELS)
def test_linear_outputs_are_those_of_scikit_learn(input_kernel, params, weight):
    """KernelRidge, for numbers and vectors, with one penalty or the best of one."""
    ours = {"fit_intercept": False, "input_kernel": input_kernel}
    for y in (Y, Y[:, 0]):
        for alpha in (0.01, 2.0):
            expected = KernelRidge(alpha=alpha, **params).fit(X, y, weight).predict(NEW)
            for penalty in (alpha, [alpha]):
                model = OKRidge(penalty, **ours).fit(X, y, weight)
                np.testing.assert_allclose(model.predict(NEW), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("options", [{}, {"n_landmarks": 9, "random_state": 0}], ids=str)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_two_linear_kernels_are_linear_regression(container, options, weight):
    """Ridge with its intercept, also of inputs and outputs far from the origin."""
    inputs, new = X + np.arange(4.0), NEW + np.arange(4.0)
    for y in (Y + 30.0, Y[:, 0]):
        for alpha in (0.01, 2.0):
            expected = Ridge(alpha).fit(inputs, y, weight).predict(new)
            for penalty in (alpha, [alpha]):
                model = OKRidge(penalty, input_kernel="linear", **options)
                predicted = model.fit(container(inputs), y, weight).predict(container(new))
                np.testing.assert_allclose(predicted, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly"])
def test_an_intercept_centres_the_kernel(kernel):
    """KernelRidge on the centred Gram matrix and centred outputs."""
    K, K_new = (pairwise_kernels(Z, X, metric=kernel) for Z in (X, NEW))
    centre = KernelCenterer().fit(K)
    theirs = KernelRidge(alpha=0.3, kernel="precomputed")
    theirs.fit(centre.transform(K), Y - Y.mean(axis=0))
    expected = theirs.predict(centre.transform(K_new)) + Y.mean(axis=0)
    predicted = OKRidge(0.3, input_kernel=kernel).fit(X, Y).predict(NEW)
    np.testing.assert_allclose(predicted, expected, rtol=1e-8)


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("options", [{}, {"n_landmarks": 9}, {"n_components": 3}], ids=str)
def test_weights_sum_to_one(options, weight):
    """With an intercept, whatever the penalty: a constant is predicted exactly."""
    for alpha in (1e-3, 1e6):
        model = OKRidge(alpha, kernel="rbf", random_state=0, **options).fit(X, Y, weight)
        np.testing.assert_allclose(model.predict_weights(NEW).sum(axis=1), 1.0, rtol=1e-9)
        if alpha > 1:
            mean = np.average(np.eye(40), axis=0, weights=weight)
            W = model.predict_weights(NEW).toarray()
            np.testing.assert_allclose(W, np.tile(mean, (15, 1)), atol=1e-4)


def test_an_intercept_matters():
    """Centred inputs with a linear kernel cannot predict the mean of the outputs without it."""
    y = X @ rng.normal(size=(4, 2)) + 50.0
    inputs = X - X.mean(axis=0)
    assert OKRidge("loo", input_kernel="linear").fit(inputs, y).score(inputs, y) > 0.99
    without = OKRidge("loo", input_kernel="linear", fit_intercept=False)
    assert without.fit(inputs, y).score(inputs, y) < 0.0


def test_precomputed_inputs():
    """X may hold the input kernel; folds of cross-validation take its rows and columns."""
    K, K_new = pairwise_kernels(X, metric="rbf"), pairwise_kernels(NEW, X, metric="rbf")
    for params in (
        {},
        {"fit_intercept": False},
        {"n_landmarks": 20, "random_state": 3},
        {"n_components": 5},
    ):
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
    b = OKRidge(input_kernel=partial(rbf_of_rows, gamma=1 / (2 * 1.7**2))).fit(X, Y).predict(NEW)
    np.testing.assert_allclose(a, b)
    for weight in WEIGHTS.values():
        model = OKRidge(input_kernel=Laplacian()).fit(X, Y, weight)
        used = X if weight is None else X[weight > 0]
        assert model.input_kernel_.sigma == Laplacian().resolve(used).sigma
    repeated = OKRidge(input_kernel=Laplacian()).fit(
        np.repeat(X, COUNTS, axis=0), COUNTS.repeat(COUNTS)
    )
    assert repeated.input_kernel_.sigma == Laplacian().resolve(X[COUNTS > 0]).sigma


@given(
    counts=st.lists(st.integers(0, 3), min_size=9, max_size=9).filter(
        lambda counts: np.count_nonzero(counts) > 1
    ),
    alpha=st.floats(1e-3, 1e3),
    seed=st.integers(0, 99),
    intercept=st.booleans(),
)
def test_weights_against_the_oracle(counts, alpha, seed, intercept):
    """A linear system with rows repeated as often as they weigh, whatever the output kernel."""
    rng = np.random.default_rng(seed)
    X, new, counts = rng.normal(size=(9, 3)), rng.normal(size=(4, 3)), np.array(counts)
    K, K_new = (pairwise_kernels(Z, X, metric="rbf") for Z in (X, new))
    expected = ridge_weights(K, K_new, alpha, counts, intercept)
    for penalty in (alpha, [alpha]):
        model = OKRidge(penalty, kernel="rbf", fit_intercept=intercept)
        W = model.fit(X, X, counts).predict_weights(new)
        assert isinstance(W, sp.csr_array)
        np.testing.assert_allclose(W.toarray(), expected, atol=1e-9)


@given(
    counts=st.lists(st.integers(0, 3), min_size=9, max_size=9).filter(
        lambda counts: np.count_nonzero(counts) > 2
    ),
    seed=st.integers(0, 99),
    kernel=st.sampled_from(["linear", "rbf"]),
    intercept=st.booleans(),
)
def test_leave_one_out_is_refitting(counts, seed, kernel, intercept):
    """For every penalty, the closed form is the mean loss of models fitted without a row."""
    rng = np.random.default_rng(seed)
    X, Y, counts = rng.normal(size=(9, 3)), rng.normal(size=(9, 2)), np.array(counts)
    Y += 10.0  # a mean that an intercept takes up
    alphas = np.array([1e-4, 1e-2, 1.0, 30.0])
    model = OKRidge(alphas, kernel=kernel, fit_intercept=intercept).fit(X, Y, counts)
    K, K_outputs = pairwise_kernels(X, metric="rbf"), model.kernel_(Y)
    expected = [
        leave_one_out(
            lambda i, alpha=alpha: ridge_weights(
                K, K[[i]], alpha, np.where(np.arange(9) == i, 0, counts), intercept
            )[0],
            K_outputs,
            counts,
        )
        for alpha in alphas
    ]
    np.testing.assert_allclose(model.loo_loss_, expected, rtol=1e-7)
    chosen = model.alphas_.tolist().index(model.alpha_)
    assert expected[chosen] <= min(expected) * (1 + 1e-6)
    refitted = OKRidge(model.alpha_, kernel=kernel, fit_intercept=intercept).fit(X, Y, counts)
    np.testing.assert_allclose(model.predict(X), refitted.predict(X))


@intercepts
def test_the_default_grid_follows_the_scale_of_the_kernel(intercept):
    """For inputs ten times as large, the penalty of a linear kernel is a hundred times as large."""
    a, b = (
        OKRidge("loo", input_kernel="linear", fit_intercept=intercept).fit(factor * X, Y)
        for factor in (1, 10)
    )
    np.testing.assert_allclose(b.alphas_, 100 * a.alphas_)
    np.testing.assert_allclose(b.loo_loss_, a.loo_loss_, rtol=1e-6)
    assert b.alpha_ == pytest.approx(100 * a.alpha_)
    for params in ({}, {"n_landmarks": 5}):
        model = OKRidge("loo", input_kernel="linear", fit_intercept=intercept, **params)
        predicted = model.fit(0 * X, Y).predict(NEW)
        np.testing.assert_allclose(predicted, np.tile(intercept * Y.mean(axis=0), (15, 1)))


def test_the_default_grid_follows_the_variance_of_inputs():
    """With an intercept, inputs far from the origin have the penalties of centred ones."""
    a = OKRidge("loo", input_kernel="linear").fit(X, Y)
    b = OKRidge("loo", input_kernel="linear").fit(X + 1000.0, Y)
    np.testing.assert_allclose(b.alphas_, a.alphas_, rtol=1e-6)
    np.testing.assert_allclose(b.loo_loss_[8:], a.loo_loss_[8:], rtol=1e-4)
    variance = ((X - X.mean(axis=0)) ** 2).sum(axis=1).mean()
    np.testing.assert_allclose(a.alphas_[[0, -1]], [1e-8 * variance, 100 * variance])
    for value in (0.3, 1.3, 2.9):  # equal inputs, with a variance of zero or of rounding errors
        equal = OKRidge("loo", input_kernel="linear").fit(np.full((40, 4), value), Y)
        np.testing.assert_allclose(equal.predict([[value] * 4]), [Y.mean(axis=0)])
        assert equal.alphas_[0] > 1e-9


def test_what_follows_from_weights():
    """Losses, kernels, decoded and ranked outputs, with negative weights, by dense algebra."""
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
    expected = losses(model.predict_weights(X).toarray(), K_Y, np.arange(40))
    assert kernel_loss(model, X, Y) == pytest.approx(expected.mean())
    assert model.score(X, Y) == pytest.approx(1 - expected.sum() / (40 - K_Y.mean() * 40))
    candidates = Y[5:9]
    np.testing.assert_array_equal(
        model.predict(NEW, candidates), candidates[distances[:, 5:9].argmin(axis=1)]
    )
    support = OKRidge(0.1, kernel=RBF(1.0), decoder="support").fit(X, Y, COUNTS)
    allowed = {tuple(y) for y in Y[COUNTS > 0]}
    assert {tuple(y) for y in support.predict(NEW)} <= allowed


def test_labels():
    """The label with the largest sum of weights, including negative ones."""
    labels = np.array(["a", "b", "c"])[np.digitize(Y[:, 0], [-0.5, 0.5])]
    indicators = (labels[:, None] == np.array(["a", "b", "c"])).astype(float)
    model = OKRidge(0.1, kernel="dirac", fit_intercept=False).fit(X, labels)
    votes = KernelRidge(alpha=0.1, kernel="rbf").fit(X, indicators).predict(NEW)
    np.testing.assert_array_equal(model.predict(NEW), np.array(list("abc"))[votes.argmax(axis=1)])


def test_predicting_makes_no_sparse_matrix(monkeypatch):
    """Dense weights stay dense in predictions and scores."""
    from okforest.weights import ProductWeights

    monkeypatch.setattr(ProductWeights, "tocsr", lambda self: pytest.fail("made sparse"))
    for kernel in ("linear", RBF(1.0)):
        model = OKRidge(kernel=kernel).fit(X, Y)
        model.predict(NEW)
        model.predict_top(NEW, k=2)
        model.predict_kernel(NEW)
        assert model.score(X, Y) > 0


def test_far_inputs_have_no_weights():
    """If the input kernel underflows to zero, so does F, and the output nearest to it is found."""
    far = np.full((1, 4), 1e3)
    for decoder in ("auto", "support"):
        model = OKRidge(kernel=RBF(1.0), decoder=decoder, fit_intercept=False).fit(X, Y)
        assert model.predict_weights(far).nnz == 0
        np.testing.assert_array_equal(model.predict(far), Y[:1])
        assert np.isfinite(model.predict_top(far, k=2)[1]).all()


def test_inputs_of_other_kinds():
    """Sparse X gives the same as dense X; missing values and categories raise clear errors."""
    sparse = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    a = OKRidge(n_landmarks=10, random_state=0).fit(sparse, Y).predict(sparse)
    b = OKRidge(n_landmarks=10, random_state=0).fit(sparse.toarray(), Y).predict(sparse.toarray())
    np.testing.assert_allclose(a, b, atol=1e-9)
    gaps = np.where(X > 1, np.nan, X)
    with pytest.raises(ValueError, match=r"X has missing values \(NaN\); impute them, or use tr"):
        OKRidge().fit(gaps, Y)
    with pytest.raises(ValueError, match=r"X has missing values \(NaN\)"):
        OKRidge().fit(X, Y).predict(gaps)
    frame = pd.DataFrame(X, columns=list("abcd"))
    assert list(OKRidge().fit(frame, Y).feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match=r"text columns: 'e'\. OKRidge requires numbers"):
        OKRidge().fit(frame.assign(e="red"), Y)


def test_lifecycle():
    """Pickles and compact copies predict the same; set_params does not change a fitted model."""
    model = OKRidge(kernel=Precomputed(K_Y), n_components=4).fit(X, np.arange(40))
    expected = model.predict_weights(NEW).toarray()
    for copy in (pickle.loads(pickle.dumps(model)), model.compact()):
        np.testing.assert_array_equal(copy.predict_weights(NEW).toarray(), expected)
        np.testing.assert_array_equal(copy.predict(NEW), model.predict(NEW))
    model.set_params(input_kernel=RBF(9.0), alpha=5.0, kernel="linear", fit_intercept=False)
    np.testing.assert_array_equal(model.predict_weights(NEW).toarray(), expected)
    several = OKRidge("loo").fit(X, Y).set_params(alpha=1.0).fit(X, Y)
    assert not hasattr(several, "loo_loss_")


@pytest.mark.filterwarnings("ignore:the kernel of this")
def test_searches_and_pipelines():
    """Grid searches, both kinds of scorers, and precomputed output kernels."""
    grid = {"okridge__input_kernel__sigma": [0.5, 2.0], "okridge__kernel__sigma": [0.5, 2.0]}
    pipeline = make_pipeline(StandardScaler(), OKRidge("loo", kernel=RBF(), input_kernel=RBF()))
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
        ({"alpha": [1.0, 0.0]}, "use a positive number, a list of them"),
        ({"alpha": [1.0, np.inf]}, "use a positive number, a list of them"),
        ({"alpha": [1.0, np.nan]}, "use a positive number, a list of them"),
        ({"alpha": [[1.0]]}, "use a positive number, a list of them"),
        ({"n_components": 0}, "'n_components' parameter"),
        ({"n_landmarks": 0}, "'n_landmarks' parameter"),
        ({"input_kernel": "gauss"}, "'input_kernel' parameter"),
        ({"input_kernel": "precomputed"}, r"X has shape \(40, 4\); with input_kernel='precomp"),
        ({"fit_intercept": "yes"}, "'fit_intercept' parameter"),
        ({"input_kernel": lambda a, b: -a @ b}, "of the input kernel is indefinite"),
        ({"input_kernel": lambda a, b: -a @ b, "alpha": "loo"}, "the input kernel is indefinite"),
        ({"input_kernel": lambda a, b: -a @ b, "n_landmarks": 9}, "the input kernel is indefinite"),
        ({"input_kernel": lambda a, b: a[0] - b[1]}, "of the input kernel is asymmetric"),
        (
            {"input_kernel": lambda a, b: a[0] - b[1], "n_landmarks": 5},
            "of the input kernel is asymmetric",
        ),
        ({"input_kernel": lambda a, b: np.nan}, "of the input kernel has NaN or infinite entries"),
        (
            {"input_kernel": "linear", "alpha": 1e-30},
            "too small.*singular. Use a larger alpha",
        ),
        ({"kernel": "gauss"}, "kernel='gauss' is not known"),
        ({"decoder": "nearest"}, "decoder='nearest' is not known"),
    ],
)
def test_bad_parameters(params, message):
    """The error names the value, what is expected, and a remedy."""
    with pytest.raises(ValueError, match=message):
        OKRidge(**params).fit(X, Y)


@pytest.mark.parametrize(
    "input_kernel", [Linear(), RBF(0.8), Polynomial(2, gamma=0.25, coef0=0.5)], ids=str
)
@pytest.mark.parametrize("model", [OKRidge(), OKNeighbors(weights="kernel")], ids=str)
def test_kernels_of_sparse_inputs(model, input_kernel):
    """Kernels that scikit-learn computes on sparse inputs give what dense inputs give."""
    dense = np.where(np.abs(X) > 0.5, X, 0.0)
    sparse = sp.csr_array(dense)
    model = clone(model).set_params(input_kernel=input_kernel)
    assert get_tags(model).input_tags.sparse
    expected = clone(model).fit(dense, Y).predict(dense[:9] + 0.1)
    model.fit(sparse, Y)
    for new in (dense[:9] + 0.1, sp.csr_array(dense[:9] + 0.1)):
        np.testing.assert_allclose(model.predict(new), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("input_kernel", [RBF(), RBF(1.0, base=Linear()), Laplacian(1.0)], ids=str)
@pytest.mark.parametrize("model", [OKRidge(), OKNeighbors(weights="kernel")], ids=str)
def test_kernels_of_dense_inputs(model, input_kernel):
    """Other kernels refuse sparse inputs, and say which take them."""
    model = clone(model).set_params(input_kernel=input_kernel)
    assert not get_tags(model).input_tags.sparse
    with pytest.raises(ValueError, match=r"input_kernel=.* needs dense inputs, and X is sparse"):
        model.fit(sp.csr_array(X), Y)


def test_a_sparse_gram_matrix_is_refused():
    """A precomputed Gram matrix must be dense."""
    with pytest.raises(ValueError, match="X is sparse; with input_kernel='precomputed'"):
        OKRidge(input_kernel="precomputed").fit(sp.eye_array(40, format="csr"), Y)
