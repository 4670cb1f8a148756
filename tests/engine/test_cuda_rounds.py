"""Rounds of boosting by the kernels of the GPU are the same as on the CPU.

The kernels run on the host, compiled with an emulated device, and on a GPU if there is one.
"""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import cuda_host
from okforest import OKBoost, OKRidge
from okforest.engine import check_trees, cuda
from okforest.kernels import RBF

EXACT = ("feature", "left", "threshold", "missing_left", "begin", "end", "members", "node_offsets")


@pytest.fixture(params=["host", pytest.param("gpu", marks=pytest.mark.cuda)])
def device(request, monkeypatch):
    """Grow on an emulated device, or on a GPU."""
    if request.param == "gpu":
        try:
            cuda.Device()
        except cuda.NoDeviceError as error:
            pytest.skip(str(error))
    elif not cuda_host.available:
        pytest.skip("g++ is not installed")
    else:
        monkeypatch.setattr(cuda, "Device", cuda_host.HostDevice)
    # Small chunks, so that nodes have several of them on few rows.
    monkeypatch.setattr(cuda, "Rounds", partial(cuda.Rounds, chunk=64))
    return request.param


def make_data(n=300, p=8, rank=20, dtype=np.float32, missing=0.0, n_distinct=None, few=False):
    """Return inputs and outputs that depend on them."""
    rng = np.random.default_rng(n + p + rank)
    X = rng.normal(size=(n, p))
    Y = rng.normal(size=(n, rank)) + 2 * (X[:, :1] > 0) + X[:, 1:2]
    if n_distinct is not None:
        Y = Y[(X[:, 0] > 0) * 1 + (X[:, 1] > 0.5) * (n_distinct > 2)]
    if few:
        X = (rng.random((n, p)) < 0.03).astype(dtype)
    X = X.astype(dtype)
    X[rng.random(X.shape) < missing] = np.nan
    return X, Y


def boost(X, Y, device, sample_weight=None, **params):
    params = {"max_features": 3, "max_splits": 6, "splitter": "random", **params}
    model = OKBoost(4, learning_rate=0.3, random_state=1, device=device, **params)
    return model.fit(X, Y, sample_weight)


def assert_same_models(one, other, X):
    for name in EXACT:
        found, expected = getattr(other.trees_, name), getattr(one.trees_, name)
        assert found.dtype == expected.dtype, name
        assert_array_equal(found, expected, err_msg=name)
    assert_allclose(other.trees_.weight, one.trees_.weight, rtol=1e-12)
    scale = one.trees_.variance.max()
    assert_allclose(other.trees_.variance, one.trees_.variance, rtol=1e-9, atol=1e-12 * scale)
    assert_array_equal(other.training_leaves_, one.training_leaves_)
    assert other.training_leaves_.dtype == one.training_leaves_.dtype
    for name in ("leaf_means_", "train_loss_", "validation_loss_", "oob_improvement_", "scales_"):
        assert hasattr(one, name) == hasattr(other, name)
        if hasattr(one, name):
            expected = getattr(one, name)
            atol = 1e-12 * np.abs(expected).max()
            assert_allclose(getattr(other, name), expected, rtol=1e-9, atol=atol, err_msg=name)
    assert_allclose(other.predict(X), one.predict(X), rtol=1e-9, atol=1e-12)
    check_trees(other.trees_, X.shape[1])
    other.check_state()


CASES = {
    "plain": {},
    "by_gain": {"growth": "gain"},
    "two_rows": {"n": 2, "embedding": "features"},
    "few_rows": {"n": 6, "max_splits": 20, "embedding": "features"},
    "one_chunk": {"n": 40},
    "many_rows": {"n": 1200, "max_splits": 4},
    "float64": {"dtype": np.float64},
    "all_features": {"max_features": None},
    "one_feature": {"max_features": 1},
    "one_column": {"rank": 1},
    "three_groups": {"rank": 90},
    "many_columns": {"rank": 300},
    "many_features": {"p": 50, "max_features": 40},
    "all_of_many_features": {"p": 40, "max_features": None},
    "missing": {"missing": 0.2},
    "missing_many_features": {"missing": 0.3, "p": 30, "max_features": 20},
    "missing_all_features": {"missing": 0.5, "max_features": None, "growth": "gain"},
    "weights": {"weighted": True},
    "weights_and_missing": {"weighted": True, "missing": 0.3, "growth": "gain"},
    "subsample": {"subsample": 0.5},
    "subsample_weights": {"subsample": 0.4, "weighted": True},
    "held_out": {"n_iter_no_change": 10, "validation_fraction": 0.3},
    "max_depth": {"max_depth": 2},
    "min_samples_leaf": {"min_samples_leaf": 40},
    "min_samples_leaf_of_a_sample": {"min_samples_leaf": 0.1, "subsample": 0.6},
    "two_outputs": {"n_distinct": 2},
    "four_outputs": {"n_distinct": 4, "max_splits": 12},
    "few_values": {"few": True, "p": 30},
    "few_values_by_gain": {"few": True, "p": 30, "growth": "gain"},
    "max_features_and_leaf": {"max_features": 1, "min_samples_leaf": 60, "growth": "gain"},
    "unlimited": {"n": 40, "max_splits": 200},
}
DATA = ("n", "p", "rank", "dtype", "missing", "n_distinct", "few")


