"""Draws of rows without trees."""

import numpy as np

from growing import grow
from okforest.engine import GrowthRules, draw


def test_draws_are_those_of_grown_trees():
    """Rows and times are the same for the same weights, seed and numbers of trees."""
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(200, 3)), rng.integers(0, 3, size=200).astype(float)
    grown = grow(X, X, GrowthRules(), row_weight=weight, n_draws=90, n_trees=6, seed=5)
    drawn = draw(weight, 90, 5, range(2, 6))
    for k, t in enumerate(range(2, 6)):
        order = np.argsort(grown[t].members)
        assert np.array_equal(drawn[k].members, grown[t].members[order])
        assert np.array_equal(drawn[k].times, grown[t].times[order])
