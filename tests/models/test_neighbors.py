"""Nearest neighbours, compared with NumPy and scikit-learn, and on every type of input."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from okforest import OKNeighbors
from okforest.kernels import RBF, Laplacian, Precomputed
from okforest.metrics import kernel_loss_scorer, output_loss_scorer
from reference.averagers import neighbor_weights

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 2]] + 0.1 * rng.normal(size=(60, 2))
NEW = rng.normal(size=(15, 4))
ONES = np.ones(60, dtype=int)


def product(a, b):
    return a @ b


def cauchy(distances):
    return 1.0 / (1.0 + distances**2)


@pytest.mark.parametrize("weights", ["uniform", "distance", cauchy])
@pytest.mark.parametrize(
    ("metric", "params"),
    [("euclidean", None), ("manhattan", None), ("minkowski", {"p": 3}), ("cosine", None)],
)
def test_regression_is_that_of_scikit_learn(weights, metric, params):
    """With the linear kernel, for every metric, weight and number of neighbours."""
    for k in (1, 5, 60):
        ours = OKNeighbors(k, weights=weights, metric=metric, metric_params=params).fit(X, Y)
        theirs = KNeighborsRegressor(
            k, weights=weights, metric=metric, p=(params or {}).get("p", 2)
        ).fit(X, Y)
        np.testing.assert_allclose(ours.predict(NEW), theirs.predict(NEW), atol=1e-12)
        if weights == "distance":  # scikit-learn may round the distance of a row to itself
            np.testing.assert_allclose(ours.predict(X), Y, atol=1e-12)
        else:
            np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-12)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_classification_is_that_of_scikit_learn(weights):
    """With the Dirac kernel."""
    labels = np.array(["a", "b", "c"])[np.digitize(Y[:, 0], [-0.5, 0.5])]
    for k in (1, 3, 8):
        ours = OKNeighbors(k, kernel="dirac", weights=weights).fit(X, labels)
        theirs = KNeighborsClassifier(k, weights=weights).fit(X, labels)
        np.testing.assert_array_equal(ours.predict(NEW), theirs.predict(NEW))


@given(
    counts=st.lists(st.integers(0, 3), min_size=12, max_size=12).filter(lambda c: sum(c) >= 6),
    n_neighbors=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_weights_of_rows_are_repetitions(counts, n_neighbors, seed):
    """A row of weight 3 is three neighbours, of which only some may be among the nearest."""
    counts = np.array(counts)
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(12, 2)), rng.normal(size=(5, 2))
    distances = pairwise_distances(new, X)
    for weights, vote in (("uniform", lambda d: 1.0), ("distance", lambda d: 1.0 / d)):
        model = OKNeighbors(n_neighbors, weights=weights).fit(X, X, sample_weight=counts)
        W = model.predict_weights(new)
        expected = neighbor_weights(distances, n_neighbors, counts, vote)
        np.testing.assert_allclose(W.toarray(), expected, atol=1e-12)
        repeated = OKNeighbors(n_neighbors, weights=weights).fit(
            np.repeat(X, counts, axis=0), np.repeat(X, counts, axis=0)
        )
        np.testing.assert_allclose(model.predict(new), repeated.predict(new), atol=1e-12)


def test_small_weights_multiply():
    """Rows of weights below one are one neighbour each, that weighs less."""
    weight = rng.uniform(0.1, 0.9, size=60)
    W = OKNeighbors(4).fit(X, Y, sample_weight=weight).predict_weights(NEW).toarray()
    nearest = OKNeighbors(4).fit(X, Y).predict_weights(NEW).toarray() > 0
    expected = nearest * weight
    np.testing.assert_allclose(W, expected / expected.sum(axis=1, keepdims=True))


def test_weights_are_distributions():
    """CSR in canonical form, non-negative, with sum one."""
    for params in ({}, {"weights": "distance"}, {"input_kernel": "rbf", "weights": "kernel"}):
        W = OKNeighbors(7, **params).fit(X, Y).predict_weights(NEW)
        assert isinstance(W, sp.csr_array)
        assert W.shape == (15, 60)
        assert W.has_canonical_format
        assert (np.diff(W.indptr) == 7).all()
        assert W.data.min() > 0
        np.testing.assert_allclose(W.sum(axis=1), 1.0)


@pytest.mark.parametrize(
    "kernel",
    [
        "rbf",
        "poly",
        "linear",
        RBF(sigma=1.3),
        Laplacian(),
        lambda a, b: (1 + a @ b) ** 2,
    ],
    ids=["rbf", "poly", "linear", "object", "median", "function"],
)
def test_distance_of_a_kernel(kernel, monkeypatch):
    """k(x, x) − 2 k(x, z) + k(z, z), also in small blocks; weights by a positive kernel."""
    from okforest.models import input_kernels, neighbors

    model = OKNeighbors(5, input_kernel=kernel, weights="distance").fit(X, Y)
    gram = input_kernels.input_gram
    K = gram(model.input_kernel_, NEW, X)
    diag = [np.diag(gram(model.input_kernel_, Z, Z)) for Z in (NEW, X)]
    distances = np.sqrt(diag[0][:, None] - 2 * K + diag[1])
    expected = neighbor_weights(distances, 5, ONES, lambda d: 1 / d)
    np.testing.assert_allclose(model.predict_weights(NEW).toarray(), expected, atol=1e-10)
    monkeypatch.setattr(neighbors, "BLOCK_BYTES", 2000)
    monkeypatch.setattr(input_kernels, "BLOCK", 3)
    np.testing.assert_allclose(model.predict_weights(NEW).toarray(), expected, atol=1e-10)
    if kernel == "rbf" or isinstance(kernel, RBF | Laplacian):
        nearest = neighbor_weights(distances, 5, ONES) > 0
        W = model.set_params(weights="kernel").predict_weights(NEW).toarray()
        np.testing.assert_allclose(W, nearest * K / (nearest * K).sum(axis=1, keepdims=True))


def test_precomputed_distances():
    """X may hold distances; cross-validation takes rows and columns of it."""
    D, D_new = pairwise_distances(X), pairwise_distances(NEW, X)
    weight = np.tile([0.0, 1.0, 2.0], 20)
    ours = OKNeighbors(4, metric="precomputed", weights="distance").fit(D, Y, weight)
    theirs = OKNeighbors(4, weights="distance").fit(X, Y, weight)
    np.testing.assert_allclose(ours.predict(D_new), theirs.predict(NEW), atol=1e-12)
    np.testing.assert_allclose(
        cross_val_score(OKNeighbors(metric="precomputed"), D, Y),
        cross_val_score(OKNeighbors(), X, Y),
    )
    for distances in (D - 0.5, D - 0.5 * np.eye(60)):
        with pytest.raises(
            ValueError, match=r"X has a negative distance, -0\.5; with metric='prec"
        ):
            ours.fit(distances, Y)
    with pytest.raises(ValueError, match="X has a negative distance, -1"):
        OKNeighbors(4, metric="precomputed").fit(D, Y).predict(-np.ones((1, 60)))
    all_of_them = OKNeighbors(60, metric="precomputed").fit(D, Y)
    np.testing.assert_allclose(all_of_them.predict(D_new), np.tile(Y.mean(axis=0), (15, 1)))


def test_ties_go_to_the_first_of_precomputed_distances():
    """Of equally distant rows, the first are neighbours."""
    D = np.ones((6, 6))
    W = OKNeighbors(3, metric="precomputed").fit(D, np.arange(6.0)).predict_weights(D[:1])
    assert W.indices.tolist() == [0, 1, 2]


def test_threads():
    """Predictions do not depend on n_jobs."""
    expected = OKNeighbors().fit(X, Y).predict_weights(NEW).toarray()
    for n_jobs in (2, -1):
        W = OKNeighbors(n_jobs=n_jobs).fit(X, Y).predict_weights(NEW)
        np.testing.assert_array_equal(W.toarray(), expected)
    with pytest.raises(ValueError, match="n_jobs=0 is not valid"):
        OKNeighbors(n_jobs=0).fit(X, Y)


def test_votes_of_zero_are_all_the_same():
    """Neighbours for which the kernel underflows to zero are averaged."""
    model = OKNeighbors(3, input_kernel="rbf", weights="kernel").fit(X, Y)
    W = model.predict_weights(np.full((1, 4), 1e3))
    np.testing.assert_allclose(W.data, 1 / 3)


def test_sparse_missing_and_categorical_inputs():
    """Sparse X gives the same as dense X; NaN needs its metric; categories need encoding."""
    sparse = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    for params in ({}, {"input_kernel": "rbf"}):
        a = OKNeighbors(3, **params).fit(sparse, Y).predict(sparse)
        b = OKNeighbors(3, **params).fit(sparse.toarray(), Y).predict(sparse.toarray())
        np.testing.assert_allclose(a, b, atol=1e-12)
    gaps = np.where(rng.uniform(size=X.shape) < 0.1, np.nan, X)
    with pytest.raises(ValueError, match=r"missing values \(NaN\); use metric='nan_euclidean'"):
        OKNeighbors().fit(gaps, Y)
    with pytest.raises(ValueError, match=r"missing values \(NaN\)"):
        OKNeighbors().fit(X, Y).predict(gaps)
    ours = OKNeighbors(metric="nan_euclidean").fit(gaps, Y).predict(gaps)
    theirs = KNeighborsRegressor(metric="nan_euclidean").fit(gaps, Y).predict(gaps)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = OKNeighbors().fit(frame, Y)
    assert list(model.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match=r"text columns: 'e'\. OKNeighbors requires numbers"):
        OKNeighbors().fit(frame.assign(e="red"), Y)


def test_pickle_and_later_parameters():
    """Loading prepares the search again; k and weights may change after fitting."""
    for params in ({}, {"input_kernel": "rbf"}):
        model = OKNeighbors(3, **params).fit(X, Y)
        before = dict(vars(model))
        model.predict(NEW)
        assert vars(model) == before
        copy = pickle.loads(pickle.dumps(model))
        assert "_search" not in model.__getstate__()
        assert "_search" in vars(copy)
        np.testing.assert_array_equal(copy.predict(NEW), model.predict(NEW))
    np.testing.assert_array_equal(model.compact().predict(NEW), model.predict(NEW))
    refitted = OKNeighbors(7).fit(X, Y)
    np.testing.assert_array_equal(
        model.set_params(n_neighbors=7).predict(NEW), refitted.predict(NEW)
    )


def test_the_training_rows_are_its_own():
    """Changing the training arrays after fit does not change the model."""
    inputs, outputs = X.copy(), Y.copy()
    model = OKNeighbors(input_kernel="rbf", kernel="rbf").fit(inputs, outputs)
    expected = model.predict_weights(NEW).toarray()
    inputs[:] = 0.0
    np.testing.assert_array_equal(model.predict_weights(NEW).toarray(), expected)


def test_the_index_holds_no_second_copy():
    """Unless rows of weight zero are left out."""
    model = OKNeighbors(3).fit(X, Y)
    assert np.shares_memory(model.inputs_, model._search.index._fit_X)
    model.fit(X, Y, np.r_[0.0, np.ones(59)])
    assert model._search.index._fit_X.shape == (59, 4)


def test_one_row_evaluates_the_kernel_once_per_training_row():
    """And once for k(x, x): what depends on the training rows only is kept."""
    evaluations = []

    def kernel(a, b):
        evaluations.append(1)
        return np.exp(-((a - b) ** 2).sum())

    model = OKNeighbors(3, input_kernel=kernel).fit(X, Y)
    assert len(evaluations) == 60
    loaded = pickle.loads(pickle.dumps(OKNeighbors(3, input_kernel=product).fit(X, Y)))
    for _ in range(2):
        evaluations.clear()
        model.predict(NEW[:1])
        assert len(evaluations) == 60 + 1
    evaluations.clear()
    model.predict(NEW)
    assert len(evaluations) == 15 * (60 + 1)
    loaded.predict(NEW[:1])
    assert loaded._search.squares.shape == (60,)


@pytest.mark.filterwarnings("ignore:the kernel of this")
def test_searches_and_pipelines():
    """Grid searches, both kinds of scorers, and precomputed output kernels."""
    grid = {"okneighbors__n_neighbors": [1, 5], "okneighbors__kernel__sigma": [0.5, 2.0]}
    pipeline = make_pipeline(StandardScaler(), OKNeighbors(kernel=RBF()))
    for scoring in (None, kernel_loss_scorer, output_loss_scorer):
        search = GridSearchCV(pipeline, grid, cv=3, scoring=scoring).fit(X, Y)
        assert search.best_params_["okneighbors__n_neighbors"] in (1, 5)
    K = RBF(1.0)(Y)
    np.testing.assert_allclose(
        cross_val_score(OKNeighbors(kernel=Precomputed(K)), X, np.arange(60)),
        cross_val_score(OKNeighbors(kernel=RBF(1.0)), X, Y),
    )


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_neighbors": 0}, "'n_neighbors' parameter"),
        ({"n_neighbors": 61}, "n_neighbors=61 is larger than the number of training rows, 60"),
        ({"weights": "nearest"}, "'weights' parameter"),
        ({"weights": "kernel"}, "weights='kernel' requires an input_kernel"),
        ({"metric": "far"}, "Metric 'far' not valid"),
        ({"metric": "precomputed"}, r"X has shape \(60, 4\); with metric='precomputed'"),
        ({"input_kernel": "precomputed"}, "does not determine distances to new inputs"),
        ({"input_kernel": "rbf", "metric": "manhattan"}, "define two different distances"),
        ({"input_kernel": "gauss"}, "'input_kernel' parameter"),
        ({"decoder": "nearest"}, "decoder='nearest' is not known"),
        ({"kernel": "gauss"}, "kernel='gauss' is not known"),
    ],
)
def test_bad_parameters(params, message):
    """The error names the value, what is expected, and a remedy."""
    with pytest.raises(ValueError, match=message):
        OKNeighbors(**params).fit(X, Y)


def test_bad_votes():
    """Weights of neighbours that are negative, not finite or of the wrong shape."""
    for vote, message in (
        (lambda d: -d, "gave a neighbour the weight -"),
        (lambda d: d * np.nan, "must be finite"),
        (lambda d: d[:, 0], r"returned an array of shape \(15,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            OKNeighbors(weights=vote).fit(X, Y).predict(NEW)
    with pytest.raises(ValueError, match="the input kernel gave a neighbour the weight -"):
        OKNeighbors(60, weights="kernel", input_kernel="linear").fit(X, Y).predict(NEW)
