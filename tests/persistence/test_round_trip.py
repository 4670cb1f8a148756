"""A loaded model has the parameters, fitted attributes and predictions of the saved one.

The codec treats every object alike, so that models, kernels and decoders are not combined: each
kernel and each decoder is saved once for every way of loading, and each model once for every form
in which it stores outputs.
"""

import contextlib
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

import okforest
from okforest import (
    DirectionBase,
    OKBagging,
    OKBoost,
    OKExtraTrees,
    OKNeighbors,
    OKRandomForest,
    OKRidge,
    OKTotallyRandomTrees,
    OKTree,
)
from okforest.decode import (
    Candidates,
    FixedPoint,
    Majority,
    Mean,
    Sharpened,
    Support,
    TrainingSet,
)
from okforest.engine import Trees
from okforest.kernels import (
    RBF,
    CommuteTime,
    Diffusion,
    Dirac,
    Laplacian,
    Linear,
    Mahalanobis,
    Normalized,
    Polynomial,
    Precomputed,
    RandomWalk,
    RegularizedLaplacian,
)
from okforest.persistence.encoding import Encoder

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 4))
NEW = rng.normal(size=(9, 4))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 2] > 0] + 0.1 * rng.normal(size=(40, 2))
GRAM = Y @ Y.T
DISTANCES = np.abs(Y[:, :1] - Y[:, 0])
EYE = np.eye(3)
LABELS = np.where(X[:, 0] > 0, "château", "arbre")
POSITIONS = np.arange(40)

MODELS = [OKTree, OKExtraTrees, OKRandomForest, OKBagging, OKTotallyRandomTrees, OKBoost]
KERNELS = {
    "name": ("rbf", Y),
    "linear": (Linear(), Y),
    "linear, one output": (Linear(), Y[:, 0]),
    "linear, Fortran order": (Linear(), np.asfortranarray(Y)),
    "rbf": (RBF(), Y),
    "laplacian": (Laplacian(sigma=np.float32(0.3)), Y),
    "polynomial": (Polynomial(degree=np.int64(3)), Y),
    "mahalanobis": (Mahalanobis(), Y),
    "mahalanobis, covariance": (Mahalanobis(covariance=np.diag([1.0, 2.0])), Y),
    "dirac, text": (Dirac(), LABELS),
    "dirac, objects": (Dirac(), LABELS.astype(object)),
    "dirac, bytes": (Dirac(), np.char.encode(LABELS, "utf-8")),
    "dirac, numbers": (Dirac(), (X[:, 0] > 0).astype(np.int16)),
    "dirac, booleans": (Dirac(), X[:, 0] > 0),
    "diffusion": (Diffusion(sp.csr_array(np.abs(GRAM))), POSITIONS),
    "diffusion, names": (Diffusion(np.abs(GRAM), names=POSITIONS[::-1]), POSITIONS),
    "diffusion, rank": (Diffusion(np.abs(GRAM), rank=3, normalize=True), POSITIONS),
    "regularized laplacian": (RegularizedLaplacian(np.abs(GRAM)), POSITIONS),
    "commute time": (CommuteTime(np.abs(GRAM)), POSITIONS),
    "random walk": (RandomWalk(np.abs(GRAM)), POSITIONS),
    "precomputed": (Precomputed(GRAM), POSITIONS),
    "rbf of precomputed": (RBF(base=Precomputed(GRAM)), POSITIONS),
    "sum and multiple": (2.0 * RBF(1.0) + Linear(), Y),
    "product": (RBF(1.0) * Polynomial(), Y),
    "normalized": (Normalized(Polynomial(coef0=1.0)), Y),
}
DECODERS = {
    "name": "support",
    "mean": Mean(),
    "majority": Majority(),
    "training set": TrainingSet(),
    "support": Support(),
    "candidates, array": Candidates(Y[:5]),
    "candidates, list": Candidates([[0.5, 1.0], [-0.5, 0.0]]),
    "candidates, tuple": Candidates(((0.5, 1.0), (-0.5, 0.0))),
    "fixed point": FixedPoint(max_iter=5),
    "sharpened": Sharpened(FixedPoint(), power=1.5),
}


