"""Rounds of boosting on binned inputs: the trees of an oracle, for any number of threads."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from growing import grow
from okforest.engine import GrowthPlan, GrowthRules, apply
from okforest.engine.cpu import BinnedRounds
from reference.histograms import codes_of, grow_binned_tree
from reference.random import derive
from reference.trees import as_nested, engine_as_nested, engine_thresholds

RULES = {
    "by variance": GrowthRules(order="variance", max_leaf_nodes=7),
    "by gain": GrowthRules(order="gain", max_leaf_nodes=7),
    "of some features": GrowthRules(order="gain", max_leaf_nodes=9, max_features=2),
    "large leaves": GrowthRules(order="variance", max_leaf_nodes=12, min_samples_leaf=4),
    "shallow": GrowthRules(order="gain", max_leaf_nodes=20, max_depth=3),
    "least gain": GrowthRules(order="gain", max_leaf_nodes=20, min_impurity_decrease=0.02),
    "all leaves": GrowthRules(order="variance", max_leaf_nodes=1000),
}


def problem(seed, n=60, p=4, q=2, n_values=None, missing=0.0, dtype=np.float64):
    """Return inputs and outputs; of some columns only few distinct values."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    if n_values:
        X = np.round(X * n_values / 6)
    phi = rng.normal(size=(n, q))
    phi[:, 0] += np.sin(2 * X[:, 0]) + (X[:, -1] > 0)
    X[rng.uniform(size=X.shape) < missing] = np.nan
    return X.astype(dtype), phi - phi.mean(axis=0)


def plan_of(X, phi, rules, weight=None, seed=0):
    weight = np.ones(len(X)) if weight is None else weight
    n_categories = np.zeros(X.shape[1], dtype=np.int32)
    return GrowthPlan(X, phi.copy(), False, rules, weight, n_categories, seed)


