"""Every kernel: its formula, and that Gram, diagonal, pairs and features agree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import pairwise

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
    Polynomial,
    Precomputed,
    Product,
    RandomWalk,
    RegularizedLaplacian,
    Scaled,
    Sum,
    as_kernel,
)

rng = np.random.default_rng(0)
VECTORS = rng.normal(size=(12, 3))
LABELS = rng.integers(0, 4, size=12).astype(str)
GRAM = VECTORS @ VECTORS.T
POSITIONS = rng.permutation(12)
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
    "Diffusion by rank": (Diffusion(CYCLE, rank=5, normalized=True), POSITIONS),
    "RegularizedLaplacian": (RegularizedLaplacian(CYCLE), POSITIONS),
    "CommuteTime": (CommuteTime(CYCLE), POSITIONS),
    "RandomWalk": (RandomWalk(CYCLE, steps=3), POSITIONS),
    "Precomputed": (Precomputed(GRAM), POSITIONS),
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
    """Gram, cross-Gram, diagonal, pairs and explicit features tell the same; Grams are PSD."""
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
    """A resolved kernel keeps its parameters on other outputs."""
    y = kernel.check(y)
    once = kernel.resolve(y)
    np.testing.assert_array_equal(once.resolve(y[:5])(y), once(y))


@pytest.mark.parametrize(("kernel", "y"), CASES.values(), ids=CASES)
def test_clones_compute_the_same(kernel, y):
    """Kernels survive scikit-learn's clone, with independent parameters."""
    y = kernel.check(y)
    copy = clone(kernel)
    np.testing.assert_array_equal(copy.resolve(y)(y), kernel.resolve(y)(y))


