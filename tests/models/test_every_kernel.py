"""Every public model with every public kernel: all methods run, and files restore the model."""

import inspect

import numpy as np
import pytest

import okforest
from okforest import OKModel, kernels
from okforest.kernels import Linear, OutputKernel
from okforest.survival import Survival
from okforest.uncertainty import ConformalIntervals, ConformalSets

rng = np.random.default_rng(0)
N = 16
X = rng.normal(size=(N, 3))
NEW = rng.normal(size=(100, 3))  # many more than outputs have features
VECTORS = X[:, :2] @ rng.normal(size=(2, 2)) + 0.1 * rng.normal(size=(N, 2))
RANKS = np.argsort(np.argsort(rng.normal(size=(N, 3)) + X, axis=1), axis=1) + 1
WORDS = np.array(["".join(rng.choice(list("ab"), 5)) for _ in range(N)])
RING = np.roll(np.eye(N), 1, axis=1) + np.roll(np.eye(N), -1, axis=1)
GRAM = VECTORS @ VECTORS.T
LABELS = np.array(["a", "b", "c"])[np.arange(N) % 3]
PATHS = [{"a", label} for label in LABELS]
SETS = np.c_[X > 0, X[:, 0] < 0].astype(int)
TIMES = np.rec.fromarrays([np.arange(N) % 3 > 0, 1.0 + np.arange(N)], names="event,time")
SERIES = [np.cumsum(rng.normal(size=4 + i % 3)) for i in range(N)]
PAIRS = [(float(x), label) for x, label in zip(VECTORS[:, 0], LABELS, strict=True)]


class Fortran(Linear):
    """A user's kernel whose arrays are in Fortran order."""

    def __call__(self, y, z=None):
        return np.asfortranarray(super().__call__(y, z))

    def features(self, y):
        return np.asfortranarray(super().features(y))


class Strided(Linear):
    """A user's kernel whose arrays are every other column of larger ones."""

    def __call__(self, y, z=None):
        return np.repeat(super().__call__(y, z), 2, axis=1)[:, ::2]

    def features(self, y):
        return np.repeat(super().features(y), 2, axis=1)[:, ::2]


CASES = {
    "Linear": (Linear(), VECTORS),
    "Linear, Fortran order": (Linear(), np.asfortranarray(VECTORS)),
    "Linear, strided": (Linear(), np.repeat(VECTORS, 2, axis=1)[:, ::2]),
    "Fortran": (Fortran(), VECTORS),
    "Strided": (Strided(), VECTORS),
    "RBF": (kernels.RBF(), np.asfortranarray(VECTORS)),
    "Laplacian": (kernels.Laplacian(), VECTORS[::-1]),
    "Polynomial": (kernels.Polynomial(), VECTORS),
    "Mahalanobis": (kernels.Mahalanobis(), VECTORS),
    "Dirac": (kernels.Dirac(), LABELS),
    "Precomputed": (kernels.Precomputed(np.asfortranarray(GRAM)), np.arange(N)),
    "FromCallable": (kernels.FromCallable(lambda a, b: np.asfortranarray(a @ b.T)), VECTORS),
    "Sum": (Linear() + kernels.RBF(1.0), VECTORS),
    "Product": (Linear() * kernels.RBF(1.0), VECTORS),
    "Scaled": (2.0 * Linear(), VECTORS),
    "Normalized": (kernels.Normalized(Linear()), VECTORS),
    "Tuples": (kernels.Tuples(["linear", "dirac"]), PAIRS),
    "Survival": (Survival(), TIMES),
    "Curves": (kernels.Curves(), np.asfortranarray(np.cumsum(rng.normal(size=(N, 6)), axis=1))),
    "Wasserstein": (kernels.Wasserstein(8), SERIES),
    "GlobalAlignment": (kernels.GlobalAlignment(), SERIES),
    "Hierarchy": (
        kernels.Hierarchy({"a": None, "b": "a", "c": "a"}),
        PATHS,
    ),
    **{name: (getattr(kernels, name)(), SETS) for name in ("Hamming", "Jaccard", "Dice")},
    **{name: (getattr(kernels, name)(), RANKS) for name in ("Kendall", "Spearman", "Mallows")},
    **{
        name: (getattr(kernels, name)(2), WORDS) for name in ("Spectrum", "Mismatch", "GapWeighted")
    },
    "EditDistance": (kernels.EditDistance(), WORDS),
    **{
        name: (getattr(kernels, name)(RING), np.arange(N))
        for name in ("Diffusion", "CommuteTime", "RegularizedLaplacian", "RandomWalk")
    },
}
MODELS = [
    model
    for model in map(okforest.__dict__.get, okforest.__all__)
    if inspect.isclass(model) and issubclass(model, OKModel) and not inspect.isabstract(model)
]
NOT_CALLED = {"fit", "fit_by", "set_params", "store_outputs", "validate_outputs"}


