"""Models take arrays of CuPy, and return predictions where the inputs are.

CuPy is real if there is a GPU, and otherwise a stand-in with an emulated device.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from okforest import OKBoost, OKExtraTrees, OKNeighbors, OKRandomForest, OKTree
from okforest.kernels import RBF, Dirac, Linear


@pytest.fixture
def cp(device):
    """Return CuPy, or what stands for it."""
    return device.xp


def data(n=120, q=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, rng.normal(size=(n, q)) + X[:, :1]


@pytest.mark.parametrize("kernel", [Linear(), RBF(2.0), RBF()], ids=["linear", "rbf", "median"])
@pytest.mark.parametrize("where", ["cpu", "cuda", "auto"])
def test_fit_and_predict(cp, where, kernel):
    """Trees and predictions are the same as for arrays of NumPy, on every device."""
    X, y = data()
    new = data(50, seed=1)[0]
    expected = OKExtraTrees(4, kernel=kernel, random_state=0).fit(X, y)
    model = OKExtraTrees(4, kernel=kernel, device=where, random_state=0)
    model.fit(cp.asarray(X), cp.asarray(y), cp.asarray(np.ones(len(X))))
    assert isinstance(model.outputs_, np.ndarray)
    assert_array_equal(model.trees_.feature, expected.trees_.feature)
    assert_array_equal(model.trees_.threshold, expected.trees_.threshold)
    on_device = cp.asarray(new)
    for found, on_host in (
        (model.apply(on_device), expected.apply(new)),
        (model.predict(on_device), expected.predict(new)),
        (model.predict_top(on_device, 3)[0], expected.predict_top(new, 3)[0]),
        (model.predict_top(on_device, 3)[1], expected.predict_top(new, 3)[1]),
        (model.predict(on_device, candidates=cp.asarray(y[:30])), expected.predict(new, y[:30])),
    ):
        assert isinstance(found, cp.ndarray)
        assert_allclose(found.get(), on_host, rtol=1e-9, atol=1e-12)
        assert found.shape == on_host.shape
    assert_allclose(model.score(cp.asarray(X), cp.asarray(y)), expected.score(X, y), rtol=1e-9)
    assert isinstance(model.predict(new), np.ndarray)
    W = model.weight_matrix(on_device)
    assert_allclose(W.tocsr().toarray(), expected.predict_weights(new).toarray(), rtol=1e-12)
    assert_allclose(W @ y, expected.weight_matrix(new) @ y, rtol=1e-12)
    assert_allclose(model.tree_kernel(on_device).get(), expected.tree_kernel(new), rtol=1e-12)
    for scheme in ("convolve", "average"):
        found = model.predict_kernel(on_device, on_device, scheme=scheme).get()
        assert_allclose(found, expected.predict_kernel(new, scheme=scheme), rtol=1e-9, atol=1e-12)


def test_types(cp):
    """Single precision and bytes are kept, integers become float64, and NaN is missing."""
    X, y = data()
    X[::5, 1] = np.nan
    for values in (X.astype(np.float32), X, (10 * data()[0]).astype(int), np.abs(X[:, 2:]) > 1):
        expected = OKExtraTrees(3, random_state=0).fit(values, y)
        model = OKExtraTrees(3, device="cuda", random_state=0).fit(cp.asarray(values), y)
        assert_array_equal(model.trees_.threshold, expected.trees_.threshold)
        assert_array_equal(model.has_missing_, expected.has_missing_)
        assert_array_equal(model.apply(cp.asarray(values)).get(), expected.apply(values))


def test_errors_are_those_of_numpy(cp):
    """What is wrong is explained in the same words."""
    X, y = data()
    model = OKExtraTrees(3, device="cuda", random_state=0)
    infinite = np.where(X > 2, np.inf, X)
    for bad in (infinite, X[0], X[:1]):
        with pytest.raises(ValueError, match=r"infinity|1D array|minimum of 2"):
            model.fit(cp.asarray(bad), y[: len(bad)])
    with pytest.raises(ValueError, match="contains NaN"):
        model.fit(cp.asarray(X), cp.asarray(np.where(y > 2, np.nan, y)))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(cp.asarray(X), cp.asarray(y[1:]))
    model.fit(cp.asarray(X), cp.asarray(y))
    with pytest.raises(ValueError, match="expecting 3 features"):
        model.predict(cp.asarray(X[:, :2]))


def test_other_models_and_outputs(cp):
    """Labels, single trees, out-of-bag scores, categories, added trees, and models of the CPU."""
    X, y = data()
    labels = (y[:, 0] > 0).astype(int)
    on_device = cp.asarray(X)
    for model in (
        OKExtraTrees(3, kernel=Dirac(), device="cuda", random_state=0),
        OKTree(kernel=Dirac(), splitter="random", device="cuda", random_state=0),
        OKNeighbors(3, kernel=Dirac()),
        OKRandomForest(3, kernel=Dirac(), random_state=0),
    ):
        expected = model.fit(X, labels).predict(X)
        found = model.fit(on_device, cp.asarray(labels)).predict(on_device)
        assert isinstance(found, cp.ndarray)
        assert_array_equal(found.get(), expected)
        assert_array_equal(model.predict_proba(on_device).get(), model.predict_proba(X))
    boost = OKBoost(5, random_state=0)
    expected = boost.fit(X, y).predict(X)
    found = boost.fit(on_device, cp.asarray(y)).predict(on_device)
    assert_allclose(found.get(), expected, rtol=1e-12)
    forest = OKExtraTrees(20, bootstrap=True, oob_score=True, device="cuda", random_state=0)
    score = forest.fit(X, y).oob_score_
    assert_allclose(forest.fit(on_device, y).oob_score_, score, rtol=1e-9)
    forest.set_params(warm_start=True, n_estimators=22).fit(on_device, y)
    assert len(forest.trees_) == 22
    codes = np.column_stack([X[:, 0], np.arange(len(X)) % 4])
    categorical = OKExtraTrees(3, categorical_features=[1], device="auto", random_state=0)
    with pytest.warns(UserWarning, match="categorical"):
        categorical.fit(cp.asarray(codes), cp.asarray(y))
    expected = OKExtraTrees(3, categorical_features=[1], random_state=0).fit(codes, y)
    assert_array_equal(categorical.apply(cp.asarray(codes)).get(), expected.apply(codes))


def test_names_of_outputs(cp):
    """Outputs that were given as a frame come back as one, wherever X is."""
    pd = pytest.importorskip("pandas")
    X, y = data()
    frame = pd.DataFrame(y, columns=list("abcd"))
    model = OKExtraTrees(3, device="cuda", random_state=0).fit(cp.asarray(X), frame)
    found = model.predict(cp.asarray(X))
    pd.testing.assert_frame_equal(found, model.set_params(device="cpu").predict(X))


def test_copies_on_the_device_are_kept(cp):
    """A model that is moved to the GPU after its fit copies the training outputs there once."""
    X, y = data()
    model = OKExtraTrees(3, random_state=0).fit(X, y).set_params(device="cuda")
    model.predict(X)
    features = model.span_.on_device.features
    model.predict(X)
    assert model.span_.on_device.features is features
    assert model.set_params(device="cpu").span_.on_device is None
