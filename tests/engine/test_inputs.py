"""Missing values and categorical features, by the oracle and by each other."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from growing import grow
from okforest import OKExtraTrees
from okforest._utils.inputs import learn_inputs
from okforest.engine import GrowthRules, apply, leaf_weights
from reference.random import derive
from reference.trees import (
    as_nested,
    engine_as_nested,
    engine_thresholds,
    forest_weights,
    grow_tree,
    leaf_of,
    thresholds_of,
)

RULES = {
    "best": GrowthRules(),
    "best of some": GrowthRules(max_features=2, min_samples_leaf=2),
    "random": GrowthRules(random_splits=True, max_features=2),
    "totally random": GrowthRules(random_splits=True, max_features=1, stop_when_pure=False),
    "by gain": GrowthRules(order="gain", max_leaf_nodes=6),
}
ARRAYS = ("feature", "threshold", "missing_left", "subset", "subset_words", "left", "members")


def mixed(seed, n=40, missing=0.25, n_categories=(0, 4, 0, 14)):
    """Return numeric and categorical inputs, some missing, and outputs that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    for j, k in enumerate(n_categories):
        if k:
            X[:, j] = rng.integers(0, k, size=n)
    gaps = rng.uniform(size=X.shape) < missing
    phi = np.c_[
        X[:, 0] + gaps[:, 2],
        np.isin(X[:, 1], [0, 3]) * 1.0,
        np.sin(7 * X[:, 3]),
        rng.normal(size=n),
    ]
    X[gaps] = np.nan
    return X, phi, np.array(n_categories, dtype=np.int32)


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_both_forms_equal_the_oracle(rules, weighted, seed):
    """Sides of missing values and subsets of categories are the best of all."""
    X, phi, n_categories = mixed(seed)
    K = phi @ phi.T
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X)) if weighted else np.ones(len(X))
    expected = grow_tree(
        X, K, rules, weight, np.maximum(weight, 1.0), derive(seed, 0), n_categories
    )
    for outputs, gram in ((phi, False), (K, True)):
        trees = grow(
            X, outputs, rules, gram=gram, row_weight=weight, seed=seed, n_categories=n_categories
        )
        assert engine_as_nested(trees[0]) == as_nested(expected)
        np.testing.assert_allclose(engine_thresholds(trees[0]), thresholds_of(expected))


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(2, 70),
    missing=st.sampled_from([0.0, 0.3, 0.9]),
    rules=st.sampled_from(list(RULES.values())),
    n_draws=st.sampled_from([0, 40]),
)
def test_gram_form_equals_factor_form(seed, n, missing, rules, n_draws):
    """Both forms choose the same sides and subsets."""
    X, phi, n_categories = mixed(seed, n=n, missing=missing)
    options = {"rules": rules, "seed": seed, "n_trees": 2, "n_draws": n_draws}
    options["n_categories"] = n_categories
    a, b = grow(X, phi, **options), grow(X, phi @ phi.T, gram=True, **options)
    for name in ARRAYS:
        assert np.array_equal(getattr(a, name), getattr(b, name)), name


