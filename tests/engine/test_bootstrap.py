"""Bootstrap samples: how often the rows of each tree are drawn."""

import numpy as np
import pytest

from growing import grow
from okforest.engine import GrowthRules
from reference.bootstrap import bootstrap_counts, fit_of_counts
from reference.random import derive

# Seeds are fixed, so that a test never fails by chance; about a thousand p-values are compared.
LEAST_P_VALUE = 1e-4

WEIGHTS = {
    "uniform": np.ones(12),
    "skewed": 2.0 ** -np.arange(12),
    "reversed": 2.0 ** np.arange(-12, 0),
    "one heavy row": np.r_[np.ones(6), 1e6, np.ones(5)],
    "zeros": np.r_[0.0, 3.0, 0.0, 0.0, 1.0, 2.0, 0.0],
    "huge": np.full(12, 1e5),
}


def drawn(weight, n_draws, n_trees=1, **options):
    """Return how often each row is drawn for each tree, shape (n_trees, n)."""
    n = len(weight)
    trees = grow(
        np.zeros((n, 1)),
        np.zeros((n, 1)),
        GrowthRules(max_depth=0),
        row_weight=np.asarray(weight, dtype=float),
        n_draws=n_draws,
        n_trees=n_trees,
        **options,
    )
    counts = np.zeros((n_trees, n), dtype=np.int64)
    counts[trees.member_trees, trees.members] = trees.times
    return counts


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("n_draws", [1, 12, 200, 10**5, 10**9, 2**31 - 1])
def test_counts_are_multinomial(weight, n_draws):
    """Counts of rows, and of pairs of rows, fit their binomial distributions."""
    counts = drawn(weight, n_draws, n_trees=5000, seed=1)
    assert (counts.sum(axis=1) == n_draws).all()
    assert (counts[:, weight == 0] == 0).all()
    share = weight / weight.sum()
    for i in range(len(weight)):
        assert fit_of_counts(counts[:, i], n_draws, share[i]) > LEAST_P_VALUE
        pair = counts[:, i] + counts[:, i - 1]
        assert fit_of_counts(pair, n_draws, share[i] + share[i - 1]) > LEAST_P_VALUE


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("n_draws", [30, 10**6])
def test_moments_of_counts(weight, n_draws):
    """Means and covariances are multinomial, to five standard errors."""
    n_trees = 20_000
    counts = drawn(weight, n_draws, n_trees=n_trees, seed=2)
    share = weight / weight.sum()
    variance = n_draws * share * (1 - share)
    error = counts - n_draws * share
    assert (np.abs(error.mean(axis=0)) <= 5 * np.sqrt(variance / n_trees)).all()
    common = n_trees * variance > 100  # the others are drawn too rarely to estimate a variance
    products = error[:, common, None] * error[:, None, common]
    covariance = n_draws * (np.diag(share) - np.outer(share, share))[np.ix_(common, common)]
    standard_error = products.std(axis=0) / np.sqrt(n_trees)
    assert (np.abs(products.mean(axis=0) - covariance) <= 5 * standard_error).all()


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("n_draws", [1, 9, 19])
def test_few_draws_equal_the_oracle(weight, n_draws):
    """Below a mean of 10, the counts of every tree equal the oracle's."""
    counts = drawn(weight, n_draws, n_trees=50, seed=3)
    for t in range(50):
        seed = derive(derive(3, t), 0)
        assert counts[t].tolist() == bootstrap_counts(weight, n_draws, seed).tolist()


@pytest.mark.parametrize(
    ("n_draws", "probability"), [(20, 0.5), (40, 0.3), (10**5, 1.1e-4), (10**9, 0.4)]
)
def test_large_means_by_a_million_draws(n_draws, probability):
    """From a mean of 10 on, counts are drawn by rejection, and fit as well."""
    counts = drawn([probability, 1 - probability], n_draws, n_trees=1_000_000, seed=4)[:, 0]
    assert fit_of_counts(counts, n_draws, probability, 100) > LEAST_P_VALUE


