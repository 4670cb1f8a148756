"""Every kernel: its formula, and whether Gram, diagonal, pairs and features agree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import pairwise

from okforest import OKTree
from okforest.decode import Majority, Mean, Support, TrainingSet, as_decoder
from okforest.kernels import (
    RBF,
    CommuteTime,
    Diffusion,
    Dirac,
    FromCallable,
    Laplacian,
    Linear,
    Mahalanobis,
    Normalized,
    OutputKernel,
    Polynomial,
    Precomputed,
    Product,
    RandomWalk,
    RegularizedLaplacian,
    Scaled,
    Sum,
    as_kernel,
)
from okforest.survival import Survival

rng = np.random.default_rng(0)
VECTORS = rng.normal(size=(12, 3))
LABELS = rng.integers(0, 4, size=12).astype(str)
GRAM = VECTORS @ VECTORS.T
POSITIONS = rng.permutation(12)
TIMES = np.column_stack([np.arange(12.0), np.where(np.arange(12) % 3, np.arange(12.0), np.inf)])
CYCLE = np.roll(np.eye(12), 1, axis=1) + np.roll(np.eye(12), -1, axis=1)

CASES = {
    "Linear": (Linear(), VECTORS),
    "Linear on numbers": (Linear(), VECTORS[:, 0]),
    "RBF": (RBF(1.5), VECTORS),
    "RBF median": (RBF(), VECTORS),
    "RBF on a base": (RBF(2.0, base=Precomputed(GRAM)), POSITIONS),
    "Laplacian": (Laplacian(2.0), VECTORS),
    "Laplacian median": (Laplacian(), VECTORS),
    "Polynomial": (Polynomial(3, gamma=0.5, coef0=2.0), VECTORS),
    "Polynomial without constant": (Polynomial(2, coef0=0.0), VECTORS),
    "Mahalanobis": (Mahalanobis(), VECTORS),
    "Dirac": (Dirac(), LABELS),
    "Diffusion": (Diffusion(CYCLE), POSITIONS),
    "Diffusion by rank": (Diffusion(CYCLE, rank=5, normalize=True), POSITIONS),
    "RegularizedLaplacian": (RegularizedLaplacian(CYCLE), POSITIONS),
    "CommuteTime": (CommuteTime(CYCLE), POSITIONS),
    "RandomWalk": (RandomWalk(CYCLE, steps=3), POSITIONS),
    "Precomputed": (Precomputed(GRAM), POSITIONS),
    "Survival": (Survival(), TIMES),
    "FromCallable": (FromCallable(pairwise.cosine_similarity), VECTORS),
    "FromCallable elementwise": (
        FromCallable(lambda a, b: len({a} & {b}), elementwise=True),
        LABELS,
    ),
    "Sum": (Linear() + Polynomial(2), VECTORS),
    "Sum without features": (Linear() + RBF(1.0), VECTORS),
    "Product": (Linear() * Polynomial(2), VECTORS),
    "Scaled": (2.5 * Linear(), VECTORS),
    "Normalized": (Normalized(Linear()), VECTORS),
    "Normalized Gram": (Normalized(Precomputed(GRAM)), POSITIONS),
}


@pytest.mark.parametrize(("kernel", "y"), CASES.values(), ids=CASES)
def test_methods_agree(kernel, y):
    """Gram, cross-Gram, diagonal, pairs and explicit features agree; Gram matrices are PSD."""
    y = kernel.check(y)
    kernel = kernel.resolve(y)
    K = kernel(y)
    np.testing.assert_allclose(K, K.T)
    assert np.linalg.eigvalsh(K).min() > -1e-9 * np.abs(K).max()
    np.testing.assert_allclose(kernel(y[:5], y[3:]), K[:5, 3:], atol=1e-12)
    np.testing.assert_allclose(kernel.diag(y), np.diag(K), atol=1e-12)
    np.testing.assert_allclose(kernel.pairs(y[:6], y[6:]), np.diag(K[:6, 6:]), atol=1e-12)
    if kernel.feature_dim(y) is not None:
        features = kernel.features(y)
        assert features.shape == (len(y), kernel.feature_dim(y))
        np.testing.assert_allclose(features @ features.T, K, atol=1e-9)
    else:
        with pytest.raises(TypeError, match="no explicit features"):
            kernel.features(y)


@pytest.mark.parametrize(("kernel", "y"), CASES.values(), ids=CASES)
def test_resolving_twice_changes_nothing(kernel, y):
    """Resolving a resolved kernel on other outputs does not change its parameters."""
    y = kernel.check(y)
    once = kernel.resolve(y)
    np.testing.assert_array_equal(once.resolve(y[:5])(y), once(y))


@pytest.mark.parametrize(("kernel", "y"), CASES.values(), ids=CASES)
def test_clones_compute_the_same(kernel, y):
    """A clone computes the same kernel."""
    y = kernel.check(y)
    copy = clone(kernel)
    np.testing.assert_array_equal(copy.resolve(y)(y), kernel.resolve(y)(y))


def test_known_formulas():
    """The kernels on vectors equal scikit-learn's."""
    a, b = VECTORS[:5], VECTORS[5:]
    np.testing.assert_allclose(Linear()(a, b), pairwise.linear_kernel(a, b))
    np.testing.assert_allclose(RBF(2.0)(a, b), pairwise.rbf_kernel(a, b, gamma=1 / 8))
    np.testing.assert_allclose(Laplacian(2.0)(a, b), pairwise.laplacian_kernel(a, b, gamma=0.5))
    np.testing.assert_allclose(
        Polynomial(3, 0.5, 2.0)(a, b), pairwise.polynomial_kernel(a, b, 3, gamma=0.5, coef0=2.0)
    )
    V = np.cov(VECTORS.T)
    np.testing.assert_allclose(
        Mahalanobis().resolve(VECTORS)(a, b), a @ np.linalg.inv(V) @ b.T, atol=1e-12
    )
    np.testing.assert_allclose(Normalized(Linear())(a, b), pairwise.cosine_similarity(a, b))
    assert isinstance(Linear() + Dirac(), Sum)
    assert isinstance(Linear() * Dirac(), Product)
    assert isinstance(3 * Dirac(), Scaled)


