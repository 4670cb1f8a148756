"""Plans to grow on a GPU, and what their trees are compared with."""

from dataclasses import fields

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from okforest.engine import GrowthPlan, GrowthRules, Trees, check_trees, grow

EXACT = {field.name for field in fields(Trees)} - {"weight", "variance"}


def make_plan(
    n=300, p=10, rank=20, *, seed=0, dtype=np.float32, missing=0.0, weight=None, n_draws=0,
    n_distinct=None, shift=0.0, **rules,
):  # fmt: skip
    """Return a plan on random data; ``rules`` are options of random splits."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 20, size=(n, p)) if dtype == np.uint8 else rng.normal(size=(n, p))
    outputs = rng.normal(size=(n, rank)) + (X[:, :1] > 0) + shift
    if n_distinct is not None:
        outputs = outputs[rng.integers(0, n_distinct, n)]
    X = X.astype(dtype)
    if missing:
        X[rng.random(X.shape) < missing] = np.nan
    weights = {None: np.ones(n), "dyadic": rng.choice([0.0, 0.25, 1.0, 2.5, 8.0], n)}
    return GrowthPlan(
        X=X,
        outputs=outputs,
        gram=False,
        rules=GrowthRules(random_splits=True, **{"max_features": 4, **rules}),
        row_weight=weights[weight],
        n_categories=np.zeros(p, np.int32),
        seed=seed,
        n_draws=n_draws,
    )


def assert_same_trees(plan, grow_there, trees=range(2, 5)):
    expected, found = grow(plan, trees), grow_there(plan, trees)
    for name in EXACT:
        one, other = getattr(expected, name), getattr(found, name)
        assert one.dtype == other.dtype, name
        assert_array_equal(one, other, err_msg=name)
    assert_allclose(found.weight, expected.weight, rtol=1e-12)
    scale = np.repeat(expected.variance[expected.node_offsets[:-1]], np.diff(expected.node_offsets))
    error = np.abs(found.variance - expected.variance)
    rounding = 1e-14 * (np.trace(plan.outputs) if plan.gram else (plan.outputs**2).sum())
    assert (error <= 1e-5 * expected.variance + 1e-9 * scale + rounding).all()
    check_trees(found, plan.X.shape[1])


CASES = {
    "small": {"n": 30},
    "two_rows": {"n": 2},
    "one_row": {"n": 1},
    "middle": {"n": 100},
    "large": {"n": 400},
    "float64": {"dtype": np.float64},
    "bytes": {"dtype": np.uint8},
    "all_features": {"max_features": 10},
    "one_feature": {"max_features": 1},
    "many_features": {"p": 40, "max_features": 20},
    "missing": {"missing": 0.1},
    "mostly_missing": {"missing": 0.9, "p": 4, "max_features": 2},
    "missing_all_features": {"missing": 0.2, "max_features": 10, "dtype": np.float64},
    "weights": {"weight": "dyadic"},
    "weights_and_missing": {"weight": "dyadic", "missing": 0.2},
    "bootstrap": {"n_draws": 300},
    "subsample": {"n_draws": 100, "missing": 0.1},
    "max_depth": {"max_depth": 3},
    "min_samples_leaf": {"min_samples_leaf": 5.0},
    "min_samples_leaf_weights": {"min_samples_leaf": 5.0, "weight": "dyadic"},
    "min_samples_split": {"min_samples_split": 9.0},
    "min_impurity_decrease": {"min_impurity_decrease": 0.05},
    "min_impurity_decrease_weights": {"min_impurity_decrease": 0.05, "weight": "dyadic"},
    "equal_outputs": {"n_distinct": 5},
    "constant_outputs": {"n_distinct": 1},
    "far_from_zero": {"shift": 1000.0},
    "one_column": {"rank": 1},
    "many_columns": {"rank": 300, "max_features": 3},
    "no_outputs": {"rank": 0, "max_features": 1, "stop_when_pure": False},
}
