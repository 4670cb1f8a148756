"""Predictions on a GPU are the same as on the CPU: means, losses, and nearest candidates.

They run on the host, with an emulated device, and on a GPU if there is one.
"""

import pickle
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import cuda_host
from okforest import OKExtraTrees, OKRandomForest, load, save
from okforest.decode import Candidates, Sharpened, Support
from okforest.decode.nearest import smallest, smallest_by_groups
from okforest.engine import devices
from okforest.kernels import RBF, Dirac, Laplacian, Linear
from okforest.weights import on_device

KERNELS = {"linear": Linear(), "rbf": RBF(2.0), "laplacian": Laplacian(5.0)}


def data(n=100, q=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, rng.normal(size=(n, q)) + X[:, :1]


def both(model, X, y):
    """Return a model that predicts on the CPU, and the same one for the GPU."""
    model.fit(X, y)
    other = pickle.loads(pickle.dumps(model)).set_params(device="cuda")
    return model, other


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("k", [1, 3])
def test_candidates(device, name, k):
    """The nearest candidates are the same as on the CPU, and so are losses up to rounding."""
    X, y = data()
    new, candidates = data(60, seed=1)
    candidates = np.concatenate([candidates, candidates[:20], y])  # some are repeated
    cpu, gpu = both(OKExtraTrees(5, kernel=KERNELS[name], random_state=0), X, y)
    assert_array_equal(gpu.predict(new, candidates), cpu.predict(new, candidates))
    expected, losses = cpu.predict_top(new, k, candidates)
    found, found_losses = gpu.predict_top(new, k, candidates)
    assert isinstance(found, np.ndarray)
    assert_array_equal(found, expected)
    assert_allclose(found_losses, losses, rtol=1e-9, atol=1e-12)
    on_gpu = device.xp.asarray(candidates)
    assert_array_equal(gpu.predict(new, on_gpu), expected[:, 0])
    assert_array_equal(cpu.predict(new, on_gpu), expected[:, 0])


@pytest.mark.parametrize("name", KERNELS)
def test_training_outputs_and_scores(device, name):
    """So are predictions by the decoder of the model, and losses in feature space."""
    X, y = data()
    new, truth = data(60, seed=1)
    model = OKRandomForest(5, kernel=KERNELS[name], min_samples_leaf=3, random_state=0)
    cpu, gpu = both(model, X, y)
    assert gpu.span_.on_device is not None
    assert_allclose(gpu.predict(new), cpu.predict(new), rtol=1e-12, atol=1e-14)
    assert_allclose(gpu.score(new, truth), cpu.score(new, truth), rtol=1e-10)
    found = gpu.span_.losses(gpu.weight_matrix(new), truth)
    expected = cpu.span_.losses(cpu.weight_matrix(new), truth)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_numbers(device):
    """Outputs may be numbers, of shape (n,)."""
    X, y = data(q=1)
    cpu, gpu = both(OKExtraTrees(5, kernel=RBF(1.0), random_state=0), X, y[:, 0])
    candidates = np.linspace(-2, 2, 30)
    assert_array_equal(gpu.predict(X[:20], candidates), cpu.predict(X[:20], candidates))
    assert gpu.predict(X[:20]).shape == (20,)


def test_other_decoders(device):
    """Decoders that limit candidates, or sharpen weights, and kernels that need the CPU."""
    X, y = data()
    candidates = data(30, seed=1)[1]
    for model in (
        OKRandomForest(5, kernel=RBF(2.0), decoder=Support(), random_state=0),
        OKRandomForest(5, kernel=RBF(2.0), decoder=Sharpened(power=2.0), random_state=0),
        OKRandomForest(5, kernel=Linear() + RBF(2.0), random_state=0),
    ):
        cpu, gpu = both(model, X, y)
        assert_array_equal(gpu.predict(X[:20]), cpu.predict(X[:20]))
        expected = cpu.predict(X[:20], candidates)
        assert_array_equal(gpu.predict(X[:20], candidates), expected)
    labels = np.where(y[:, 0] > 0, "a", "b")
    cpu, gpu = both(OKRandomForest(5, kernel=Dirac(), random_state=0), X, labels)
    assert_array_equal(gpu.predict(X[:20]), cpu.predict(X[:20]))


def test_parts(device, monkeypatch):
    """Candidates and predictions are taken in parts, with the same result."""
    X, y = data(60)
    candidates = np.concatenate([data(90, seed=1)[1]] * 2)
    for kernel in (Linear(), RBF(2.0)):
        cpu, gpu = both(OKExtraTrees(5, kernel=kernel, random_state=0), X, y)
        expected, losses = cpu.predict_top(X, 4, candidates)
        with monkeypatch.context() as patch:
            patch.setattr(on_device, "ROWS", 25)
            patch.setattr(on_device, "COLUMNS", 17)
            patch.setattr(on_device, "BLOCK_BYTES", 5000)
            patch.setattr("okforest.decode.nearest.ROWS", 40)
            patch.setattr("okforest.decode.search.BLOCK", 40)
            found, found_losses = gpu.predict_top(X, 4, candidates)
            score = gpu.score(X, y)
        assert_array_equal(found, expected)
        assert_allclose(found_losses, losses, rtol=1e-9, atol=1e-12)
        assert_allclose(score, cpu.score(X, y), rtol=1e-10)


def test_too_few_different_candidates(device):
    """The error is the same as on the CPU."""
    X, y = data()
    _, gpu = both(OKExtraTrees(5, random_state=0), X, y)
    with pytest.raises(ValueError, match="there are 2 different candidates"):
        gpu.predict_top(X, 3, [[0.0] * 4, [1.0] * 4, [0.0] * 4])
    with pytest.raises(ValueError, match="has 3 values in each output"):
        gpu.predict(X, np.zeros((5, 3)))


def test_not_enough_memory(monkeypatch):
    """device="cuda" raises an error with what is needed, and "auto" takes the CPU."""
    X, y = data()
    candidates = data(30, seed=1)[1]
    small = cuda_host.ArrayDevice(memory=300_000)  # the forest fits
    monkeypatch.setitem(sys.modules, "cupy", small.xp)
    monkeypatch.setattr(devices, "gpu", lambda: small)
    for kernel in (Linear(), RBF(2.0)):
        cpu, gpu = both(OKExtraTrees(5, kernel=kernel, random_state=0), X, y)
        with pytest.raises(MemoryError, match=r"GiB of the GPU's memory"):
            gpu.predict(X, candidates)
        gpu.set_params(device="auto")
        assert_array_equal(gpu.predict(X, candidates), cpu.predict(X, candidates))


def test_without_a_gpu(monkeypatch, tmp_path):
    """A model for the GPU is saved to the same file, and predicts on a machine without one."""
    monkeypatch.setattr(devices, "gpu", lambda: None)
    X, y = data()
    cpu, gpu = both(OKExtraTrees(5, kernel=RBF(2.0), random_state=0), X, y)
    save(gpu, tmp_path / "model.okf")
    loaded = load(tmp_path / "model.okf")
    assert loaded.device == "cuda"
    assert_array_equal(loaded.predict(X), cpu.predict(X))
    assert_array_equal(loaded.set_params(device="cpu").predict(X), cpu.predict(X))


@pytest.mark.parametrize("k", [1, 2, 7])
@pytest.mark.parametrize("width", [1, 127, 128, 129, 1000])
def test_smallest_by_groups(k, width):
    """The places are the same as by sorting, the first of equals, with infinite values, too."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 30, (40, width)).astype(float)
    values[:10] = rng.integers(0, 2, (10, width))
    values[rng.random(values.shape) < 0.1] = np.inf
    k = min(k, width)
    expected = np.argsort(values, axis=1, kind="stable")[:, :k]
    assert_array_equal(smallest_by_groups(values, k), expected)
    assert_array_equal(smallest(values, k), expected)


def test_candidates_given_to_the_decoder(device):
    """Candidates of the decoder may be on the GPU."""
    X, y = data()
    candidates = data(30, seed=1)[1]
    cpu, gpu = both(OKExtraTrees(5, random_state=0), X, y)
    gpu.set_params(decoder=Candidates(device.xp.asarray(candidates)))
    assert_array_equal(gpu.predict(X), cpu.predict(X, candidates))


def test_equal_values_in_different_groups():
    """The first of equals is taken, though a later group has a smaller minimum."""
    values = np.full((1, 1000), 9.0)
    values[0, [256, 640, 641]] = [1.0, 0.0, 1.0]
    assert_array_equal(smallest_by_groups(values, 2), [[640, 256]])


def test_candidates_at_once_are_planned():
    """At least one candidate is searched at a time, or an error has what is needed and free."""

    class Sums:
        n_terms = 0

        def __len__(self):
            return 10

    def planned(memory):
        return on_device.candidates_at_once(cuda_host.HostDevice(memory), Sums(), width=4, k=1)

    counts = []
    for memory in range(1000, 200_000, 100):
        try:
            counts.append(planned(memory))
            assert counts[-1] >= 1
        except MemoryError:
            counts.append(0)
    assert {0, 1, 2} <= set(counts)
    assert counts == sorted(counts)
    assert planned(2**40) == on_device.COLUMNS
    with pytest.raises(MemoryError, match=r"for 10 predictions takes at least 0.0 GiB; 0.0 GiB of"):
        planned(1000)