@pytest.mark.parametrize("kind", ["number", "vectors", "classes"])
@pytest.mark.parametrize("n_values", [2, 100])
@pytest.mark.parametrize("min_samples_leaf", [1, 4])
def test_random_cuts_of_missing_values_equal_the_oracle(kind, n_values, min_samples_leaf):
    """Missing values take a random side, by weight; also if they part from a single value."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, n_values, size=(120, 40)).astype(float)
        X[rng.random(X.shape) < 0.3] = np.nan
        phi = {
            "number": rng.normal(size=(120, 1)) + np.isnan(X[:, :1]),
            "vectors": rng.normal(size=(120, 20)) + np.isnan(X[:, :1]),
            "classes": np.eye(3)[rng.integers(3, size=120)],
        }[kind]
        weight = rng.uniform(0.5, 2, 120)
        rules = GrowthRules(
            random_splits=True, max_features=18, min_samples_leaf=min_samples_leaf, max_depth=9
        )
        expected = grow_tree(
            X, phi @ phi.T, rules, weight, np.maximum(weight, 1.0), derive(seed, 0)
        )
        for outputs, gram in ((phi, False), (phi @ phi.T, True)):
            tree = grow(X, outputs, rules, gram=gram, row_weight=weight, seed=seed)[0]
            assert engine_as_nested(tree) == as_nested(expected)
            np.testing.assert_allclose(engine_thresholds(tree), thresholds_of(expected))


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_inputs_follow_the_side_they_took_in_training(rules):
    """Apply sends training rows, missing and categorical values included, to their own leaves."""
    X, phi, n_categories = mixed(1, n=200)
    trees = grow(X, phi, rules, n_trees=3, n_categories=n_categories)
    leaves = apply(trees, X)
    for t in range(3):
        tree = trees[t]
        for leaf in np.flatnonzero(tree.left < 0):
            members = np.sort(tree.members[tree.begin[leaf] : tree.end[leaf]])
            assert np.array_equal(members, np.flatnonzero(leaves[:, t] == leaf))
    np.testing.assert_allclose(leaf_weights(trees, leaves).toarray(), forest_weights(trees, X, 200))


def test_new_inputs_follow_the_rules():
    """Missing values and unknown categories go where the reference sends them."""
    X, phi, n_categories = mixed(1, n=100)
    trees = grow(X, phi, GrowthRules(random_splits=True, max_features=2), n_categories=n_categories)
    new = mixed(2, n=50, missing=0.5)[0]
    new[:10, 1], new[10:20, 3] = 17, -3
    leaves = apply(trees, new)[:, 0]
    assert [leaf_of(trees[0], x) for x in new] == leaves.tolist()


def test_missing_in_prediction_alone_goes_to_the_larger_side():
    """Values missing only in prediction, and unknown categories, go to the larger side."""
    X = np.arange(10.0)[:, None]
    y = (X >= 7).astype(float)
    tree = grow(X, y, GrowthRules(max_depth=1))
    assert apply(tree, np.array([[np.nan]]))[0, 0] == apply(tree, np.array([[0.0]]))[0, 0]
    codes = np.repeat([0.0, 1.0, 2.0], [2, 2, 6])[:, None]
    tree = grow(codes, (codes == 2) * 1.0, GrowthRules(max_depth=1), n_categories=np.int32([5]))
    majority = apply(tree, np.array([[2.0]]))[0, 0]
    for unknown in (3.0, 4.0, 5.0, -1.0, np.nan):
        assert apply(tree, np.array([[unknown]]))[0, 0] == majority
    assert apply(tree, np.array([[1.0]]))[0, 0] != majority


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_missing_values_have_no_sign(rules, dtype):
    """NaN with its sign bit set, as some operations return it, is missing like any other."""
    X, phi, n_categories = mixed(3, n=60)
    X = X.astype(dtype)
    negative = np.where(np.isnan(X), np.copysign(X, dtype(-1)), X)
    assert np.signbit(negative[np.isnan(X)]).all()
    expected = grow(X, phi, rules, n_categories=n_categories)
    trees = grow(negative, phi, rules, n_categories=n_categories)
    for name in ARRAYS:
        assert np.array_equal(getattr(trees, name), getattr(expected, name)), name
    assert np.array_equal(apply(trees, negative), apply(expected, X))


def test_missingness_alone_can_split():
    """A feature with missing values and one constant can split by which values are missing."""
    X = np.where(np.arange(20) % 3 == 0, np.nan, 1.0)[:, None]
    y = np.isnan(X).astype(float)
    for random_splits in (False, True):
        tree = grow(X, y, GrowthRules(random_splits=random_splits))
        assert tree.threshold[0] == np.inf
        assert not tree.missing_left[0]
        assert tree.variance[1:].sum() == pytest.approx(0.0)


def test_many_categories_are_ordered_optimally_for_scalar_outputs():
    """With scalar outputs, sorting along the principal direction finds the best subset."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 100, size=500)  # more than one word of bits
    effect = rng.permutation(100) % 2 * 3.0
    y = (effect[codes] + rng.normal(size=500) * 0.01)[:, None]
    X = codes[:, None].astype(float)
    tree = grow(X, y, GrowthRules(max_depth=1), n_categories=np.int32([100]))
    left = set(tree.left_categories(0))
    seen = set(codes)
    groups = {c for c in seen if effect[c] > 0}, {c for c in seen if effect[c] == 0}
    assert left & seen in groups


@pytest.mark.parametrize("seed", range(5))
def test_row_order_and_weights_with_missing_values(seed):
    """Shuffled rows give the same trees, and so do weights instead of repeated rows."""
    X, phi, n_categories = mixed(seed, n=30)
    rng = np.random.default_rng(seed)
    order, repeats = rng.permutation(30), rng.integers(1, 4, 30)
    options = {"seed": 3, "n_categories": n_categories}
    for rules in RULES.values():
        rules = replace(rules, min_samples_leaf=1)
        a = grow(X, phi, rules, **options)
        b = grow(X[order], phi[order], rules, **options)
        assert np.array_equal(a.feature, b.feature)
        assert np.array_equal(a.subset_words, b.subset_words)
        a = grow(X, phi, rules, row_weight=repeats.astype(float), **options)
        b = grow(np.repeat(X, repeats, 0), np.repeat(phi, repeats, 0), rules, **options)
        assert np.array_equal(a.feature, b.feature)
        assert np.array_equal(a.missing_left, b.missing_left)


