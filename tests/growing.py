"""Growing trees from arrays with defaults, for tests of the engine."""

import numpy as np

from okforest.engine import GrowthPlan
from okforest.engine import grow as grow_plan


def grow(
    X,
    outputs,
    rules,
    *,
    n_categories=None,
    gram=False,
    row_weight=None,
    seed=0,
    first_tree=0,
    n_trees=1,
    n_draws=0,
    n_threads=1,
    progress=None,
    row_sums=None,
    row_errors=None,
):
    """Grow trees of a plan with unit weights, numeric features and seed 0 by default."""
    plan = GrowthPlan(
        X=X,
        outputs=outputs,
        gram=gram,
        rules=rules,
        row_weight=np.ones(X.shape[0]) if row_weight is None else row_weight,
        n_categories=np.zeros(X.shape[1], np.int32) if n_categories is None else n_categories,
        seed=seed,
        n_draws=n_draws,
        row_sums=row_sums,
        row_errors=row_errors,
    )
    trees = range(first_tree, first_tree + n_trees)
    return grow_plan(plan, trees, n_threads=n_threads, progress=progress)