def grow_round(X, phi, rules, weight=None, *, most=255, number=0, n_threads=1, seed=0):
    """Grow a single round; return it with the residuals that it leaves."""
    plan = plan_of(X, phi, rules, weight, seed)
    grown = BinnedRounds(plan, 0.5, most, n_threads).grow(number, rules, plan.row_weight)
    return grown, plan.outputs


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@pytest.mark.parametrize("most", [2, 5, 16, 255])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("missing", "q"), [(0.0, 1), (0.15, 1), (0.15, 2), (0.1, 6)])
def test_a_round_equals_the_oracle(rules, most, weighted, missing, q):
    """Splits, thresholds and members are those of the tree of codes."""
    X, phi = problem(3, q=q, missing=missing)
    weight = np.random.default_rng(0).integers(0, 4, len(X)) * 0.5 if weighted else np.ones(len(X))
    expected, thresholds = grow_binned_tree(
        X, phi @ phi.T, rules, weight, np.maximum(weight, 1.0), derive(5, 2), most
    )
    grown, _ = grow_round(X, phi, rules, weight, most=most, number=2, seed=5)
    assert engine_as_nested(grown.tree) == as_nested(expected)
    np.testing.assert_allclose(engine_thresholds(grown.tree), thresholds)
    assert grown.tree.variance[0] == pytest.approx(expected.variance)
    assert grown.tree.weight[0] == pytest.approx(weight.sum())


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 400),
    p=st.integers(1, 20),
    q=st.sampled_from([1, 2, 5]),
    most=st.sampled_from([2, 3, 31, 255]),
    n_values=st.sampled_from([None, 5]),
    missing=st.sampled_from([0.0, 0.3]),
    order=st.sampled_from(["gain", "variance"]),
    kind=st.sampled_from(["plain", "weighted", "subsample"]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_a_round_is_the_exact_tree_of_codes(
    seed, n, p, q, most, n_values, missing, order, kind, dtype
):
    """Members are those of the exact splitter on the codes; rows reach the leaves they are in."""
    X, phi = problem(seed, n, p, q, n_values, missing, dtype)
    rng = np.random.default_rng(seed)
    weight = np.ones(n) if kind == "plain" else rng.integers(0, 4, n) * 1.0
    if not weight.any():
        weight[0] = 1.0
    rules = GrowthRules(order=order, max_leaf_nodes=9)
    plan = plan_of(X, phi, rules, weight, seed)
    drawn = weight * (rng.uniform(size=n) < 0.5) if kind == "subsample" else weight
    drawn = drawn if drawn.any() else weight
    grown = BinnedRounds(plan, 0.5, most).grow(3, rules, drawn)
    exact = grow(codes_of(X, weight, most), phi, rules, row_weight=drawn, seed=seed, first_tree=3)
    assert engine_as_nested(grown.tree) == engine_as_nested(exact[0])
    np.testing.assert_allclose(grown.tree.variance, exact.variance, atol=1e-9)
    # Every row is in the leaf that its values reach, and loses half of the mean of its members.
    leaf = np.argsort(np.where(grown.tree.left < 0, grown.tree.begin, n), kind="stable")
    np.testing.assert_array_equal(leaf[grown.places], apply(grown.tree, X)[:, 0])
    for number in range(len(grown.means)):
        own = (grown.places == number) & (drawn > 0)
        np.testing.assert_allclose(
            grown.means[number], 0.5 * np.average(phi[own], axis=0, weights=drawn[own]), atol=1e-12
        )
    np.testing.assert_allclose(plan.outputs, phi - grown.means[grown.places], atol=1e-12)


@given(
    seed=st.integers(0, 2**32 - 1),
    q=st.sampled_from([1, 3]),
    n_values=st.integers(2, 200),
    missing=st.sampled_from([0.0, 0.2]),
    order=st.sampled_from(["gain", "variance"]),
)
def test_few_distinct_values_give_the_exact_tree(seed, q, n_values, missing, order):
    """If no feature has more values than bins, thresholds too are those of the exact splitter."""
    X, phi = problem(seed, 300, 5, q, n_values, missing)
    rules = GrowthRules(order=order, max_leaf_nodes=11)
    grown, _ = grow_round(X, phi, rules, seed=seed)
    exact = grow(X, phi, rules, seed=seed)[0]
    for name in ("feature", "threshold", "left", "missing_left", "members", "begin", "weight"):
        np.testing.assert_array_equal(getattr(grown.tree, name), getattr(exact, name), name)


@pytest.mark.parametrize("q", [1, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_rounds_do_not_depend_on_threads(q, dtype):
    """Trees, means and residuals are the same, bit by bit, for one thread and for four."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 250, (20_000, 20)).astype(dtype)
    phi = np.sin(X[:, :q] / 40) + rng.normal(size=(len(X), q))
    phi -= phi.mean(axis=0)
    rules = GrowthRules(order="variance", max_leaf_nodes=16)
    results = []
    for n_threads in (1, 4):
        plan = plan_of(X, phi, rules)
        rounds = BinnedRounds(plan, 0.3, 100, n_threads)
        grown = [rounds.grow(m, rules, plan.row_weight) for m in range(3)]
        results.append((grown, plan.outputs))
    (one, residuals), (four, others) = results
    np.testing.assert_array_equal(residuals, others)
    for a, b in zip(one, four, strict=True):
        np.testing.assert_array_equal(a.means, b.means)
        np.testing.assert_array_equal(a.places, b.places)
        for name, array in vars(a.tree).items():
            np.testing.assert_array_equal(array, getattr(b.tree, name), name)


def test_equal_outputs_are_one_leaf_and_outliers_do_not_leak():
    """Sums of a far outlier, subtracted from those of its sibling, leave no gain behind."""
    X = np.repeat(np.arange(200.0), 10).reshape(-1, 1)
    rules = GrowthRules(order="variance", max_leaf_nodes=50)
    equal = np.zeros((2000, 1))
    assert len(grow_round(X, equal, rules)[0].means) == 1
    phi = np.zeros((2000, 1))
    phi[:10] = 1e9
    phi[1000:] = 1.0
    grown, residuals = grow_round(X, phi, rules)
    assert grown.tree.node_offsets[-1] == 5  # the outliers, and one cut of the rest
    np.testing.assert_allclose(residuals, phi / 2, rtol=1e-9)


@given(seed=st.integers(0, 2**32 - 1), q=st.sampled_from([1, 3]), digits=st.integers(1, 40))
def test_weights_far_apart_give_finite_trees(seed, q, digits):
    """Also weights that do not change the sum of all: members are divided, means are finite."""
    X, phi = problem(seed, 200, 3, q)
    weight = 10.0 ** np.random.default_rng(seed).uniform(-digits, digits, len(X))
    rules = GrowthRules(order="gain", max_leaf_nodes=30)
    grown, residuals = grow_round(X, phi, rules, weight, most=100)
    tree = grown.tree
    assert np.isfinite(residuals).all()
    assert np.isfinite(tree.variance).all()
    assert (tree.begin < tree.end).all()
    assert sorted(tree.members) == list(range(len(X)))
    if digits <= 3:
        exact = grow(codes_of(X, weight, 100), phi, rules, row_weight=weight)
        assert engine_as_nested(tree) == engine_as_nested(exact[0])


def test_what_does_not_fit_is_refused():
    """Bins are for dense numbers, and weights may not be positive where the bins have none."""
    X, phi = problem(0, n=50)
    rules = RULES["by gain"]
    plan = plan_of(X, phi, rules)
    assert not BinnedRounds.supports(plan)  # too small to pay off
    large = replace(plan, X=np.zeros((2000, 2)), outputs=np.zeros((2000, 1)))
    assert BinnedRounds.supports(replace(large, n_categories=np.zeros(2, np.int32)))
    assert not BinnedRounds.supports(replace(large, n_categories=np.array([0, 3], np.int32)))
    assert not BinnedRounds.supports(replace(large, rules=GrowthRules(random_splits=True)))
    with pytest.raises(ValueError, match="between 2 and 255"):
        BinnedRounds(plan, 0.5, 256)
    weight = np.ones(50)
    weight[0] = 0.0
    rounds = BinnedRounds(replace(plan, row_weight=weight), 0.5, 255)
    with pytest.raises(ValueError, match="positive where"):
        rounds.grow(0, rules, np.ones(50))
    with pytest.raises(ValueError, match="zero everywhere"):
        rounds.grow(0, rules, np.zeros(50))
