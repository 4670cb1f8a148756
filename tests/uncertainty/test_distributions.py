"""Variance, probabilities, entropy, quantiles, bands and marginals follow from the weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from okforest import OKBoost, OKExtraTrees, OKModel, OKRidge, OKTree
from okforest.kernels import RBF, Dirac, FromCallable, Linear, Precomputed
from okforest.uncertainty import (
    bands,
    entropy,
    intervals,
    marginals,
    probabilities,
    quantiles,
    variance,
)
from okforest.weights import DenseWeights
from reference import uncertainty as reference

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
LABELS = np.array(["b", "a", "c"])[rng.integers(0, 3, 40)]
SETS = np.array([frozenset(LABELS[[i, (i * 7) % 40]]) for i in range(40)], dtype=object)
CURVES = np.cumsum(rng.normal(size=(40, 6)), axis=1)


class Given(OKModel):
    """A model whose inputs are the weights of its predictions."""

    def __init__(self, kernel="linear", decoder="auto"):
        self.kernel = kernel
        self.decoder = decoder

    def fit(self, X, y):
        self.n_features_in_ = len(y)
        self.store_outputs(*self.validate_outputs(y, y))
        return self

    def weight_matrix(self, X):
        return DenseWeights(np.asarray(X, dtype=float))


@pytest.mark.parametrize(
    ("kernel", "y"),
    [
        (Linear(), CURVES + 1e4),
        (RBF(2.0), CURVES),
        (Dirac(), LABELS),
        (FromCallable(lambda a, b: float(len(a & b)), elementwise=True), SETS),
    ],
    ids=["linear", "rbf", "dirac", "callable"],
)
def test_variance(kernel, y):
    """It is the mean squared distance of the outputs from the prediction."""
    model = OKExtraTrees(5, kernel=kernel, min_samples_leaf=5, random_state=0).fit(X, y)
    W = model.predict_weights(X[:6]).toarray()
    kernel = Linear() if isinstance(kernel, Linear) else model.kernel_
    centred = y - y.mean(axis=0) if isinstance(kernel, Linear) else y
    expected = [reference.variance(kernel, centred, w) for w in W]
    np.testing.assert_allclose(variance(model, X[:6]), expected, atol=1e-9)


@pytest.mark.parametrize("kernel", [Linear(), RBF(2.0)], ids=["linear", "rbf"])
def test_weights_that_do_not_sum_to_one(kernel):
    """The variance is about the prediction itself, which is then far from the outputs."""
    y = CURVES + 10.0
    model = Given(kernel).fit(None, y)
    W = rng.uniform(0.0, 0.05, size=(5, 40))
    expected = [reference.variance(kernel, y, w) for w in W]
    np.testing.assert_allclose(variance(model, W), expected, rtol=1e-9)
    zero = np.zeros((1, 40))
    model = Given().fit(None, np.arange(40.0))
    uniform = np.full((1, 40), 1 / 40)
    levels = [0.05, 0.5, 0.95]
    np.testing.assert_array_equal(quantiles(model, zero, levels), quantiles(model, uniform, levels))


def test_probabilities_and_entropy_of_classes():
    """Classes are sorted; probabilities are votes; the variance is the Gini index."""
    model = OKExtraTrees(5, kernel="dirac", min_samples_leaf=5, random_state=0).fit(X, LABELS)
    classes, values = probabilities(model, X)
    assert classes.tolist() == ["a", "b", "c"]
    W = model.predict_weights(X).toarray()
    votes = np.array([W[:, label == LABELS].sum(axis=1) for label in classes]).T
    np.testing.assert_allclose(values, votes)
    np.testing.assert_allclose(variance(model, X), 1.0 - (votes**2).sum(axis=1), atol=1e-12)
    logs = np.log(np.where(votes > 0, votes, 1.0))
    np.testing.assert_allclose(entropy(model, X), -(votes * logs).sum(axis=1), atol=1e-12)
    sharp = OKTree(kernel="dirac").fit(X, LABELS)
    np.testing.assert_allclose(entropy(sharp, X), 0.0, atol=1e-12)


def test_probabilities_of_other_outputs():
    """Equal sets are added up; each of the different training outputs has a probability."""
    kernel = FromCallable(lambda a, b: float(len(a & b)), elementwise=True)
    model = OKExtraTrees(5, kernel=kernel, min_samples_leaf=5, random_state=0).fit(X, SETS)
    outputs, values = probabilities(model, X[:5])
    assert len(set(outputs)) == len(outputs) == len(set(SETS))
    W = model.predict_weights(X[:5]).toarray()
    for output, column in zip(outputs, values.T, strict=True):
        np.testing.assert_allclose(column, W[:, [y == output for y in SETS]].sum(axis=1))
    logs = np.log(np.where(values > 0, values, 1.0))
    np.testing.assert_allclose(entropy(model, X[:5]), -(values * logs).sum(axis=1))


def test_signed_weights_are_clipped():
    """Boosting and ridge regression give valid probabilities, entropies and variances."""
    for model in (OKBoost(20, kernel="dirac", random_state=0), OKRidge(kernel="dirac")):
        model.fit(X, LABELS)
        values = probabilities(model, X).values
        assert (values >= 0).all()
        np.testing.assert_allclose(values.sum(axis=1), 1.0)
        assert (entropy(model, X) >= 0).all()
        assert (variance(model, X) >= 0).all()
    ridge = OKRidge().fit(X, X[:, 0])
    found = quantiles(ridge, X, [0.1, 0.5, 0.9])
    assert (np.diff(found, axis=1) >= 0).all()
    nothing = Given("dirac").fit(None, ["a", "b"])
    np.testing.assert_allclose(probabilities(nothing, [[0.0, 0.0]]).values, 0.5)
    np.testing.assert_allclose(entropy(nothing, [[0.0, 0.0]]), np.log(2))


@given(seed=st.integers(0, 2**31), n=st.integers(1, 12), repeat=st.booleans())
def test_quantiles_equal_the_definition(seed, n, repeat):
    """For numbers, with ties, and for every coordinate of vectors."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n).astype(float) if repeat else rng.normal(size=n)
    W = rng.dirichlet(np.ones(n), size=3)
    levels = [0.05, 0.5, 0.8]
    model = Given().fit(None, y)
    expected = [[reference.quantile(y, w, level) for level in levels] for w in W]
    np.testing.assert_array_equal(quantiles(model, W, levels), expected)
    np.testing.assert_array_equal(quantiles(model, W), [row[1] for row in expected])
    pairs = Given().fit(None, np.c_[y, -y])
    both = quantiles(pairs, W, levels)
    assert both.shape == (3, 2, 3)
    np.testing.assert_array_equal(both[:, 0], expected)
    assert quantiles(pairs, W).shape == (3, 2)


