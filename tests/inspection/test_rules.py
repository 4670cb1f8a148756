"""Rules and clusters of leaves."""

from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from okforest import OKBagging, OKExtraTrees, OKTotallyRandomTrees, OKTree
from okforest.inspection import Condition, leaf_clusters, leaf_rules
from okforest.kernels import RBF, Dirac

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 2]]


def satisfies(X, rule, model):
    """Return which rows satisfy all conditions of a rule."""
    held = []
    for c in rule.conditions:
        x = X[:, c.feature]
        present = (c.low < x) & (x <= c.high)
        missing = np.isnan(x)
        if c.categories is not None:
            present = np.isin(x, c.categories)
            missing |= ~np.isin(x, model.categories_[c.feature])
        held.append(np.where(missing, c.missing, present))
    return np.logical_and.reduce(held, axis=0, initial=True)


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([OKExtraTrees, OKBagging]),
    st.sampled_from([None, [1], [1, 2]]),
    st.sampled_from([0.0, 0.3]),
)
def test_rules_agree_with_apply(seed, dtype, forest, categorical_features, missing):
    """A row satisfies the rule of a leaf if and only if it reaches that leaf."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, size=(30, 3)).astype(dtype)
    X[rng.uniform(size=X.shape) < missing] = np.nan
    model = forest(2, categorical_features=categorical_features, random_state=seed % 1000)
    model.fit(X, rng.normal(size=30))
    new = np.r_[X, rng.integers(0, 9, size=(20, 3)), np.full((1, 3), np.nan)].astype(dtype)
    for t in range(2):
        rules = leaf_rules(model, t)
        for rule in rules:
            np.testing.assert_array_equal(
                satisfies(new, rule, model), model.apply(new)[:, t] == rule.leaf
            )
            assert len({c.feature for c in rule.conditions}) == len(rule.conditions)
        assert {rule.leaf for rule in rules} == set(np.flatnonzero(model.trees_[t].left < 0))


def test_text_of_rules(tree):
    """A rule is a conjunction, with the samples, weight and variance of its leaf."""
    rules = leaf_rules(tree, feature_names=["size", "age"])
    assert [str(rule) for rule in rules] == [
        "size ≤ 2.5",
        "size > 2.5 and age ≤ 0.5",
        "size > 2.5 and age > 0.5",
    ]
    assert [(rule.leaf, rule.n_samples, rule.weight, rule.variance) for rule in rules] == [
        (1, 2, 2.0, 0.0),
        (3, 2, 2.0, 0.0),
        (4, 2, 2.0, 0.0),
    ]


def test_rules_of_categories_and_missing_values(mixed_tree):
    """Categories are intersected; a condition may leave only missing values."""
    rules = leaf_rules(mixed_tree, feature_names=["colour", "age"])
    assert [str(rule) for rule in rules] == [
        "colour in {red, blue}",
        "(colour in {green} or missing) and age is not missing",
        "colour is missing and age is missing",
        "colour in {green} and age is missing",
    ]
    assert [[c.missing for c in rule.conditions] for rule in rules] == [
        [False],
        [True, False],
        [True, True],
        [False, True],
    ]


def test_weights_and_samples():
    """Samples are distinct rows; the weight is their total weight."""
    weight = rng.uniform(0.5, 2.0, size=60)
    for model in (OKTree(max_depth=2), OKBagging(2, max_depth=2, random_state=0)):
        model.fit(X, Y, sample_weight=weight)
        tree = model.trees_[0]
        rules = leaf_rules(model)
        assert sum(rule.n_samples for rule in rules) == len(np.unique(tree.members))
        assert sum(rule.weight for rule in rules) == pytest.approx(tree.weight[0])


def test_a_single_leaf():
    """If the root is a leaf, it is always reached."""
    (rule,) = leaf_rules(OKTree().fit(np.ones((3, 1)), [1.0, 2.0, 3.0]))
    assert str(rule) == "always"


def test_rules_without_outputs():
    """Without y there is no variance."""
    rules = leaf_rules(OKTotallyRandomTrees(1, max_depth=2, random_state=0).fit(X))
    np.testing.assert_array_equal([rule.variance for rule in rules], nan)


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (Condition(0, "x", high=3.2), "x ≤ 3.2"),
        (Condition(0, "x", low=3.2), "x > 3.2"),
        (Condition(0, "x", low=1.0, high=2.0), "1 < x ≤ 2"),
        (Condition(0, "x", low=1.0, high=1.00002), "1 < x ≤ 1.00002"),
        (Condition(0, "x", low=0.12349, high=0.1235, decimals=2), "0.12349 < x ≤ 0.1235"),
        (Condition(0, "x"), "x is not missing"),
        (Condition(0, "x", low=inf, missing=True), "x is missing"),
        (Condition(0, "x", categories=("a",)), "x in {a}"),
        (Condition(0, "x", high=3.2, missing=True), "x ≤ 3.2"),
        (Condition(0, "x", high=3.2, missing=True, show_missing=True), "(x ≤ 3.2 or missing)"),
        (Condition(0, "x", categories=(), missing=True), "x is missing"),
    ],
)
def test_text_of_conditions(condition, text):
    """Intervals, sets and missing values; bounds close to each other stay distinct."""
    assert str(condition) == text


def test_merging_conditions():
    """Intervals and sets are intersected; a missing value must satisfy both."""
    a = Condition(0, "x", low=1.0, missing=True) & Condition(0, "x", high=2.0, missing=True)
    assert a == Condition(0, "x", low=1.0, high=2.0, missing=True)
    assert not (a & Condition(0, "x")).missing
    b = Condition(0, "x", categories=("a", "b")) & Condition(0, "x", categories=("c", "b"))
    assert b.categories == ("b",)
    assert (b & Condition(0, "x")).categories == ("b",)
    with pytest.raises(ValueError, match="features 0 and 1 cannot be merged; & needs two"):
        a & Condition(1, "y")


@pytest.mark.parametrize("kernel", [RBF(1.0), "linear"])
def test_clusters_are_a_partition(kernel):
    """Every training row is in exactly one cluster: the cluster of the leaf it reaches."""
    model = OKTree(kernel=kernel, min_samples_leaf=4, random_state=0).fit(X, Y)
    clusters = leaf_clusters(model)
    assert sorted(np.concatenate([c.members for c in clusters])) == list(range(60))
    for cluster in clusters:
        assert list(cluster.members) == list(np.flatnonzero(model.apply(X) == cluster.leaf))
        assert cluster.rule.leaf == cluster.leaf
        assert satisfies(X[cluster.members], cluster.rule, model).all()
        K = model.kernel_(Y[cluster.members])
        assert cluster.variance == pytest.approx(np.diag(K).mean() - K.mean())
        nearest = np.argmin(np.diag(K) - 2 * K.mean(axis=1))
        assert cluster.prototype == cluster.members[nearest]


def test_clusters_of_drawn_rows():
    """Bootstrap rows are listed once, and weighted by how often they were drawn."""
    model = OKBagging(3, kernel=RBF(1.0), max_depth=2, random_state=0).fit(X, Y)
    tree = model.trees_[1]
    clusters = leaf_clusters(model, tree=1)
    assert sorted(np.concatenate([c.members for c in clusters])) == sorted(set(tree.members))
    K = model.kernel_(Y)
    for cluster in clusters:
        drawn = slice(tree.begin[cluster.leaf], tree.end[cluster.leaf])
        mean = np.average(K[:, tree.members[drawn]], axis=1, weights=tree.times[drawn])
        distances = np.diag(K) - 2 * mean
        assert cluster.prototype == cluster.members[np.argmin(distances[cluster.members])]


def test_the_first_of_equal_prototypes():
    """Among equal outputs the first row is the prototype, whatever the rounding."""
    y = np.array(["b", "a", "a", "b", "b", "a", "a"])
    (cluster,) = leaf_clusters(OKTree(kernel=Dirac()).fit(np.ones((7, 1)), y))
    assert cluster.prototype == 1
