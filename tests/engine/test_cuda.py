"""Trees grown by the kernels of the GPU are the same as on the CPU.

The kernels run on the host, compiled with an emulated device, and on a GPU if there is one.
"""

import sys
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from numpy.testing import assert_allclose, assert_array_equal

import cuda_host
from cuda_host.cases import CASES, EXACT, assert_same_trees, make_plan
from okforest import OKExtraTrees
from okforest.datasets import fetch_usps
from okforest.embedding import embed
from okforest.engine import GrowthRules, cuda, grow
from okforest.engine.cuda.growing import Grower, grow_on, unsupported
from okforest.engine.cuda.layout import CONSTANTS
from okforest.engine.devices import grow_function
from okforest.kernels import RBF

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
def device(request):
    """Return what runs the kernels."""
    if request.param == "gpu":
        return request.getfixturevalue("gpu")
    if not cuda_host.available:
        pytest.skip("g++ is not installed")
    return cuda_host.HostDevice()


@pytest.fixture
def grow_there(device):
    """Return a function that grows trees by the kernels."""
    options = {} if isinstance(device, cuda.Device) else {"large": LARGE_ON_HOST}
    return lambda plan, trees: grow_on(device, plan, trees, **options)


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


@pytest.mark.parametrize("n", [150, 300])
@pytest.mark.parametrize("max_features", [6, 16])
def test_equal_splits_with_missing_values(grow_there, n, max_features):
    """Of splits that are equal up to the side of missing values, both devices choose the same."""
    plan = make_plan(n, 8, missing=0.15, max_features=max_features)
    bits = np.where(np.isnan(plan.X), plan.X, plan.X > 0)
    X = np.hstack([bits, 1 - bits]).astype(np.float32)
    plan = replace(plan, X=X, n_categories=np.zeros(16, np.int32))
    assert_same_trees(plan, grow_there)


def test_gains_of_equal_splits(grow_there):
    """Gains of equal splits are exact in bootstrap samples: they decide whether a node splits."""
    for decrease in (0.05, 0.1, 0.15, 0.2):
        plan = make_plan(300, 5, n_draws=300, max_features=10, min_impurity_decrease=decrease)
        X = np.hstack([plan.X > 0, plan.X <= 0]).astype(np.float32)
        plan = replace(plan, X=X, n_categories=np.zeros(10, np.int32))
        assert_same_trees(plan, grow_there)


@pytest.mark.parametrize("n", [150, 400])
def test_further_features_with_missing_values(grow_there, n):
    """A node that no candidate splits takes a further feature, which may have missing values."""
    plan = make_plan(n, 12, missing=0.3, max_features=2)
    X = plan.X.copy()
    X[:, :9] = 1.0
    assert_same_trees(replace(plan, X=X), grow_there)


def test_outputs_in_clusters(grow_there):
    """Variances within clusters are exact, though their means are far from the mean of all rows."""
    plan = make_plan(300)
    cluster = np.arange(300)[:, None] % 2
    X = (plan.X + 10 * cluster).astype(np.float32)
    assert_same_trees(replace(plan, X=X, outputs=0.1 * plan.outputs + 10 * cluster), grow_there)


def test_pairs_that_must_not_be_split(grow_there):
    """Rounding errors of large outputs do not split two rows that are too few for two leaves."""
    plan = make_plan(40, rank=2000, n_draws=8000, min_samples_leaf=200.0)
    plan = replace(plan, outputs=np.sign(plan.outputs))
    assert_same_trees(plan, grow_there)


def test_order_of_memory(grow_there):
    """Inputs may have any memory layout."""
    plan = make_plan(150)
    assert_same_trees(replace(plan, X=np.asfortranarray(plan.X)), grow_there)


@pytest.mark.skipif(not cuda_host.available, reason="g++ is not installed")
def test_order_of_threads():
    """Trees do not depend on the order in which threads and blocks run."""
    device = cuda_host.HostDevice(backwards=True)
    plan = make_plan(missing=0.1, weight="dyadic")
    assert_same_trees(
        plan, lambda plan, trees: grow_on(device, plan, trees, large=LARGE_ON_HOST), range(1)
    )


@pytest.mark.skipif(not cuda_host.available, reason="g++ is not installed")
@pytest.mark.parametrize("most_chunks", [3, 256])
def test_several_chunks(monkeypatch, most_chunks):
    """Every chunk of a large node is taken once, in whatever order."""
    monkeypatch.setitem(CONSTANTS, "CHUNK", 64)
    monkeypatch.setitem(CONSTANTS, "MOST_CHUNKS", most_chunks)
    device = cuda_host.HostDevice()
    for options in ({}, {"missing": 0.1, "weight": "dyadic", "max_features": 20}):
        assert_same_trees(
            make_plan(500, 30, **options),
            lambda plan, trees: grow_on(device, plan, trees, large=LARGE_ON_HOST),
        )


def test_batches_are_joined():
    """If memory is short, fewer trees grow at once, and the result is the same."""
    plan = make_plan(200)
    every = grow_on(cuda_host.HostDevice(), plan, range(5))
    few = grow_on(cuda_host.HostDevice(memory=200_000), plan, range(5))
    for name in EXACT:
        assert_array_equal(getattr(few, name), getattr(every, name))


def test_not_enough_memory():
    """The error has what is needed and what is free."""
    with pytest.raises(MemoryError, match=r"200 rows and 10 features takes .* GiB of the GPU's"):
        grow_on(cuda_host.HostDevice(memory=2**16), make_plan(200), range(1))


