"""The rows that trees draw, without growing the trees."""

import numpy as np

from okforest._typing import Floats
from okforest.engine.cpu import grow
from okforest.engine.plan import GrowthPlan, GrowthRules
from okforest.engine.trees import Trees


def draw(row_weight: Floats, n_draws: int, seed: int, trees: range) -> Trees:
    """Return trees of a root alone, whose members are the rows that they draw, ascending.

    The draws are those of :func:`grow` for the same weights, seed and numbers of trees: they do not
    depend on X and the outputs.
    """
    n = len(row_weight)
    plan = GrowthPlan(
        X=np.broadcast_to(np.zeros((1, 1), dtype=np.float32), (n, 1)),
        outputs=np.empty((n, 0)),
        gram=False,
        rules=GrowthRules(random_splits=True, max_depth=0),
        row_weight=row_weight,
        n_categories=np.zeros(1, dtype=np.int32),
        seed=seed,
        n_draws=n_draws,
    )
    return grow(plan, trees)
