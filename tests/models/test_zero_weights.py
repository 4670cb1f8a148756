"""Rows of weight zero do not influence a model, except that they may be predicted."""

import numpy as np
import pytest

from okforest import (
    OKBagging,
    OKBoost,
    OKExtraTrees,
    OKNeighbors,
    OKRandomForest,
    OKRidge,
    OKTotallyRandomTrees,
    OKTree,
)
from okforest.kernels import RBF, Laplacian

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
Y = X[:, :2] + 0.1 * rng.normal(size=(40, 2))
WEIGHT = np.where(np.arange(40) % 2 == 0, 0.0, 1.0)
Y[WEIGHT == 0] *= 100.0

MODELS = [
    OKTree(),
    OKExtraTrees(3),
    OKRandomForest(3),
    OKBagging(3),
    OKTotallyRandomTrees(3),
    OKBoost(3),
    OKBoost(3, base=OKRidge()),
    OKNeighbors(),
    OKRidge(),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: repr(model).split("(")[0])
@pytest.mark.parametrize("kernel", [RBF(), Laplacian()], ids=["rbf", "laplacian"])
def test_median_distances_ignore_them(kernel, model):
    """The width of the kernel is the median distance between outputs of positive weight."""
    model.set_params(kernel=kernel).fit(X, Y, WEIGHT)
    expected = kernel.resolve(Y[WEIGHT > 0]).sigma
    assert model.kernel_.sigma == expected
    assert expected < 0.5 * kernel.resolve(Y).sigma


@pytest.mark.parametrize("model", [OKRidge(), OKNeighbors()], ids=["ridge", "neighbours"])
def test_input_kernels_ignore_them(model):
    """The width of an input kernel is learnt from the same rows."""
    inputs = np.where(WEIGHT[:, None] > 0, X, 100.0 * X)
    model.set_params(input_kernel=RBF()).fit(inputs, Y, WEIGHT)
    assert model.input_kernel_.sigma == RBF().resolve(X[WEIGHT > 0]).sigma


@pytest.mark.parametrize("embedding", ["auto", "gram"])
@pytest.mark.parametrize("far", [1e6, -1e8])
@pytest.mark.parametrize("model", MODELS[:3], ids=lambda model: repr(model).split("(")[0])
def test_far_outputs_cost_no_digits(model, far, embedding):
    """Trees are those without the rows, even if their outputs are codes for missing values."""
    y = np.where(WEIGHT[:, None] > 0, Y, far)
    y[::4], weight = far, np.where(np.arange(40) % 4 == 0, 0.0, WEIGHT)
    model.set_params(kernel="linear", embedding=embedding, random_state=0)
    found = model.fit(X, y, weight).trees_
    expected = model.fit(X[weight > 0], y[weight > 0]).trees_
    for name in ("feature", "left", "threshold"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_allclose(found.variance, expected.variance, rtol=1e-9, atol=1e-12)


def test_they_are_not_counted_as_rows_to_draw():
    """A bootstrap draws as many rows as have a weight, or a share of the sum of weights."""
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(40, 2)), np.repeat([0.0, 3.0], 20)
    for max_samples, n_draws in ((None, 20), (0.5, 30), (7, 7)):
        forest = OKBagging(3, max_samples=max_samples, random_state=0).fit(X, X, weight)
        assert forest.trees_.times.sum() == 3 * n_draws