@pytest.mark.skipif(not cuda_host.available, reason="g++ is not installed")
@pytest.mark.parametrize("n_trees", [1, 7, 32, 40])
@pytest.mark.parametrize("weight", [None, "dyadic"])
def test_trees_at_once(n_trees, weight):
    """As many trees grow at once as fit beside inputs and outputs, at most 32."""
    plan = make_plan(200, rank=400, weight=weight)
    grower = Grower(cuda_host.HostDevice(), plan)
    sizes, n_workers = grower.sizes, grower.n_workers
    data = sizes.output_bytes(weight is not None) + sizes.input_and_row_bytes(n_workers)
    need = data + (n_trees + 0.5) * sizes.batch_bytes(len(grower.rows), 1)
    assert Grower(cuda_host.HostDevice(memory=int(need / 0.9)), plan).at_once == min(32, n_trees)


@pytest.mark.parametrize("rank", [20, 400])  # less than a tree takes, and more
@pytest.mark.parametrize("weight", [None, "dyadic"])
def test_outputs_that_do_not_fit(device, monkeypatch, weight, rank):
    """Outputs that do not fit stay on the host, with a warning, and the trees are the same."""
    plan = make_plan(300, rank=rank, weight=weight)
    grower = Grower(device, plan)
    sizes = grower.sizes
    rest = sizes.input_and_row_bytes(grower.n_workers) + sizes.batch_bytes(300, 1)
    free = (rest + sizes.output_bytes(weight is not None) / 2) / 0.9
    monkeypatch.setattr(device, "free_memory", lambda: int(free))

    def grow_elsewhere(plan, trees):
        with pytest.warns(UserWarning, match="outputs stay in the memory of the host"):
            return grow_on(device, plan, trees)

    assert_same_trees(plan, grow_elsewhere, range(1))


def test_many_candidates(grow_there):
    """Up to 255 features may be candidates, if no value is missing."""
    assert_same_trees(make_plan(200, 130, 4, max_features=128), grow_there, range(1))
    assert_same_trees(make_plan(200, 255, 4, max_features=255), grow_there, range(1))


@pytest.mark.skipif(not cuda_host.available, reason="g++ is not installed")
@pytest.mark.parametrize("case", ["plain", "natural and bootstrap", "missing, weighted and many"])
def test_known_constants(case):
    """Kernels that are compiled for a plan grow the trees of those that read it."""
    plan = {
        "plain": make_plan(),
        "natural and bootstrap": make_plan(max_features=10, n_draws=300),
        "missing, weighted and many": make_plan(
            300, 20, missing=0.2, weight="dyadic", max_features=18
        ),
    }[case]
    one, other = (
        grow_on(cuda_host.HostDevice(known=known), plan, range(2), large=LARGE_ON_HOST)
        for known in (False, True)
    )
    for name in (*EXACT, "variance", "weight"):
        assert_array_equal(getattr(one, name), getattr(other, name))


def test_rows_drawn_too_often():
    """A row that is drawn more often than float16 counts is an error that "auto" understands."""
    plan = replace(make_plan(20, n_draws=3000), row_weight=np.r_[1e9, np.ones(19)])
    with pytest.raises(cuda.NoDeviceError, match=r"drawn 3,000 times .* at most 2,048"):
        grow_on(cuda_host.HostDevice(), plan, range(1))


def test_progress_counts_trees():
    """Progress is reported after each group of trees."""
    seen = []
    grow_on(cuda_host.HostDevice(memory=200_000), make_plan(200), range(5), seen.append)
    assert len(seen) > 1
    assert seen[-1] == 5


UNSUPPORTED = {
    "best splits with more than 65,534 features": {
        "X": np.zeros((50, 65_535), dtype=np.float32),
        "n_categories": np.zeros(65_535, np.int32),
        "rules": GrowthRules(max_features=2),
    },
    "best splits with outputs of more than 2,048 dimensions": {
        "outputs": np.eye(50, 2049),
        "rules": GrowthRules(max_features=2),
    },
    "more than 255 candidate features": {
        "X": np.zeros((50, 256), dtype=np.float32),
        "n_categories": np.zeros(256, np.int32),
        "rules": GrowthRules(random_splits=True, max_features=256),
    },
    "more than 127 candidate features of inputs with missing values": {
        "X": np.full((50, 128), np.nan, dtype=np.float32),
        "n_categories": np.zeros(128, np.int32),
        "rules": GrowthRules(random_splits=True, max_features=128),
    },
    "criterion='frobenius'": {"rules": GrowthRules(random_splits=True, frobenius=True)},
    "ignore_constant=True": {"rules": GrowthRules(random_splits=True, ignore_constant=True)},
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


def test_most_candidates_are_supported():
    """As many candidate features as the kernels have sums for are supported."""
    assert unsupported(make_plan(50, 255, max_features=255)) is None
    assert unsupported(make_plan(50, 300, max_features=255)) is None
    assert unsupported(make_plan(50, 127, missing=0.1, max_features=127)) is None


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


def test_missing_cupy_is_named_with_its_extras(monkeypatch):
    """CuPy has a package for each version of CUDA, and so have we an extra."""
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(cuda.NoDeviceError, match=r"needs CuPy .*\[cuda\].* is 'cuda12'"):
        cuda.Device()


@pytest.mark.cuda
@pytest.mark.usefixtures("gpu")
def test_forest_on_the_gpu():
    """A forest grown on the GPU predicts what one grown on the CPU does."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 20))
    y = rng.normal(size=(3000, 30)) + X[:, :1]
    one, other = (OKExtraTrees(8, device=d, random_state=0).fit(X, y) for d in ("cpu", "cuda"))
    assert_array_equal(one.apply(X), other.apply(X))
    assert_allclose(one.predict(X[:50]), other.predict(X[:50]), rtol=1e-12, atol=1e-14)


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