@pytest.mark.parametrize("random_splits", [False, True])
@pytest.mark.parametrize("layout", ["rows", "columns", "strided"])
@pytest.mark.parametrize("n", [400, 9000])
def test_bytes_give_the_trees_of_floats(random_splits, layout, n):
    """Inputs of type uint8 are split as they are, with the trees of the same values in float32."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (n, 130)).astype(np.uint8)
    X[:, 1] //= 128  # two values
    X[:, 2] = 255
    X[:, 3] //= 30
    n_categories = np.zeros(130, np.int32)
    n_categories[3] = 8  # and one code too many, which counts as missing
    X[0, 3] = 255
    phi = rng.normal(size=(n, 3)) + X[:, :3]
    stored = {
        "rows": X,
        "columns": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=1)[:, ::2],
    }[layout]
    rules = GrowthRules(
        random_splits=random_splits, max_features=4, min_samples_leaf=2, max_depth=9
    )
    options = {"n_categories": n_categories, "n_trees": 8 if random_splits else 1}
    trees = grow(stored, phi, rules, **options)
    for name, array in vars(grow(X.astype(np.float32), phi, rules, **options)).items():
        assert np.array_equal(getattr(trees, name), array), name
    assert np.array_equal(apply(trees, stored), apply(trees, X.astype(np.float64)))


@pytest.mark.parametrize("layout", ["rows", "columns", "strided"])
@pytest.mark.parametrize("n_classes", [2, 7])
def test_counts_of_classes_give_the_trees_of_weights(layout, n_classes):
    """Rows of weight one are counted, in bytes if X holds them; other weights are added up.

    Weights are scaled by a power of two, so that the trees are the same. Nodes have more rows of a
    class than a byte can count.
    """
    rng = np.random.default_rng(n_classes)
    n = 6000
    labels = rng.integers(0, n_classes, n)
    X = rng.integers(0, 256, (n, 140)).astype(np.uint8)
    X[:, 0] = 255 * (labels == 1)
    X[:, 1] = 255
    X[:, 2] = labels + rng.integers(0, 2, n)
    stored = {
        "rows": X,
        "columns": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=1)[:, ::2],
    }[layout]
    rules = GrowthRules(random_splits=True, max_features=28)
    phi = np.eye(n_classes)[labels]
    expected = grow(X.astype(np.float64), phi, rules, row_weight=np.full(n, 2.0), n_trees=8)
    for inputs in (stored, stored.astype(np.float32), stored.astype(np.float64)):
        trees = grow(inputs, phi, rules, n_trees=8)
        for name in ("feature", "threshold", "left", "members", "missing_left"):
            assert np.array_equal(getattr(trees, name), getattr(expected, name)), name
        assert np.array_equal(2 * trees.variance, expected.variance)


def test_models_keep_bytes():
    """Models pass uint8 arrays and frames on as they are; sparse matrices become floats."""
    X = np.random.default_rng(0).integers(0, 9, (60, 4)).astype(np.uint8)
    y = X.sum(axis=1)
    expected = OKExtraTrees(5, random_state=0).fit(X.astype(float), y)
    for stored in (X, pd.DataFrame(X), sp.csr_array(X)):
        model = OKExtraTrees(5, random_state=0).fit(stored, y)
        assert np.array_equal(model.predict(stored), expected.predict(X.astype(float)))
    assert learn_inputs(OKExtraTrees(), X).X is X


@pytest.mark.parametrize("n_levels", [3, 9, 14])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_one_output_has_the_best_of_all_subsets(n_levels, missing):
    """For one output, the order of means holds the best subset, however few the categories."""
    rng = np.random.default_rng(n_levels)
    codes = rng.integers(0, n_levels, 120).astype(float)
    y = rng.normal(size=n_levels)[codes.astype(int)] + rng.normal(size=120)
    codes[rng.uniform(size=120) < missing] = np.nan
    tree = grow(
        codes[:, None], y[:, None], GrowthRules(max_depth=1), n_categories=np.int32([n_levels])
    )
    groups = np.where(np.isnan(codes), n_levels, codes).astype(int)
    sums = np.bincount(groups, y - y.mean(), n_levels + 1)
    counts = np.bincount(groups, minlength=n_levels + 1)
    subsets = np.arange(1, 2 ** (n_levels + 1))[:, None] >> np.arange(n_levels + 1) & 1
    S, n = subsets @ sums, subsets @ counts
    inner = (n > 0) & (n < 120)
    best = (S**2 * 120 / (n * (120.0 - n)).clip(1))[inner].max()
    gain = tree.variance[0] - tree.variance[1:].sum()
    assert gain == pytest.approx(best, rel=1e-9)
