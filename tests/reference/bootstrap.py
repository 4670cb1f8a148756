"""Bootstrap counts by the book, and how well observed counts fit their distribution."""

import numpy as np
from scipy import stats

from reference.random import Rng, derive

MIN_EXPECTED = 5  # draws per cell, the usual rule for a chi-square test


def bootstrap_counts(weight, n_draws, seed):
    """Return how often each row is drawn, by inverting the binomial distribution row by row.

    The core inverts it too where the mean is below 10, with the same uniform numbers.
    """
    counts = np.zeros(len(weight), dtype=np.int64)
    for position, i in enumerate(np.flatnonzero(weight)):
        left = n_draws - counts.sum()
        this, later = weight[i], weight[i + 1 :].sum()
        u = Rng(derive(seed, position)).uniform()
        if later == 0:
            counts[i] = left
        elif this <= later:
            counts[i] = stats.binom.ppf(u, left, this / (this + later))
        else:
            counts[i] = left - stats.binom.ppf(u, left, later / (this + later))
    return counts


def fit_of_counts(counts, n_draws, probability, n_cells=30):
    """Return the p-value of a chi-square test of counts against a binomial distribution.

    Cells are about equally probable intervals, merged with a neighbour if few counts are expected.
    """
    levels = np.linspace(0, 1, n_cells + 1)[1:-1]
    edges = np.unique(stats.binom.ppf(levels, n_draws, probability))
    expected = np.diff([0, *stats.binom.cdf(edges, n_draws, probability), 1]) * len(counts)
    observed = np.bincount(np.searchsorted(edges, counts), minlength=len(expected))
    cell = np.zeros(len(expected), dtype=int)
    total = 0.0
    for k in range(1, len(expected)):
        total += expected[k - 1]
        full = total >= MIN_EXPECTED and expected[k:].sum() >= MIN_EXPECTED
        cell[k] = cell[k - 1] + full
        total = 0.0 if full else total
    expected, observed = np.bincount(cell, expected), np.bincount(cell, observed)
    return stats.chisquare(observed, expected).pvalue if len(expected) > 1 else 1.0