@pytest.mark.parametrize("n_draws", [50, 10**6])
def test_weights_are_equivalent_to_repeated_rows(n_draws):
    """A row of weight k and k equal rows together are drawn equally often, in distribution."""
    repeats = np.array([1, 4, 2])
    weighted = drawn(repeats, n_draws, n_trees=5000, seed=5)
    repeated = drawn(np.ones(7), n_draws, n_trees=5000, seed=6)
    together = np.add.reduceat(repeated, [0, 1, 5], axis=1)
    for i in range(3):
        for counts in (weighted[:, i], together[:, i]):
            assert fit_of_counts(counts, n_draws, repeats[i] / 7) > LEAST_P_VALUE


@pytest.mark.parametrize("scale", [2.0**-30, 2.0**40])
def test_rescaled_weights_draw_the_same_rows(scale):
    """A power of two changes nothing; other factors only if rounding decides a draw."""
    weight = np.random.default_rng(0).uniform(size=200)
    expected = drawn(weight, 500, n_trees=20)
    assert np.array_equal(drawn(scale * weight, 500, n_trees=20), expected)
    assert np.array_equal(drawn(scale * 1.7 * weight, 500, n_trees=20), expected)


def test_draws_depend_on_seed_tree_and_position_alone():
    """Neither threads, ranges of trees nor the contents of rows change the draws."""
    weight = np.random.default_rng(0).uniform(size=300)
    expected = drawn(weight, 300, n_trees=9, seed=7)
    assert np.array_equal(drawn(weight, 300, n_trees=9, seed=7, n_threads=4), expected)
    for t in range(9):
        assert np.array_equal(drawn(weight, 300, first_tree=t, seed=7)[0], expected[t])
    assert not np.array_equal(drawn(weight, 300, n_trees=9, seed=8), expected)
    assert len(np.unique(expected, axis=0)) == 9
    X = np.random.default_rng(1).normal(size=(300, 3))
    trees = grow(X, X, GrowthRules(), row_weight=weight, n_draws=300, n_trees=9, seed=7)
    for t in range(9):
        counts = np.zeros(300, dtype=np.int64)
        counts[trees[t].members] = trees[t].times
        assert np.array_equal(counts, expected[t])


@pytest.mark.parametrize("n_draws", [20, 10**6])
def test_a_row_of_weight_zero_is_equivalent_to_no_row(n_draws):
    """The same rows are drawn with and without it, exactly."""
    weight = np.random.default_rng(0).integers(0, 3, size=60)
    counts = drawn(weight, n_draws, n_trees=5)
    assert np.array_equal(counts[:, weight > 0], drawn(weight[weight > 0], n_draws, n_trees=5))


def test_rows_and_trees_are_independent():
    """Counts of neighbouring rows, and of neighbouring trees, are not correlated."""
    counts = drawn(np.ones(200), 200, n_trees=200, seed=9).astype(float)
    by_row = np.corrcoef(counts[:, :-1].ravel(), counts[:, 1:].ravel())[0, 1]
    by_tree = np.corrcoef(counts[:-1].ravel(), counts[1:].ravel())[0, 1]
    assert abs(by_row + 1 / 199) < 0.025  # counts sum to 200; the standard error is 0.005
    assert abs(by_tree) < 0.025


@pytest.mark.parametrize("n_draws", [-1, 2**31, 2**40])
def test_impossible_numbers_of_draws(n_draws):
    """Counts are 32-bit numbers: more draws are refused."""
    message = f"n_draws is {n_draws}; it must be between 0 and 2147483647"
    with pytest.raises(ValueError, match=message):
        drawn(np.ones(3), n_draws)


@pytest.mark.parametrize("weight", [[0.0, 0.0], [1.0, -1.0, 2.0], [np.nan], [np.inf], [1e308] * 3])
def test_impossible_weights(weight):
    """Weights without a positive, finite sum have no probabilities."""
    with pytest.raises(ValueError, match="row_weight must be >= 0, and its sum positive and"):
        drawn(weight, 5)