@pytest.mark.parametrize("case", CASES)
def test_rounds_are_those_of_the_cpu(device, case):
    """Trees, leaves, losses and predictions are equal, for every rule and kind of data."""
    params = dict(CASES[case])
    X, Y = make_data(**{name: params.pop(name) for name in DATA if name in params})
    weight = None
    if params.pop("weighted", False):
        weight = np.random.default_rng(0).choice([0.0, 0.25, 1.0, 2.5, 8.0], len(X))
    one, other = (boost(X, Y, name, weight, **params) for name in ("cpu", "cuda"))
    assert_same_models(one, other, X)


@pytest.mark.skipif(not cuda_host.available, reason="g++ is not installed")
def test_order_of_threads(monkeypatch):
    """Rounds do not depend on the order in which threads and blocks run."""
    monkeypatch.setattr(cuda, "Device", partial(cuda_host.HostDevice, backwards=True))
    monkeypatch.setattr(cuda, "Rounds", partial(cuda.Rounds, chunk=64))
    X, Y = make_data(missing=0.2, few=True, p=30)
    weight = np.random.default_rng(0).choice([0.25, 1.0, 8.0], len(X))
    for params in ({"growth": "gain"}, {"max_features": None}):
        one, other = (boost(X, Y, name, weight, **params) for name in ("cpu", "cuda"))
        assert_same_models(one, other, X)


def test_narrow_nodes(device):
    """Variances have all their digits where outputs are almost equal around a distant mean."""
    X, Y = make_data(200)
    Y = np.where(X[:, :1] > 0, 1e4, -1e4) + 1e-3 * Y
    X[:, 1:3] = X[:, :1] > 0
    one, other = (boost(X, Y, name, max_features=None, max_splits=3) for name in ("cpu", "cuda"))
    assert (one.trees_.variance[1:3] < 1e-10 * one.trees_.variance[0]).all()
    assert_allclose(other.trees_.variance[:7], one.trees_.variance[:7], rtol=1e-9)
    assert_same_models(one, other, X)


def test_equal_priorities(device):
    """Of two nodes of equal variance, the left one is split first."""
    X, Y = make_data(100)
    X, Y = np.r_[X, X], np.r_[Y + 20, -Y - 20]
    X[:, 0] = np.repeat([0.0, 1.0], 100)
    one, other = (boost(X, Y, name, max_features=None, max_splits=2) for name in ("cpu", "cuda"))
    assert one.trees_.left[0] == 1
    assert one.trees_.left[1] == 3
    assert_same_models(one, other, X)


def test_warm_start(device):
    """Rounds are added to rounds of another fit, on either device."""
    X, Y = make_data()
    one = boost(X, Y, "cpu")
    other = boost(X, Y, "cuda", warm_start=True)
    assert_same_models(one, other, X)
    one = OKBoost(**{**one.get_params(), "n_estimators": 7}).fit(X, Y)
    assert_same_models(one, other.set_params(n_estimators=7).fit(X, Y), X)


def test_factor_of_a_kernel(device):
    """Outputs with a kernel are boosted by a factor of its Gram matrix."""
    X, Y = make_data(150)
    params = {"kernel": RBF(3.0), "embedding": "factor"}
    one, other = (boost(X, Y, name, **params) for name in ("cpu", "cuda"))
    assert_same_models(one, other, X)


UNSUPPORTED = {
    "best splits in boosting": {"splitter": "best"},
    "a Gram matrix": {"kernel": RBF(1.0), "embedding": "gram"},
    "categorical features": {"categorical_features": [0]},
    "more than 255 splits": {"max_splits": 300},
}


@pytest.mark.parametrize("what", UNSUPPORTED)
def test_what_is_not_supported(what):
    """device="cuda" raises an error that names it, and "auto" warns and takes the CPU."""
    X, Y = make_data(400, rank=2)
    if "categorical" in what:
        X[:, 0] = X[:, 0] > 0
    with pytest.raises(ValueError, match=f"device='cuda' does not support .*{what}"):
        boost(X, Y, "cuda", **UNSUPPORTED[what])
    with pytest.warns(UserWarning, match=f"on the CPU: the GPU does not support .*{what}"):
        other = boost(X, Y, "auto", **UNSUPPORTED[what])
    assert_array_equal(other.predict(X), boost(X, Y, "cpu", **UNSUPPORTED[what]).predict(X))


def test_sparse_inputs_are_not_supported():
    """Sparse inputs are an error."""
    sp = pytest.importorskip("scipy.sparse")
    X, Y = make_data(50)
    with pytest.raises(ValueError, match="device='cuda' does not support sparse inputs"):
        boost(sp.csr_array(X), Y, "cuda")


def test_other_base_learners_are_not_supported():
    """Only trees are boosted on a GPU."""
    X, Y = make_data(50)
    with pytest.raises(ValueError, match=r"device='cuda' grows trees; other base .* Set base="):
        boost(X, Y, "cuda", base=OKRidge())
    with pytest.warns(UserWarning, match="device='auto' grows trees; other base learners run on"):
        boost(X, Y, "auto", base=OKRidge())


def test_not_enough_memory(monkeypatch):
    """The error has what is needed and what is free, and "auto" takes the CPU."""
    monkeypatch.setattr(cuda, "Device", partial(cuda_host.HostDevice, memory=2**16))
    X, Y = make_data()
    with pytest.raises(MemoryError, match=r"Boosting on 300 rows, 8 features and .* 20 dimensions"):
        boost(X, Y, "cuda")
    with pytest.warns(UserWarning, match=r"on the CPU: Boosting on 300 rows"):
        boost(X, Y, "auto")