class Mine(OKTree):
    """A model of a user, which may learn attributes of any name."""


def make(model, **params):
    return model(**({} if model is OKTree else {"n_estimators": 4}) | {"random_state": 0} | params)


def assert_same(a, b):
    """Assert that two values are the same in type and content, to the last bit."""
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if a.dtype == object:
            assert_same(a.tolist(), b.tolist())
        else:
            np.testing.assert_array_equal(a, b)
        assert a.flags.c_contiguous == b.flags.c_contiguous or not b.flags.forc
    elif isinstance(a, Trees):
        for field in fields(a):
            assert_same(getattr(a, field.name), getattr(b, field.name))
    elif sp.issparse(a):
        np.testing.assert_array_equal(a.toarray(), b.toarray())
    elif hasattr(a, "get_params"):
        assert_same(a.get_params(deep=False), b.get_params(deep=False))
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for pair in zip(a, b, strict=True):
            assert_same(*pair)
    else:
        assert a == b or (a != a and b != b)


def fitted(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


@pytest.fixture(params=[False, True], ids=["in memory", "mapped"])
def round_trip(request, tmp_path):
    def save_and_load(model):
        okforest.save(model, tmp_path / "model.okforest")
        return okforest.load(tmp_path / "model.okforest", mmap=request.param)

    return save_and_load


@pytest.mark.parametrize(("kernel", "y"), KERNELS.values(), ids=KERNELS)
def test_kernels(round_trip, kernel, y):
    """Every kernel, its parameters included; a loaded model can be fitted again."""
    model = make(OKTree, kernel=kernel, min_samples_leaf=2).fit(X, y)
    loaded = round_trip(model)
    assert repr(loaded) == repr(model)
    assert_same(loaded.get_params(), model.get_params())
    assert_same(fitted(loaded), fitted(model))
    np.testing.assert_array_equal(loaded.kernel_(loaded.outputs_), model.kernel_(model.outputs_))
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))
    assert loaded.score(X, y) == model.score(X, y)
    np.testing.assert_array_equal(loaded.fit(X, y).predict(NEW), model.predict(NEW))


FORMS = ["linear", "rbf", "dirac, text", "precomputed"]  # features, Gram matrix, labels, positions


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("model", MODELS)
def test_models(round_trip, model, form):
    """Every model of trees with every form of outputs."""
    kernel, y = KERNELS[form]
    model = make(model, kernel=kernel, min_samples_leaf=2).fit(X, y)
    loaded = round_trip(model)
    assert type(loaded) is type(model)
    assert_same(fitted(loaded), fitted(model))
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))
    assert_same(loaded.predict_weights(NEW), model.predict_weights(NEW))
    np.testing.assert_array_equal(loaded.predict_kernel(NEW), model.predict_kernel(NEW))
    np.testing.assert_array_equal(loaded.feature_importances_, model.feature_importances_)
    assert loaded.score(X, y) == model.score(X, y)


@pytest.mark.parametrize("decoder", DECODERS.values(), ids=DECODERS)
def test_decoders(round_trip, decoder):
    """Every decoder."""
    y = LABELS if isinstance(decoder, Majority) else Y
    kernel = "dirac" if isinstance(decoder, Majority) else RBF()
    model = make(OKBagging, kernel=kernel, decoder=decoder, min_samples_leaf=2).fit(X, y)
    loaded = round_trip(model)
    assert_same(loaded.get_params()["decoder"], model.get_params()["decoder"])
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))