def test_intervals_are_quantiles():
    """The central interval has the same share of the weights on both sides."""
    y = np.arange(11.0)
    W = np.full((1, 11), 1 / 11)
    assert intervals(Given().fit(None, y), W, 0.8).tolist() == [[1.0, 9.0]]


@given(seed=st.integers(0, 2**31), coverage=st.floats(0.05, 0.95))
def test_bands_contain_a_share_of_the_weights(seed, coverage):
    """Whole curves of that share are inside; with a curve less, it would not be reached."""
    rng = np.random.default_rng(seed)
    curves, W = rng.normal(size=(9, 4)), rng.dirichlet(np.ones(9), size=2)
    curves[:, 2] = 1.0  # constant: a band of no width
    found = bands(Given().fit(None, curves), W, coverage)
    assert found.shape == (2, 4, 2)
    for band, w in zip(found, W, strict=True):
        tolerance = 1e-9
        inside = (band[:, 0] - tolerance <= curves) & (curves <= band[:, 1] + tolerance)
        whole = inside.all(axis=1)
        assert w[whole].sum() >= coverage - 1e-9
        deepest = ((band[:, 0] + tolerance < curves) & (curves < band[:, 1] - tolerance))[
            :, [0, 1, 3]
        ]
        assert w[deepest.all(axis=1)].sum() < coverage


def test_bands_of_curves_with_a_large_mean():
    """They are as wide as bands of the same curves without the mean."""
    curves = CURVES * 1e-4
    W = rng.dirichlet(np.ones(40), size=3)
    expected = bands(Given().fit(None, curves), W)
    found = bands(Given().fit(None, curves + 1e8), W)
    np.testing.assert_allclose(found - 1e8, expected, atol=1e-6)


