"""Trees with best splits, grown by the kernels of the GPU, are the same as on the CPU.

The kernels run on the host, compiled with an emulated device, and on a GPU if there is one.
"""

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from numpy.testing import assert_allclose, assert_array_equal

import cuda_host
from cuda_host.cases import CASES, EXACT, assert_same_trees, make_plan
from okforest import OKBagging, OKRandomForest, OKTree
from okforest.engine import cuda, grow
from okforest.engine.cuda.best import Team, grow_best_on

CHUNK_ON_HOST = 64  # so that nodes have several chunks on few rows


def gpu():
    try:
        return cuda.Device()
    except cuda.NoDeviceError as error:
        pytest.skip(str(error))


@pytest.fixture(params=["host", pytest.param("gpu", marks=pytest.mark.cuda)])
def grow_there(request):
    """Return a function that grows trees by the kernels."""
    if request.param == "host" and not cuda_host.available:
        pytest.skip("g++ is not installed")
    device = gpu() if request.param == "gpu" else cuda_host.HostDevice()
    return lambda plan, trees: grow_best_on(device, plan, trees, chunk=CHUNK_ON_HOST)


def make_best(**params):
    """Return a plan with best splits."""
    plan = make_plan(**{"n": 100, **params})
    return replace(plan, rules=replace(plan.rules, random_splits=False))


@pytest.mark.parametrize("case", [case for case in CASES if case != "no_outputs"])
def test_trees_are_those_of_the_cpu(grow_there, case):
    """Features, thresholds, nodes and members are equal, for every rule and kind of data."""
    assert_same_trees(make_best(**CASES[case]), grow_there, range(2, 4))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(
    seed=st.integers(0, 2**62),
    n=st.integers(2, 150),
    p=st.integers(1, 12),
    rank=st.integers(1, 32),
    max_features=st.integers(1, 12),
    missing=st.sampled_from([0.0, 0.3]),
    weight=st.sampled_from([None, "dyadic"]),
)
def test_random_plans(grow_there, seed, n, p, rank, max_features, missing, weight):
    """Trees are equal for random sizes and seeds."""
    plan = make_best(
        n=n, p=p, rank=rank, seed=seed, max_features=max_features, missing=missing, weight=weight
    )
    if plan.row_weight.any():
        assert_same_trees(plan, grow_there, range(1))


@pytest.mark.parametrize("max_features", [2, 12])
def test_few_values(grow_there, max_features):
    """Features that are constant in most nodes are skipped, and equal splits are drawn from."""
    plan = make_best(n=200, p=12, max_features=max_features)
    X = (np.random.default_rng(0).random(plan.X.shape) < 0.1).astype(np.float32)
    assert_same_trees(replace(plan, X=X), grow_there, range(2))
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    assert_same_trees(replace(plan, X=X), grow_there, range(2))


def test_classes(grow_there):
    """Indicators of classes, of which many nodes have only one."""
    plan = make_best(n=300, p=6)
    outputs = np.eye(3)[(plan.X[:, 0] > 0).astype(int) + (plan.X[:, 1] > 0.3)]
    assert_same_trees(replace(plan, outputs=outputs), grow_there, range(2))


def test_narrow_nodes(grow_there):
    """Variances have all their digits where outputs are almost equal around a distant mean."""
    plan = make_best(n=100, rank=3)
    centre = np.where(plan.X[:, :1] > 0, 1e4, -1e4)
    rules = replace(plan.rules, max_depth=2, max_features=10)
    near = replace(plan, outputs=centre + 3e-3 * plan.outputs, rules=rules)
    one, other = grow(near, range(1)), grow_there(near, range(1))
    assert (one.variance[1:3] < 1e-10 * one.variance[0]).all()
    assert_allclose(other.variance, one.variance, rtol=1e-8)
    assert_array_equal(other.threshold, one.threshold)
    # Below 1e-7 of their norm, differences count as rounding errors on a GPU, but not on the CPU.
    near = replace(near, outputs=centre + 1e-4 * plan.outputs)
    assert [len(f(near, range(1)).left) for f in (grow, grow_there)] == [7, 3]


def test_extreme_values(grow_there):
    """Thresholds are between adjacent, very large and very small numbers."""
    plan = make_best(n=80, p=4)
    values = np.array([-3e38, -1.0, -1e-40, -0.0, 0.0, 1e-45, 1.0, np.nextafter(1, 2), 3e38])
    X = values[np.random.default_rng(0).integers(0, len(values), plan.X.shape)]
    assert_same_trees(replace(plan, X=X.astype(np.float32)), grow_there, range(2))
    assert_same_trees(replace(plan, X=X), grow_there, range(2))


def test_gram_matrix_and_order_of_memory(grow_there):
    """Outputs may be given by their Gram matrix, and inputs in any memory layout."""
    plan = make_best(n=100)
    gram = replace(plan, outputs=plan.outputs @ plan.outputs.T, gram=True)
    assert_same_trees(replace(gram, X=np.asfortranarray(plan.X)), grow_there, range(2))


@pytest.mark.parametrize(
    ("rank", "n_own", "n_warps"), [(0, 1, 1), (32, 1, 1), (33, 2, 1), (256, 8, 1), (4096, 8, 16)]
)
def test_teams(rank, n_own, n_warps):
    """A thread has at most eight columns, and a team enough of them."""
    team = Team(rank)
    assert (team.own, team.n_warps) == (n_own, n_warps)
    assert team.width >= rank


@pytest.mark.skipif(not cuda_host.available, reason="g++ is not installed")
@pytest.mark.parametrize("rank", [20, 300])
def test_order_of_threads(rank):
    """Trees do not depend on the order in which threads and blocks run."""
    device = cuda_host.HostDevice(backwards=True)
    plan = make_best(rank=rank, missing=0.1, weight="dyadic", max_features=2, min_samples_leaf=3.0)
    assert_same_trees(
        plan, lambda plan, trees: grow_best_on(device, plan, trees, chunk=CHUNK_ON_HOST), range(2)
    )


def test_not_enough_memory():
    """The error has what is needed and what is free."""
    with pytest.raises(MemoryError, match=r"best splits on 200 rows, 10 features .* GiB of the"):
        grow_best_on(cuda_host.HostDevice(memory=2**16), make_best(n=200), range(1))


@pytest.mark.parametrize("Model", [OKRandomForest, OKBagging, OKTree])
def test_models(monkeypatch, Model):
    """Models grow on the device, and report progress."""
    if not cuda_host.available:
        pytest.skip("g++ is not installed")
    monkeypatch.setattr(cuda, "Device", cuda_host.HostDevice)
    plan, seen = make_best(n=100), []
    params = {} if Model is OKTree else {"n_estimators": 3, "callback": seen.append}
    one, other = (
        Model(device=device, random_state=0, max_depth=4, **params).fit(plan.X, plan.outputs)
        for device in ("cpu", "cuda")
    )
    for name in EXACT:
        assert_array_equal(getattr(one.trees_, name), getattr(other.trees_, name))
    if params:
        assert seen[-3:] == [1, 2, 3]


@pytest.mark.cuda
@pytest.mark.parametrize("seed", range(2))
def test_larger_trees_on_the_gpu(seed):
    """Trees of 20,000 random rows are equal, and the same in every run."""
    device = gpu()
    plan = make_best(n=20_000, p=64, rank=64, seed=seed, max_features=8, n_draws=20_000)
    assert_same_trees(plan, lambda plan, trees: grow_best_on(device, plan, trees))
    one, other = (grow_best_on(device, plan, range(3)) for _ in range(2))
    assert_array_equal(one.variance, other.variance)