WITHOUT_TREES = {
    "neighbours": OKNeighbors(kernel=RBF()),
    "neighbours by a kernel": OKNeighbors(input_kernel=RBF(1.3), weights="kernel"),
    "neighbours by a metric": OKNeighbors(metric="manhattan"),
    "ridge": OKRidge(kernel="rbf"),
    "ridge, penalty chosen": OKRidge([0.1, 1.0], kernel=RBF(), input_kernel="linear"),
    "ridge, landmarks": OKRidge(kernel="rbf", n_landmarks=9, random_state=0),
    "ridge, components": OKRidge(kernel="rbf", n_components=3),
}


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("model", WITHOUT_TREES.values(), ids=WITHOUT_TREES)
def test_models_without_trees(round_trip, model, sparse):
    """Neighbours and ridge regression, with dense and with sparse inputs."""
    inputs = sp.csr_array(np.where(X > 0, X, 0.0)) if sparse else X
    model = clone(model).fit(inputs, Y, np.arange(40) % 3)
    loaded = round_trip(model)
    assert_same(fitted(loaded), fitted(model))
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))
    assert_same(loaded.predict_weights(NEW), model.predict_weights(NEW))
    assert loaded.score(X, Y) == model.score(X, Y)


@pytest.mark.parametrize(
    ("model", "inputs"),
    [(OKNeighbors(metric="precomputed"), DISTANCES), (OKRidge(input_kernel="precomputed"), GRAM)],
    ids=["distances", "kernel"],
)
def test_precomputed_inputs(round_trip, model, inputs):
    """A matrix of distances or of a kernel as X."""
    model = clone(model).fit(inputs, Y)
    np.testing.assert_array_equal(round_trip(model).predict(inputs), model.predict(inputs))


BASES = {
    "neighbours": OKNeighbors(3),
    "forest": OKExtraTrees(2),
    "directions": DirectionBase(LinearRegression()),
    "directions of trees": DirectionBase(OKTree(max_depth=2)),
}


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
def test_boosting_of_base_learners(round_trip, base):
    """Models within a model, fitted and as a parameter."""
    model = OKBoost(3, base=base, kernel=RBF(), random_state=0).fit(X, Y)
    loaded = round_trip(model)
    assert repr(loaded.base) == repr(base)
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))
    np.testing.assert_array_equal(loaded.fit(X, Y).predict(NEW), model.predict(NEW))


def test_kernels_and_metrics_on_inputs(round_trip):
    """An input kernel that is an object, with what it has learnt; parameters of a metric."""
    for model in (
        OKNeighbors(input_kernel=Laplacian()),
        OKNeighbors(metric="minkowski", metric_params={"p": 3}),
        OKRidge(input_kernel=2.0 * RBF()),
    ):
        model.fit(X, Y)
        np.testing.assert_array_equal(round_trip(model).predict(NEW), model.predict(NEW))


def test_weights_bootstrap_and_single_precision(round_trip):
    """Weighted, drawn rows of float32."""
    weight = rng.integers(0, 4, size=40)
    for model in (
        make(OKTree).fit(X.astype(np.float32), Y, weight),
        make(OKBagging, max_samples=0.5).fit(X.astype(np.float32), Y, weight),
    ):
        loaded = round_trip(model)
        assert_same(fitted(loaded), fitted(model))
        np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))


def test_names_of_features(round_trip):
    """Names are kept, and compared."""
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    loaded = round_trip(make(OKTree).fit(frame, Y))
    assert list(loaded.feature_names_in_) == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame.rename(columns={"a": "z"}))


def test_without_outputs(round_trip):
    """Totally random trees that were fitted without y."""
    model = make(OKTotallyRandomTrees).fit(X)
    loaded = round_trip(model)
    np.testing.assert_array_equal(loaded.apply(NEW), model.apply(NEW))
    np.testing.assert_array_equal(loaded.tree_kernel(NEW), model.tree_kernel(NEW))