def test_known_formulas():
    """The vector kernels are those of scikit-learn, in our parameters."""
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
    """Outputs far from zero lose no digits but their own."""
    moved = VECTORS + offset
    squares = ((moved[:, None] - moved[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(RBF(1.0)(moved), np.exp(-squares / 2), atol=1e-12)
    np.testing.assert_allclose(RBF(1.0)(moved[:5], moved), np.exp(-squares[:5] / 2), atol=1e-12)
    np.testing.assert_allclose(
        RBF(1.0).pairs(moved[:5], moved[5:10]), np.diag(np.exp(-squares[:5, 5:10] / 2)), atol=1e-12
    )
    assert RBF(1e200)(moved).min() == 1.0


def test_parts_by_name():
    """Kernels within kernels may be given by name."""
    np.testing.assert_array_equal(
        Sum("linear", "dirac")(LABELS.astype(float)), (Linear() + Dirac())(LABELS.astype(float))
    )
    np.testing.assert_allclose(RBF(1.0, base="linear")(VECTORS), RBF(1.0)(VECTORS))
    np.testing.assert_allclose(Normalized("linear")(VECTORS), Normalized(Linear())(VECTORS))
    with pytest.raises(ValueError, match="kernel='lineal' is not known"):
        Scaled("lineal").check(VECTORS)


def test_precomputed_of_any_real_type():
    """Truth values, integers, memory maps and lists are matrices too."""
    for gram in (np.eye(3, dtype=bool), np.eye(3, dtype=int), np.eye(3).tolist()):
        kernel = Precomputed(gram)
        np.testing.assert_array_equal(kernel(kernel.check([0, 2])), np.eye(2))


def test_median_width():
    """sigma="median" is the median distance between outputs."""
    y = np.array([0.0, 1.0, 5.0])  # distances 1, 4, 5
    assert RBF().resolve(y).sigma == pytest.approx(4.0)
    assert Laplacian().resolve(y).sigma == pytest.approx(4.0)
    assert RBF().resolve(np.zeros(4)).sigma == 1.0  # any width will do


def test_median_width_of_many_outputs_needs_no_large_matrix():
    """A thousand evenly spread outputs stand for all."""
    y = np.random.default_rng(0).normal(size=50_000)
    assert RBF().resolve(y).sigma == pytest.approx(0.954, abs=0.05)  # √2 · 0.6745


@given(st.lists(st.text(max_size=5), min_size=2, max_size=12))
def test_lists_of_any_objects(words):
    """Lists of strings are outputs of a kernel given by a function."""
    kernel = FromCallable(lambda a, b: float(len(set(a) & set(b))), elementwise=True)
    y = kernel.check(words)
    assert y.shape == (len(words),)
    assert kernel(y).shape == (len(words), len(words))


def test_lists_of_lists_stay_whole():
    """A list of equal lists is n objects, not a matrix."""
    y = FromCallable(len).check([[1, 2], [3, 4], [5, 6]])
    assert y.shape == (3,)
    assert y[1] == [3, 4]


def test_names():
    """Names, functions and kernels become kernels; anything else is explained."""
    assert isinstance(as_kernel("rbf"), RBF)
    assert isinstance(as_kernel(pairwise.chi2_kernel), FromCallable)
    kernel = Linear()
    assert as_kernel(kernel) is kernel
    with pytest.raises(ValueError, match=r"kernel='rbff' is not known; use one of 'dirac', "):
        as_kernel("rbff")
    with pytest.raises(ValueError, match=r"RBF is a class; pass an object, such as RBF\(...\)"):
        as_kernel(RBF)
    with pytest.raises(ValueError, match=r"kernel=Precomputed\(K\) and y=np.arange"):
        as_kernel(GRAM)


def test_precomputed_is_shared_by_clones():
    """A search does not copy the matrix."""
    kernel = RBF(base=Precomputed(GRAM))
    copy = clone(kernel)
    assert copy.base.gram is kernel.base.gram
    copy.set_params(base__gram=np.eye(3))
    assert kernel.base.gram is GRAM
    with pytest.raises(ValueError, match="position 5"):
        copy.check([5])
    assert repr(RBF(base=Precomputed(np.eye(2)))).startswith("RBF(base=Precomputed(gram=array(")


@pytest.mark.parametrize(
    ("gram", "y", "message"),
    [
        (GRAM, GRAM, r"y holds an array of shape \(12, 12\) and type float64; with a precomputed"),
        (GRAM, [0.0, 1.0], r"integer positions into the Gram matrix \(0…11\)"),
        (GRAM, [0, 12], r"y holds position 12; the Gram matrix has positions 0…11"),
        (GRAM, [0, -1], r"y holds position -1"),
        (GRAM, np.zeros((3, 2), int), r"1-d array of positions"),
        (GRAM[:5], [0, 1], r"shape \(5, 12\); it must be square"),
        (GRAM + np.triu(np.ones((12, 12))), [0, 1], "is asymmetric"),
        (np.where(np.eye(12), np.nan, GRAM), [0, 1], "NaN or infinite"),
        (GRAM.astype(str), [0, 1], "must hold real numbers"),
    ],
)
def test_precomputed_errors(gram, y, message):
    """Positions and matrices that do not fit are explained."""
    with pytest.raises(ValueError, match=message):
        Precomputed(gram).check(y)


@pytest.mark.parametrize(
    ("kernel", "y", "message"),
    [
        (RBF(-1.0), VECTORS, "RBF got sigma=-1.0; use a positive number or 'median'"),
        (RBF("mean"), VECTORS, "RBF got sigma='mean'"),
        (Laplacian(0), VECTORS, "Laplacian got sigma=0"),
        (Polynomial(0), VECTORS, "whole number"),
        (Polynomial(2, coef0=-1), VECTORS, "coef0"),
        (Polynomial(2, coef0=np.nan), VECTORS, "coef0"),
        (Polynomial(2, gamma="1"), VECTORS, "gamma"),
        (Mahalanobis(np.eye(2)), VECTORS, r"V of shape \(2, 2\); outputs need \(3, 3\)"),
        (Mahalanobis(-np.eye(3)), VECTORS, "not positive definite"),
        (Mahalanobis(), np.c_[VECTORS, VECTORS], "not positive definite"),
        (Scaled(Linear(), -2.0), VECTORS, "scale=-2.0"),
        (Dirac(), np.array([1, "a", None], dtype=object), "cannot be sorted"),
    ],
)
def test_parameter_errors(kernel, y, message):
    """Wrong parameters are found when the kernel meets the outputs."""
    with pytest.raises(ValueError, match=message):
        kernel.resolve(kernel.check(y))


def test_output_errors():
    """Outputs of the wrong kind are explained."""
    with pytest.raises(ValueError, match="y contains NaN"):
        Linear().check([1.0, np.nan])
    with pytest.raises(ValueError, match="y contains NaN"):
        Dirac().check([1.0, np.nan])
    with pytest.raises(ValueError, match="one label per row"):
        Dirac().check(VECTORS)
    with pytest.raises(ValueError, match="single value"):
        Linear().check(3.0)
    with pytest.raises(ValueError, match="fit an estimator with it, or call resolve"):
        RBF()(VECTORS)
    with pytest.raises(ValueError, match="takes V from training outputs"):
        Mahalanobis()(VECTORS)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a, b: np.ones(len(a)), r"returned an array of shape \(4,\).*elementwise=True"),
        (lambda a, b: 1.0, r"returned an array of shape \(\) for 4 and 4 outputs"),
    ],
)
def test_functions_of_the_wrong_shape(function, message):
    """A kernel function must return a matrix."""
    with pytest.raises(ValueError, match=message):
        FromCallable(function)(np.arange(4))


def test_elementwise_functions_return_numbers():
    """And an elementwise one numbers."""
    with pytest.raises(ValueError, match="returned list for two outputs"):
        FromCallable(lambda a, b: [1, 2], elementwise=True)(np.arange(2))
