"""Trees grown by the kernels of the GPU are those of the CPU.

The kernels run on the host, compiled with an emulated device, and on a GPU if there is one.
"""

from dataclasses import fields, replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from numpy.testing import assert_allclose, assert_array_equal

import cuda_host
from okforest import OKExtraTrees, OKRandomForest
from okforest.datasets import fetch_usps
from okforest.embedding import embed
from okforest.engine import GrowthPlan, GrowthRules, Trees, cuda, grow
from okforest.engine.cuda.growing import grow_on
from okforest.engine.devices import grow_function
from okforest.engine.validity import check_trees
from okforest.kernels import RBF

EXACT = {field.name for field in fields(Trees)} - {"weight", "variance"}
LARGE_ON_HOST = 128  # so that all kinds of nodes occur on few rows


def no_device():
    """Return why there is no GPU, or None."""
    try:
        cuda.Device()
    except cuda.NoDeviceError as error:
        return str(error)
    return None


@pytest.fixture(scope="module")
def gpu():
    if reason := no_device():
        pytest.skip(reason)
    return cuda.Device()


@pytest.fixture(params=["host", pytest.param("gpu", marks=pytest.mark.cuda)])
def grow_there(request):
    """Return a function that grows trees by the kernels."""
    if request.param == "gpu":
        device = request.getfixturevalue("gpu")
        return lambda plan, trees: grow_on(device, plan, trees)
    if not cuda_host.available:
        pytest.skip("g++ is not installed")
    device = cuda_host.HostDevice()
    return lambda plan, trees: grow_on(device, plan, trees, large=LARGE_ON_HOST)