def test_values_of_every_type(round_trip):
    """Everything that fitted attributes may hold."""
    model = Mine().fit(X, Y)
    nested = np.empty(2, dtype=object)
    nested[:] = [[1, "é", None], [True, 2.5, [np.nan]]]
    values = {
        "numbers": [0, -(2**70), 0.1, -0.0, np.nan, np.inf, -np.inf, True, None],
        "text": ["", "é\ud800\0", "\U0001f333"],
        "nested": {"a": (1, [2, (3,)]), 4: {"type": "array"}, None: {}},
        "sets": [{1, "a"}, frozenset({"b", (2, None)}), set()],
        "slice": [slice(1, None, 2), slice(None)],
        "scalars": [np.float64(0.1), np.float32(0.1), np.int8(-1), np.bool_(True), np.str_("é")],
        "dtypes": [np.dtype(">f4"), np.dtype("O"), np.float64, np.int32, np.object_],
        "sparse": [sp.csr_array(EYE), sp.csr_matrix(EYE), sp.csc_array(EYE), sp.csc_matrix(EYE)],
        "empty sparse": sp.csr_array((3, 0)),
        "objects": nested,
        "scalar": np.array(3.0),
        "empty": np.empty((0, 3), order="F"),
        "complex": np.array([1 + 2j, np.nan], dtype=np.complex64),
        "big endian": np.arange(3, dtype=">u4"),
        "half": np.array([0.1, np.inf], dtype=np.float16),
        "missing": np.array([0.0, np.nan, -np.inf]),
        "cube": np.asfortranarray(rng.normal(size=(2, 3, 4))),
        "text array": np.array([["a", "\U0001f333"], ["", "é"]]),
        "bytes array": np.array([b"a\0b", b""]),
    }
    with contextlib.suppress(ValueError):  # SciPy 1.13 has no sparse vectors
        values["sparse vector"] = sp.csr_array(np.array([0, 2, 0, 1]))
    model.values_ = values
    assert_same(round_trip(model).values_, values)
    model.values_ = rng.normal(size=(6, 6))[::2, 1::2]
    np.testing.assert_array_equal(round_trip(model).values_, model.values_)


def test_sparse_matrix_with_unused_entries(round_trip):
    """SciPy allows entries after the last one that indptr counts; they are not saved."""
    model = Mine().fit(X, Y)
    model.matrix_ = sp.csr_array(EYE)
    model.matrix_.data = np.r_[model.matrix_.data, 9.0]
    model.matrix_.indices = np.r_[model.matrix_.indices, 1].astype(np.int32)
    loaded = round_trip(model).matrix_
    assert len(loaded.data) == len(loaded.indices) == loaded.nnz == 3
    np.testing.assert_array_equal(loaded.toarray(), EYE)


def test_sparse_matrix_of_another_byte_order(round_trip):
    """SciPy's compiled code takes the numbers of a sparse matrix as native."""
    model = Mine().fit(X, Y)
    model.matrix_ = sp.csr_array(EYE)
    model.matrix_.data = model.matrix_.data.astype(">f8")
    loaded = round_trip(model).matrix_
    assert loaded.dtype.isnative
    np.testing.assert_array_equal(loaded @ [1.0, 2.0, 3.0], [1.0, 2.0, 3.0])


def test_equal_models_have_equal_files():
    """The order in which a set was filled does not matter."""
    assert list({0, 8}) != list({8, 0})
    assert Encoder().encode({0, 8}, "") == Encoder().encode({8, 0}, "")


def test_predictions_are_prepared(round_trip):
    """A loaded model keeps what every prediction needs, as a fitted one does."""
    loaded = round_trip(make(OKTree, kernel=RBF()).fit(X, Y))
    assert loaded.span_ is loaded.span_


def test_a_shared_array_is_saved_once(round_trip, tmp_path):
    """The Gram matrix of a kernel, and of its fit, is one matrix, before and after."""
    loaded = round_trip(make(OKTree, kernel=Precomputed(GRAM)).fit(X, POSITIONS))
    assert loaded.kernel.gram is loaded.kernel_.gram
    assert (tmp_path / "model.okforest").stat().st_size < 1.9 * GRAM.nbytes