def test_marginals():
    """Of indicator matrices and of sets; labels come with their probabilities."""
    indicators = (CURVES > 0).astype(int)
    model = OKExtraTrees(5, min_samples_leaf=5, random_state=0).fit(X, indicators)
    labels, values = marginals(model, X[:5])
    assert labels.tolist() == list(range(6))
    np.testing.assert_allclose(values, model.predict_weights(X[:5]) @ indicators)
    kernel = FromCallable(lambda a, b: float(len(a & b)), elementwise=True)
    model = OKExtraTrees(5, kernel=kernel, min_samples_leaf=5, random_state=0).fit(X, SETS)
    labels, values = marginals(model, X[:5])
    assert labels.tolist() == ["a", "b", "c"]
    W = model.predict_weights(X[:5]).toarray()
    np.testing.assert_allclose(values[:, 1], W[:, ["b" in y for y in SETS]].sum(axis=1))
    mixed = OKTree(kernel="hamming").fit(X[:3], [{1, "a"}, {(2, 3)}, {(2, 3), 1}])
    assert marginals(mixed, X[:1]).labels.tolist() == mixed.classes_.tolist() == [1, "a", (2, 3)]


def test_pipelines():
    """Inputs are transformed first."""
    pipeline = make_pipeline(StandardScaler(), OKTree(max_depth=2)).fit(X, X[:, 0])
    alone = OKTree(max_depth=2).fit(X, X[:, 0])
    np.testing.assert_allclose(variance(pipeline, X), variance(alone, X))


def test_errors():
    """Outputs and models of another kind, and bad levels, are refused with the remedy."""
    classes = OKTree(kernel="dirac").fit(X, LABELS)
    positions = OKTree(kernel=Precomputed(X @ X.T)).fit(X, np.arange(40))
    for model in (classes, positions):
        with pytest.raises(ValueError, match="need numbers or vectors as outputs"):
            quantiles(model, X)
    numbers = OKTree().fit(X, X[:, 0])
    with pytest.raises(ValueError, match="bands are for curves"):
        bands(numbers, X)
    with pytest.raises(ValueError, match="use probabilities"):
        marginals(numbers, X)
    for levels in (0.0, 1.0, [], [[0.5]], np.nan):
        with pytest.raises(ValueError, match="use numbers between 0 and 1"):
            quantiles(numbers, X, levels)
    for coverage in (0.0, 1.0, 90, "0.9", None, [0.9]):
        with pytest.raises(ValueError, match="use a number between 0 and 1"):
            intervals(numbers, X, coverage)
    with pytest.raises(TypeError, match="got LinearRegression"):
        variance(LinearRegression().fit(X, X[:, 0]), X)


def test_bands_of_signed_weights():
    """Negative weights support no curve: they are left out, and the rest is normalised."""
    model = Given().fit(None, CURVES[:4])
    signed, positive = [[0.6, 0.9, -0.8, 0.3]], [[0.6 / 1.8, 0.9 / 1.8, 0.0, 0.3 / 1.8]]
    np.testing.assert_allclose(bands(model, signed, 0.8), bands(model, positive, 0.8))


def test_quantiles_of_weights_with_a_negative_sum():
    """All outputs count alike only if no weight is positive."""
    model = Given().fit(None, [0.0, 1.0, 2.0, 3.0])
    levels = [0.1, 0.5, 0.9]
    assert quantiles(model, [[1.0, -1.5, 0.0, 0.0]], levels).tolist() == [[0.0, 0.0, 0.0]]
    assert quantiles(model, [[0.0, -1.5, 0.0, 0.0]], levels).tolist() == [[0.0, 1.0, 3.0]]


def test_marginals_are_probabilities():
    """Weights of boosting may be negative, and larger than one."""
    model = Given("hamming").fit(None, [{"a"}, {"b"}, {"c"}])
    found = marginals(model, [[1.5, -0.75, 0.25]]).values
    np.testing.assert_allclose(found, [[1.0, 0.0, 0.25]])