def make_plan(
    n=300, p=10, rank=20, *, seed=0, dtype=np.float32, missing=0.0, weight=None, n_draws=0,
    n_distinct=None, shift=0.0, **rules,
):  # fmt: skip
    """Return a plan on random data; ``rules`` are those of random splits."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 20, size=(n, p)) if dtype == np.uint8 else rng.normal(size=(n, p))
    outputs = rng.normal(size=(n, rank)) + (X[:, :1] > 0) + shift
    if n_distinct is not None:
        outputs = outputs[rng.integers(0, n_distinct, n)]
    X = X.astype(dtype)
    if missing:
        X[rng.random(X.shape) < missing] = np.nan
    weights = {None: np.ones(n), "dyadic": rng.choice([0.0, 0.25, 1.0, 2.5, 8.0], n)}
    return GrowthPlan(
        X=X,
        outputs=outputs,
        gram=False,
        rules=GrowthRules(random_splits=True, **{"max_features": 4, **rules}),
        row_weight=weights[weight],
        n_categories=np.zeros(p, np.int32),
        seed=seed,
        n_draws=n_draws,
    )


def assert_same_trees(plan, grow_there, trees=range(2, 5)):
    expected, found = grow(plan, trees), grow_there(plan, trees)
    for name in EXACT:
        one, other = getattr(expected, name), getattr(found, name)
        assert one.dtype == other.dtype, name
        assert_array_equal(one, other, err_msg=name)
    assert_allclose(found.weight, expected.weight, rtol=1e-12)
    scale = np.repeat(expected.variance[expected.node_offsets[:-1]], np.diff(expected.node_offsets))
    error = np.abs(found.variance - expected.variance)
    rounding = 1e-14 * (np.trace(plan.outputs) if plan.gram else (plan.outputs**2).sum())
    assert (error <= 1e-5 * expected.variance + 1e-9 * scale + rounding).all()
    check_trees(found, plan.X.shape[1])


CASES = {
    "small": {"n": 30},
    "two_rows": {"n": 2},
    "one_row": {"n": 1},
    "middle": {"n": 100},
    "large": {"n": 400},
    "float64": {"dtype": np.float64},
    "bytes": {"dtype": np.uint8},
    "all_features": {"max_features": 10},
    "one_feature": {"max_features": 1},
    "many_features": {"p": 40, "max_features": 20},
    "missing": {"missing": 0.1},
    "mostly_missing": {"missing": 0.9, "p": 4, "max_features": 2},
    "missing_all_features": {"missing": 0.2, "max_features": 10, "dtype": np.float64},
    "weights": {"weight": "dyadic"},
    "weights_and_missing": {"weight": "dyadic", "missing": 0.2},
    "bootstrap": {"n_draws": 300},
    "subsample": {"n_draws": 100, "missing": 0.1},
    "max_depth": {"max_depth": 3},
    "min_samples_leaf": {"min_samples_leaf": 5.0},
    "min_samples_leaf_weights": {"min_samples_leaf": 5.0, "weight": "dyadic"},
    "min_samples_split": {"min_samples_split": 9.0},
    "min_impurity_decrease": {"min_impurity_decrease": 0.05},
    "min_impurity_decrease_weights": {"min_impurity_decrease": 0.05, "weight": "dyadic"},
    "equal_outputs": {"n_distinct": 5},
    "constant_outputs": {"n_distinct": 1},
    "far_from_zero": {"shift": 1000.0},
    "one_column": {"rank": 1},
    "many_columns": {"rank": 300, "max_features": 3},
    "no_outputs": {"rank": 0, "max_features": 1, "stop_when_pure": False},
}


@pytest.mark.parametrize("case", CASES)
def test_trees_are_those_of_the_cpu(grow_there, case):
    """Features, thresholds, nodes and members are equal, for every rule and kind of data."""
    assert_same_trees(make_plan(**CASES[case]), grow_there)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**62),
    n=st.integers(2, 250),
    p=st.integers(1, 12),
    rank=st.integers(1, 70),
    max_features=st.integers(1, 12),
    missing=st.sampled_from([0.0, 0.3]),
    weight=st.sampled_from([None, "dyadic"]),
)
def test_random_plans(grow_there, seed, n, p, rank, max_features, missing, weight):
    """Trees are equal for random sizes and seeds."""
    plan = make_plan(
        n, p, rank, seed=seed, max_features=max_features, missing=missing, weight=weight
    )
    if plan.row_weight.any():
        assert_same_trees(plan, grow_there, range(1))


@pytest.mark.parametrize("n", [60, 300])
def test_gram_matrix(grow_there, n):
    """Outputs may be given by their Gram matrix, of any rank."""
    plan = make_plan(n)
    distances = ((plan.outputs[:, None] - plan.outputs) ** 2).sum(axis=2)
    for gram in (plan.outputs @ plan.outputs.T, np.exp(-distances / 40)):
        assert_same_trees(replace(plan, outputs=gram, gram=True), grow_there, range(2))


def test_few_values(grow_there):
    """Features that are constant in most nodes are skipped, as on the CPU."""
    plan = make_plan(300, 12)
    X = (np.random.default_rng(0).random(plan.X.shape) < 0.02).astype(np.float32)
    assert_same_trees(replace(plan, X=X), grow_there)


def test_order_of_memory(grow_there):
    """Inputs may have any memory layout."""
    plan = make_plan(150)
    assert_same_trees(replace(plan, X=np.asfortranarray(plan.X)), grow_there)


def test_batches_are_joined():
    """If memory is short, fewer trees grow at once, and the result is the same."""
    plan = make_plan(200)
    every = grow_on(cuda_host.HostDevice(), plan, range(5))
    few = grow_on(cuda_host.HostDevice(memory=200_000), plan, range(5))
    for name in EXACT:
        assert_array_equal(getattr(few, name), getattr(every, name))


def test_not_enough_memory():
    """The error has what is needed and what is free."""
    with pytest.raises(MemoryError, match=r"200 rows, 10 features and outputs of 20 .* GiB of the"):
        grow_on(cuda_host.HostDevice(memory=2**16), make_plan(200), range(1))


def test_progress_counts_trees():
    """Progress is reported after each group of trees."""
    seen = []
    grow_on(cuda_host.HostDevice(memory=200_000), make_plan(200), range(5), seen.append)
    assert len(seen) > 1
    assert seen[-1] == 5


UNSUPPORTED = {
    "best splits": {"rules": GrowthRules()},
    "criterion='frobenius'": {"rules": GrowthRules(random_splits=True, frobenius=True)},
    "categorical features": {"n_categories": np.full(10, 3, np.int32)},
    "max_leaf_nodes": {
        "rules": GrowthRules(random_splits=True, order="gain", max_leaf_nodes=5, max_features=2)
    },
}


@pytest.mark.parametrize("what", UNSUPPORTED)
def test_what_is_not_supported(what):
    """device="cuda" raises an error that names it, and "auto" warns and takes the CPU."""
    plan = replace(make_plan(50), **UNSUPPORTED[what])
    with pytest.raises(ValueError, match=f"does not support .*{what}"):
        grow_function("cuda")(plan, range(1))
    if what == "criterion='frobenius'":
        plan = replace(plan, gram=True, outputs=plan.outputs @ plan.outputs.T)
    with pytest.warns(UserWarning, match=f"on the CPU: the GPU does not support .*{what}"):
        found = grow_function("auto")(plan, range(1))
    assert_array_equal(found.feature, grow(plan, range(1)).feature)


def test_without_a_gpu():
    """device="cuda" raises an error that says what is missing, and "auto" warns."""
    if no_device() is None:
        pytest.skip("there is a GPU")
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(cuda.NoDeviceError, match=r"device='cuda' needs"):
        OKExtraTrees(2, device="cuda").fit(X, X)
    with pytest.warns(UserWarning, match=r"device='auto' grows trees on the CPU: .* needs"):
        forest = OKExtraTrees(2, device="auto", random_state=0).fit(X, X)
    assert_array_equal(forest.apply(X), OKExtraTrees(2, random_state=0).fit(X, X).apply(X))


@pytest.mark.cuda
@pytest.mark.usefixtures("gpu")
def test_forest_on_the_gpu():
    """A forest grown on the GPU predicts what one grown on the CPU does."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 20))
    y = rng.normal(size=(3000, 30)) + X[:, :1]
    one, other = (OKExtraTrees(8, device=d, random_state=0).fit(X, y) for d in ("cpu", "cuda"))
    assert_array_equal(one.apply(X), other.apply(X))
    assert_array_equal(one.predict(X[:50]), other.predict(X[:50]))
    with pytest.raises(ValueError, match="best splits"):
        OKRandomForest(2, device="cuda").fit(X, y)


@pytest.mark.cuda
@pytest.mark.parametrize("seed", range(3))
def test_larger_trees_on_the_gpu(gpu, seed):
    """Trees of 20,000 random rows are equal, and the same in every run."""
    plan = make_plan(20_000, 64, 64, seed=seed, max_features=8)
    assert_same_trees(plan, lambda plan, trees: grow_on(gpu, plan, trees))
    one, other = (grow_on(gpu, plan, range(3)) for _ in range(2))
    assert_array_equal(one.variance, other.variance)


@pytest.mark.cuda
@pytest.mark.usefixtures("data_folder")
def test_usps_on_the_gpu(gpu):
    """Trees of handwritten digits, with a factor of the RBF kernel, are equal."""
    images = fetch_usps().data[:800].reshape(800, -1)
    lower = images[:, 128:].astype(np.float64)
    outputs = embed(RBF(7.0), lower, "factor", None, 0).values
    for seed in range(3):
        plan = make_plan(800, 128, 1, seed=seed, max_features=11)
        plan = replace(plan, X=np.ascontiguousarray(images[:, :128]), outputs=outputs)
        assert_same_trees(plan, lambda plan, trees: grow_on(gpu, plan, trees))