@pytest.mark.parametrize("offset", [1e4, 1e6, 1e8])
def test_rbf_does_not_depend_on_the_origin(offset):
    """Outputs far from zero lose no precision beyond their own rounding."""
    moved = VECTORS + offset
    squares = ((moved[:, None] - moved[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(RBF(1.0)(moved), np.exp(-squares / 2), atol=1e-12)
    np.testing.assert_allclose(RBF(1.0)(moved[:5], moved), np.exp(-squares[:5] / 2), atol=1e-12)
    np.testing.assert_allclose(
        RBF(1.0).pairs(moved[:5], moved[5:10]), np.diag(np.exp(-squares[:5, 5:10] / 2)), atol=1e-12
    )
    assert RBF(1e200)(moved).min() == RBF(1e200).pairs(moved, moved[::-1]).min() == 1.0


def test_rbf_is_at_most_one():
    """Rounding errors of a base kernel's Gram matrix do not give a similarity above 1."""
    K = np.array([[1.0, 1.0 + 1e-9], [1.0 + 1e-9, 1.0 - 1e-9]])
    kernel, y = RBF(1e-5, base=Precomputed(K)), np.array([0, 1])
    assert kernel(y).max() == kernel(y, y).max() == kernel.pairs(y, y[::-1]).max() == 1.0
    long = np.random.default_rng(0).normal(size=(50, 37))
    assert (np.diagonal(RBF(1e-8)(long)) == 1.0).all()


@pytest.mark.parametrize(
    ("kernel", "known_psd", "numeric"),
    [
        (Linear(), True, True),
        (RBF(), True, True),
        (RBF(base=Dirac()), True, False),
        (RBF(base=Precomputed(GRAM)), False, False),
        (FromCallable(len), False, False),
        (Linear() + FromCallable(len), False, False),
        (Linear() * Dirac(), True, False),
        (2.0 * Precomputed(GRAM), False, False),
        (Normalized(Linear()), True, True),
        (Diffusion(CYCLE), True, False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_kernels_know_of_themselves(kernel, known_psd, numeric):
    """A composed kernel is PSD by construction, or numeric, if all its parts are."""
    assert (kernel.known_psd, kernel.numeric) == (known_psd, numeric)


def test_inner_kernels_are_resolved():
    """Parameters that are learnt are filled in at every level."""
    kernel = (2.0 * RBF(1.0, base=RBF()) + Normalized(Laplacian())).resolve(VECTORS)
    assert kernel.first.base.base.sigma == RBF().resolve(VECTORS).sigma
    assert kernel.second.base.sigma == Laplacian().resolve(VECTORS).sigma


def test_normalized_outputs_of_norm_zero():
    """The cosine of a zero vector is 0, also with itself."""
    kernel, y = Normalized(Linear()), np.array([[0.0, 0.0], [3.0, 4.0]])
    expected = np.diag([0.0, 1.0])
    np.testing.assert_allclose(kernel(y), expected)
    np.testing.assert_array_equal(kernel.diag(y), [0.0, 1.0])
    np.testing.assert_allclose(kernel.features(y) @ kernel.features(y).T, expected)


@pytest.mark.parametrize("kernel", [RBF(1.5), Laplacian(2.0)], ids=repr)
def test_random_frequencies(kernel):
    """The mean of cos⟨ω, a − b⟩ over random frequencies is the kernel."""
    phases = kernel.phases(VECTORS, 20_000, np.random.default_rng(0))
    differences = phases[:, None, :] - phases[None, :, :]
    np.testing.assert_allclose(np.cos(differences).mean(axis=2), kernel(VECTORS), atol=0.03)


def test_parts_by_name():
    """Inner kernels can be given by name."""
    np.testing.assert_array_equal(
        Sum("linear", "dirac")(LABELS.astype(float)), (Linear() + Dirac())(LABELS.astype(float))
    )
    np.testing.assert_allclose(RBF(1.0, base="linear")(VECTORS), RBF(1.0)(VECTORS))
    np.testing.assert_allclose(Normalized("linear")(VECTORS), Normalized(Linear())(VECTORS))
    with pytest.raises(ValueError, match="kernel='lineal' is not known"):
        Scaled("lineal").check(VECTORS)


def test_precomputed_of_any_real_type():
    """Booleans, integers and lists are accepted as matrices."""
    for gram in (np.eye(3, dtype=bool), np.eye(3, dtype=int), np.eye(3).tolist()):
        kernel = Precomputed(gram)
        np.testing.assert_array_equal(kernel(kernel.check([0, 2])), np.eye(2))


@given(st.lists(st.text(max_size=5), min_size=2, max_size=12))
def test_lists_of_any_objects(words):
    """A kernel given by a function takes lists of strings."""
    kernel = FromCallable(lambda a, b: float(len(set(a) & set(b))), elementwise=True)
    y = kernel.check(words)
    assert y.shape == (len(words),)
    assert kernel(y).shape == (len(words), len(words))


def test_lists_of_lists_stay_whole():
    """A list of lists of equal length is converted to n objects, not to a matrix."""
    y = FromCallable(len).check([[1, 2], [3, 4], [5, 6]])
    assert y.shape == (3,)
    assert y[1] == [3, 4]


def test_names():
    """Names, functions and kernels are converted to kernels; anything else is refused."""
    assert isinstance(as_kernel("rbf"), RBF)
    assert isinstance(as_kernel(pairwise.chi2_kernel), FromCallable)
    kernel = Linear()
    assert as_kernel(kernel) is kernel
    with pytest.raises(ValueError, match=r"kernel='rbff' is not known; use one of 'dirac', "):
        as_kernel("rbff")
    for name in ("edit_distance", "EditDistance"):
        with pytest.raises(ValueError, match=r"by name; pass .*, kernel=EditDistance\(...\)"):
            as_kernel(name)
    with pytest.raises(ValueError, match=r"RBF is a class; pass an object, such as RBF\(...\)"):
        as_kernel(RBF)
    with pytest.raises(ValueError, match=r"kernel=Precomputed\(K\) and y=np.arange"):
        as_kernel(GRAM)


def test_precomputed_is_shared_by_clones():
    """A search does not copy the matrix."""
    kernel = RBF(base=Precomputed(GRAM))
    copy = clone(kernel)
    assert copy.base.gram is kernel.base.gram
    assert copy.base._checked is None
    kernel.check(POSITIONS)
    assert clone(kernel).base._checked is GRAM  # it is not checked again
    copy.set_params(base__gram=np.eye(3))
    assert kernel.base.gram is GRAM
    with pytest.raises(ValueError, match="position 5"):
        copy.check([5])
    assert repr(RBF(base=Precomputed(np.eye(2)))).startswith("RBF(base=Precomputed(gram=array(")


@pytest.mark.parametrize(
    ("gram", "y", "message"),
    [
        (GRAM, GRAM, r"y holds an array of shape \(12, 12\) and type float64; with a precomputed"),
        (GRAM, [0.0, 1.0], r"integer positions in the Gram matrix \(0…11\)"),
        (GRAM, [0, 12], r"y holds position 12; the Gram matrix only has positions 0…11"),
        (GRAM, [0, -1], r"y holds position -1"),
        (GRAM, np.zeros((3, 2), int), r"1-d array of positions"),
        (GRAM[:5], [0, 1], r"shape \(5, 12\); it must be square"),
        (GRAM + np.triu(np.ones((12, 12))), [0, 1], "is asymmetric"),
        (np.where(np.eye(12), np.nan, GRAM), [0, 1], "NaN or infinite"),
        (GRAM.astype(str), [0, 1], "must hold real numbers"),
    ],
)
def test_precomputed_errors(gram, y, message):
    """Invalid positions and matrices are refused with an explanation."""
    with pytest.raises(ValueError, match=message):
        Precomputed(gram).check(y)


@pytest.mark.parametrize(
    ("kernel", "y", "message"),
    [
        (
            RBF(-1.0),
            VECTORS,
            r"'sigma' parameter of RBF must be a float .*'median'.*Got -1.0",
        ),
        (RBF("mean"), VECTORS, "'sigma' parameter of RBF .* Got 'mean'"),
        (RBF(np.inf), VECTORS, "'sigma' parameter of RBF .* Got inf"),
        (RBF(np.nan), VECTORS, "'sigma' parameter of RBF .* Got nan"),
        (RBF(0.0), VECTORS, "'sigma' parameter of RBF .* Got 0.0"),
        (Laplacian(0), VECTORS, "'sigma' parameter of Laplacian .* Got 0"),
        (Polynomial(0), VECTORS, "'degree' parameter of Polynomial must be an int"),
        (Polynomial(2, coef0=-1), VECTORS, "'coef0' parameter"),
        (Polynomial(2, coef0=np.nan), VECTORS, "'coef0' parameter"),
        (Polynomial(2, gamma="1"), VECTORS, "'gamma' parameter"),
        (Polynomial(2, gamma=0.0), VECTORS, "'gamma' parameter .* Got 0.0"),
        (Polynomial(1.5), VECTORS, "'degree' parameter .* Got 1.5"),
        (Polynomial(True), VECTORS, "'degree' parameter .* Got True"),
        (
            Mahalanobis(np.eye(2)),
            VECTORS,
            r"covariance of shape \(2, 2\); outputs with 3 values need \(3, 3\)",
        ),
        (Mahalanobis(-np.eye(3)), VECTORS, "not positive definite"),
        (
            Mahalanobis(np.eye(3) + np.diag([0.5, 0.0], k=1)),
            VECTORS,
            r"the covariance of Mahalanobis is asymmetric: entries \(0, 1\) and \(1, 0\) differ "
            r"by 0.5. If it should be symmetric, use \(covariance \+ covariance.T\) / 2",
        ),
        (
            Mahalanobis(np.full((3, 3), np.nan)),
            VECTORS,
            "Mahalanobis has NaN or infinite",
        ),
        (Mahalanobis(), np.c_[VECTORS, VECTORS], "not positive definite"),
        (Scaled(Linear(), -2.0), VECTORS, "'scale' parameter of Scaled .* Got -2.0"),
        (Scaled(Linear(), 0.0), VECTORS, "'scale' parameter of Scaled .* Got 0.0"),
        (Dirac(), np.array([1j, 2], dtype=object), "cannot be sorted"),
    ],
)
def test_parameter_errors(kernel, y, message):
    """Invalid parameters are found when a kernel is resolved on outputs."""
    with pytest.raises(ValueError, match=message):
        kernel.resolve(kernel.check(y))


def test_output_errors():
    """Invalid outputs, and kernels that are not resolved, are refused with an explanation."""
    with pytest.raises(ValueError, match="y contains NaN"):
        Linear().check([1.0, np.nan])
    with pytest.raises(ValueError, match="y contains NaN"):
        Dirac().check([1.0, np.nan])
    with pytest.raises(ValueError, match="one label per row"):
        Dirac().check(VECTORS)
    with pytest.raises(ValueError, match="single value"):
        Linear().check(3.0)
    with pytest.raises(ValueError, match="fit a model with it, or call resolve"):
        RBF()(VECTORS)
    with pytest.raises(ValueError, match="computes the covariance from the training outputs"):
        Mahalanobis()(VECTORS)


class Parity(OutputKernel):
    """A user's kernel on integers, with a decoder object."""

    default_decoder = Support()

    def check(self, y):
        return np.asarray(y)

    def __call__(self, y, z=None):
        return np.equal.outer(y % 2, (y if z is None else z) % 2).astype(float)


@pytest.mark.parametrize(
    ("kernel", "decoder"),
    [
        (Linear(), Mean),
        (Mahalanobis(), Mean),
        (Dirac(), Majority),
        (RBF(), TrainingSet),
        (Precomputed(GRAM), TrainingSet),
        (Diffusion(CYCLE), TrainingSet),
        (FromCallable(np.equal.outer), TrainingSet),
        (Parity(), Support),
        # Scaling keeps the nearest output; other operations may change it.
        (2.0 * Linear(), Mean),
        (Scaled("dirac"), Majority),
        (2.0 * Parity(), Support),
        (Normalized(Linear()), TrainingSet),
        (Linear() + Linear(), TrainingSet),
        (Dirac() * Dirac(), TrainingSet),
    ],
    ids=lambda value: type(value).__name__,
)
def test_default_decoders(kernel, decoder):
    """decoder="auto" takes the default decoder of the kernel, a name or an object."""
    assert type(as_decoder("auto", kernel)) is decoder
    assert type(as_decoder("training_set", kernel)) is TrainingSet
    support = Support()
    assert as_decoder(support, kernel) is support


def test_default_decoders_of_users_kernels():
    """Models use the default decoder of a user's kernel."""
    X, y = np.arange(6.0)[:, None], np.array([4, 2, 2, 1, 1, 3])
    tree = OKTree(kernel=Parity(), random_state=0).fit(X, y)
    same = OKTree(kernel=Parity(), decoder="support", random_state=0).fit(X, y)
    assert tree.predict(X).tolist() == same.predict(X).tolist() == [4, 4, 4, 1, 1, 1]
    tree.kernel_.default_decoder = "modal"
    with pytest.raises(ValueError, match="decoder='modal' is not known"):
        tree.predict(X)


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        RBF(1.0),
        RBF(1.0, base=Linear()),
        Dirac(),
        FromCallable(np.equal.outer),
        Diffusion(CYCLE),
        2.0 * Linear() + Normalized(RBF(1.0)),
        Precomputed(GRAM),
    ],
    ids=lambda kernel: type(kernel).__name__,
)
def test_nothing_to_restrict(kernel):
    """A kernel that has nothing to drop returns itself."""
    assert kernel.restrict(POSITIONS) is kernel


@pytest.mark.parametrize(
    "kernel",
    [
        Precomputed(GRAM),
        RBF(1.0, base=Precomputed(GRAM)),
        3.0 * Precomputed(GRAM),
        Normalized(Precomputed(GRAM)),
        Diffusion(CYCLE) + Precomputed(GRAM),
        Precomputed(GRAM) * Diffusion(CYCLE),
    ],
    ids=lambda kernel: type(kernel).__name__,
)
def test_restricted_kernels_agree(kernel):
    """A restricted kernel agrees on the outputs kept, and refuses others."""
    restricted = kernel.restrict(POSITIONS[:5])
    assert restricted is not kernel
    np.testing.assert_array_equal(restricted(POSITIONS[:5]), kernel(POSITIONS[:5]))
    with pytest.raises(ValueError, match="not in this block of the Gram matrix: a compact model"):
        restricted.check(POSITIONS[5:6])