def make(model, kernel):
    if model is okforest.OKEnsemble:
        parts = [make(one, kernel) for one in (okforest.OKBoost, okforest.OKExtraTrees)]
        return model(parts, kernel=kernel)
    small = {"n_estimators": 3, "n_neighbors": 3, "random_state": 0}
    taken = inspect.signature(model).parameters
    return model(kernel=kernel, **{name: value for name, value in small.items() if name in taken})


def methods(model):
    """Return the public methods that the model has with its kernel, and their arguments."""
    for name in dir(type(model)):
        if name.startswith(("_", "set_")) or name in NOT_CALLED:
            continue
        method = getattr(model, name, None)
        if inspect.ismethod(method):
            yield name, method


def run(method, y):
    arguments = {"X": NEW, "y": y, "Z": X, "k": 2}
    taken = inspect.signature(method).parameters
    if "y" in taken:
        arguments["X"] = X
    result = method(**{name: value for name, value in arguments.items() if name in taken})
    return list(result) if inspect.isgenerator(result) else result


def test_every_public_kernel_has_a_case():
    public = {name for name in kernels.__all__ if inspect.isclass(getattr(kernels, name))}
    abstract = {"OutputKernel", "LabelSetKernel", "RankingKernel", "SequenceKernel"}
    used = {type(kernel).__name__ for kernel, _ in CASES.values()}
    assert (public - abstract) | {"Survival"} == used - {"Fortran", "Strided"}
    assert all(issubclass(getattr(kernels, name), OutputKernel) for name in public)


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
@pytest.mark.parametrize(("kernel", "y"), CASES.values(), ids=CASES)
def test_every_method(model, kernel, y, tmp_path):
    """Every public method runs; a saved model predicts the same."""
    fitted = make(model, kernel).fit(X, y)
    for name, method in methods(fitted):
        try:
            run(method, y)
        except Exception as error:
            error.add_note(f"in {model.__name__}.{name}")
            raise
    fitted.predict(NEW, candidates=y[:4])
    if isinstance(kernel, Fortran | Strided | kernels.FromCallable):
        return  # files do not hold code
    okforest.save(fitted, tmp_path / "model")
    restored = okforest.load(tmp_path / "model")
    W, again = (one.predict_weights(NEW).toarray() for one in (fitted, restored))
    np.testing.assert_array_equal(again, W)
    assert str(restored.predict(NEW)) == str(fitted.predict(NEW))


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
@pytest.mark.parametrize(("kernel", "y"), CASES.values(), ids=CASES)
def test_conformal(kernel, y):
    """Sets of outputs with every kernel, and intervals where outputs are numbers."""
    models = [make(one, kernel) for one in (okforest.OKBoost, okforest.OKExtraTrees)]
    for model in models:
        sets = ConformalSets(model, random_state=0).fit(X, y)
        assert len(sets.predict_sets(NEW, coverage=0.5)) == len(NEW)
        assert sets.p_values(NEW).shape[0] == len(NEW)
        if kernel.numeric:
            bands = ConformalIntervals(model, random_state=0).fit(X, y)
            assert bands.predict_interval(NEW, coverage=0.5).shape[0] == len(NEW)
