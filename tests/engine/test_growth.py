"""Grown trees equal a slow oracle's, for both forms of the outputs and all rules."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from growing import grow
from okforest.engine import GrowthRules
from reference.random import derive
from reference.trees import (
    as_nested,
    engine_as_nested,
    engine_thresholds,
    grow_tree,
    thresholds_of,
)

RULES = {
    "best": GrowthRules(),
    "best of some features": GrowthRules(max_features=2),
    "random": GrowthRules(random_splits=True, max_features=2),
    "totally random": GrowthRules(random_splits=True, max_features=1, stop_when_pure=False),
    "shallow": GrowthRules(max_depth=3),
    "large leaves": GrowthRules(min_samples_leaf=4, min_samples_split=10),
    "random of large leaves": GrowthRules(random_splits=True, max_features=3, min_samples_leaf=6),
    "least gain": GrowthRules(min_impurity_decrease=0.05),
    "by variance": GrowthRules(order="variance", max_leaf_nodes=7),
    "by gain": GrowthRules(order="gain", max_leaf_nodes=7),
    "random by gain": GrowthRules(
        order="gain", random_splits=True, max_features=2, max_leaf_nodes=9
    ),
    "totally random by gain": GrowthRules(
        order="gain", random_splits=True, max_features=1, max_leaf_nodes=9
    ),
}


def problem(seed, n=40, p=4, q=3, grid=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    if grid:
        X = np.round(X * grid) / grid
    phi = np.c_[X[:, 0] > 0, X[:, 1] * X[:, 2], rng.normal(size=(n, q - 2))].astype(float)
    return X, np.ascontiguousarray(phi[:, :q])


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("q", [1, 3, 11])
def test_both_forms_equal_the_oracle(rules, weighted, q):
    """The factor form (scalar and wide) and the Gram form grow the oracle's tree."""
    X, phi = problem(3, q=q) if q > 1 else (problem(3)[0], problem(3)[1][:, 1:2].copy())
    K = phi @ phi.T
    weight = np.random.default_rng(0).integers(0, 4, len(X)) * 0.5 if weighted else np.ones(len(X))
    seed = 12
    expected = grow_tree(X, K, rules, weight, np.maximum(weight, 1.0), derive(seed, 0))
    for outputs, gram in ((phi, False), (K, True)):
        trees = grow(X, outputs, rules, gram=gram, row_weight=weight, seed=seed)
        assert engine_as_nested(trees[0]) == as_nested(expected)
        np.testing.assert_allclose(engine_thresholds(trees[0]), thresholds_of(expected))
        assert trees.variance[0] == pytest.approx(expected.variance)


@pytest.mark.parametrize("random_splits", [False, True])
@pytest.mark.parametrize("kind", ["bytes", "missing", "categories"])
@pytest.mark.parametrize("min_samples_leaf", [1, 3])
def test_constant_features_are_not_candidates(random_splits, kind, min_samples_leaf):
    """Of features that are rarely different from zero, more are drawn, until K are not constant."""
    n_different = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = (rng.integers(1, 5, size=(70, 30)) * (rng.random((70, 30)) < 0.06)).astype(float)
        if kind == "missing":
            X[rng.random(X.shape) < 0.02] = np.nan
        n_categories = np.full(30, 5 if kind == "categories" else 0, np.int32)
        phi = rng.normal(size=(70, 3)) + X[:, :3]
        phi = np.where(np.isnan(phi), 0.0, phi)
        rules = GrowthRules(
            random_splits=random_splits,
            max_features=4,
            ignore_constant=True,
            min_samples_leaf=min_samples_leaf,
        )
        one = np.ones(70)
        expected = grow_tree(
            X, phi @ phi.T, rules, one, one, derive(seed, 0), categories=n_categories
        )
        inputs = X.astype(np.uint8) if kind == "bytes" else X
        tree = grow(inputs, phi, rules, seed=seed, n_categories=n_categories)[0]
        assert engine_as_nested(tree) == as_nested(expected)
        every = replace(rules, ignore_constant=False)
        other = grow(inputs, phi, every, seed=seed, n_categories=n_categories)[0]
        n_different += not np.array_equal(tree.feature, other.feature)
    assert n_different > 0


@pytest.mark.parametrize("rules", ["best", "best of some features", "random", "large leaves"])
@pytest.mark.parametrize("unit", [None, 0.5, 0.01])
@pytest.mark.parametrize("seed", range(3))
def test_the_frobenius_rule_equals_the_oracle(rules, unit, seed):
    """Each split minimises the error of the kernel predicted between leaves.

    A tree may have more leaves than its rows have weight.
    """
    X, phi = problem(seed)
    K = (phi + 0.7) @ (phi + 0.7).T  # not centred, which matters for this rule
    weight = np.random.default_rng(0).integers(0, 4, len(X)) * unit if unit else np.ones(len(X))
    rules = replace(RULES[rules], frobenius=True)
    expected = grow_tree(X, K, rules, weight, np.maximum(weight, 1.0), derive(seed, 0))
    trees = grow(X, K, rules, gram=True, row_weight=weight, seed=seed)
    assert engine_as_nested(trees[0]) == as_nested(expected)
    np.testing.assert_allclose(engine_thresholds(trees[0]), thresholds_of(expected))


def test_the_frobenius_rule_needs_a_gram_matrix_and_numbers():
    """Its trees differ from trees by variance; wrong outputs and features are errors."""
    X, phi = problem(0)
    K = (phi + 0.7) @ (phi + 0.7).T
    rules = GrowthRules(frobenius=True)
    of_variance = grow(X, K, GrowthRules(), gram=True)
    assert engine_as_nested(grow(X, K, rules, gram=True)[0]) != engine_as_nested(of_variance[0])
    with pytest.raises(ValueError, match="Gram matrix"):
        grow(X, phi, rules)
    with pytest.raises(ValueError, match="categorical"):
        grow(X, K, rules, gram=True, n_categories=np.array([3, 0, 0, 0], dtype=np.int32))


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(2, 60),
    q=st.integers(2, 20),
    grid=st.sampled_from([None, 2]),
    rules=st.sampled_from(list(RULES.values())),
    n_draws=st.sampled_from([0, 30]),
)
def test_gram_form_equals_factor_form(seed, n, q, grid, rules, n_draws):
    """Both forms grow the same forest, also with ties among inputs and with a bootstrap."""
    X, phi = problem(seed, n=n, q=q, grid=grid)
    options = {"rules": rules, "seed": seed, "n_trees": 3, "n_draws": n_draws}
    a, b = grow(X, phi, **options), grow(X, phi @ phi.T, gram=True, **options)
    assert np.array_equal(a.feature, b.feature)
    assert np.array_equal(a.threshold, b.threshold)
    assert np.array_equal(a.members, b.members)
    assert np.allclose(a.variance, b.variance, atol=1e-9)


@pytest.mark.parametrize("n", [3, 6])
def test_samples_of_all_rows(n):
    """Trees whose bootstrap draws every row, with different weights, are the same in both forms."""
    X, phi = problem(1, n=n)
    options = {"rules": GrowthRules(), "n_trees": 12, "n_draws": 60}
    a, b = grow(X, phi, **options), grow(X, phi @ phi.T, gram=True, **options)
    assert len(set(a.variance[a.node_offsets[:-1]])) > 6
    np.testing.assert_allclose(a.variance, b.variance, atol=1e-12)
    assert np.array_equal(a.feature, b.feature)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("random_splits", [False, True])
def test_thresholds_between_adjacent_and_huge_values(dtype, random_splits):
    """A threshold is at least the smaller of two values and below the larger, without overflow."""
    most = np.finfo(dtype).max
    pairs = [(1.0, 2.0), (-1.0, 0.0), (0.0, 1.0), (most, 0.0), (-most, -0.0)]
    pairs = [(dtype(a), np.nextafter(dtype(a), dtype(b))) for a, b in pairs]
    pairs += [(dtype(most / 2), most), (-most, dtype(-most / 2))]
    for a, b in pairs:
        low, high = float(min(a, b)), float(max(a, b))
        X = np.where(np.arange(40)[:, None] % [2, 3] == 0, low, high).astype(dtype)
        for seed in range(8):
            rules = GrowthRules(random_splits=random_splits, max_depth=1)
            trees = grow(X, (X[:, :1] > low).astype(float), rules, seed=seed)
            assert trees.feature.tolist() == [0, -1, -1]
            assert low <= trees.threshold[0] < high
            if not random_splits:
                middle = low / 2 + high / 2
                assert trees.threshold[0] == (middle if low <= middle < high else low)


@pytest.mark.parametrize("weighted", [False, True])
def test_ties_of_large_nodes_of_the_gram_form(weighted):
    """The best cuts of all features part the same rows: what decides is not in float32."""
    rng = np.random.default_rng(0)
    side = np.where(rng.random(400) < 0.5, -1.0, 1.0)[:, None]
    X, phi = side * (1 + rng.random((400, 4))), rng.normal(size=(400, 3))
    phi[:, :1] += 3 * side
    phi -= phi.mean(axis=0)
    weight = rng.integers(1, 4, size=400) / 4 if weighted else np.ones(400)
    for seed in range(10):
        options = {"rules": GrowthRules(max_depth=1), "row_weight": weight, "seed": seed}
        expected = grow(X, phi, **options)
        found = grow(X, phi @ phi.T, gram=True, **options)
        assert np.array_equal(found.feature, expected.feature)
        assert np.array_equal(found.threshold, expected.threshold)


@pytest.mark.parametrize("order", ["depth", "gain"])
@pytest.mark.parametrize("weighted", [False, True])
def test_large_nodes_equal_the_gram_form(weighted, order):
    """Reading large nodes in blocks, and reusing sums, does not change the trees."""
    X, phi = problem(0, n=2600, q=37)
    X = X.round(2)
    weight = np.random.default_rng(0).integers(0, 3, len(X)) * 0.5 if weighted else np.ones(len(X))
    rules = GrowthRules(random_splits=True, max_features=3, max_depth=5)
    if order == "gain":
        rules = replace(rules, order=order, max_leaf_nodes=31)
    options = {"rules": rules, "row_weight": weight, "n_trees": 3, "seed": 2}
    a, b = grow(X, phi, **options), grow(X, phi @ phi.T, gram=True, **options)
    assert np.array_equal(a.feature, b.feature)
    assert np.array_equal(a.members, b.members)
    assert np.allclose(a.variance, b.variance, rtol=1e-9)


@pytest.mark.parametrize("large", [1e6, 1e12])
@pytest.mark.parametrize("q", [1, 5, 40])
def test_an_outlier_does_not_cost_others_their_digits(q, large):
    """Rounding errors of a large output do not remain in the sums over other nodes."""
    for seed in range(4):
        X, phi = problem(seed, n=300, p=6, q=max(q, 2), grid=2)
        phi = phi[:, :q].copy()
        X[0], phi[0] = 9.0, large
        X[2] = X[1]  # so that a full tree has fewer leaves than rows
        rules = GrowthRules(random_splits=seed % 2 == 0, max_features=4)
        expected = grow(X, phi, rules, seed=seed)
        order = np.random.default_rng(seed).permutation(len(X))
        shuffled = grow(X[order], phi[order], rules, seed=seed)
        assert np.array_equal(shuffled.feature, expected.feature)
        by_gain = grow(X, phi, replace(rules, order="gain", max_leaf_nodes=299), seed=seed)
        assert engine_as_nested(by_gain[0]) == engine_as_nested(expected[0])
        for node in np.flatnonzero(expected.end - expected.begin > 2):
            members = expected.members[expected.begin[node] : expected.end[node]]
            if 0 not in members:
                variance = len(members) * phi[members].var(axis=0).sum()
                assert expected.variance[node] == pytest.approx(variance, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("gram", [False, True], ids=["factor", "gram"])
@pytest.mark.parametrize("q", [1, 9])
def test_variances_beside_larger_outputs(gram, q):
    """The sums of a node of little variance are not its parent's sums minus its sibling's."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(100, 3))
        phi = 1 + 1.5e-3 * rng.normal(size=(100, q))
        X[:20, 0] += 50
        phi[:20] += rng.uniform(150, 300, size=(20, q))
        outputs = phi @ phi.T if gram else phi
        tree = grow(X, outputs, GrowthRules(max_depth=3), gram=gram, seed=seed)[0]
        for node in np.flatnonzero(tree.end - tree.begin > 10):
            members = tree.members[tree.begin[node] : tree.end[node]]
            variance = len(members) * phi[members].var(axis=0).sum()
            assert tree.variance[node] == pytest.approx(variance, rel=2e-9)


def test_many_trees_equal_each_alone():
    """With many trees and large inputs, nodes read a column-major copy: the same trees."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 100)).astype(np.float32)
    phi = rng.normal(size=(3000, 5))
    rules = GrowthRules(random_splits=True, max_features=20, max_depth=6)
    many = grow(X, phi, rules, n_trees=8)
    for t in range(8):
        alone = grow(X, phi, rules, first_tree=t)[0]
        assert engine_as_nested(many[t]) == engine_as_nested(alone)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [600, 3000])
def test_features_are_sorted_alike(dtype, n):
    """With many trees nodes are sorted by ranks, with few by values, and small ones together."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(n, 300)) * 20).astype(dtype)
    X[rng.random(X.shape) < 0.02] = np.nan
    phi = np.nan_to_num(X[:, :1]) + rng.normal(size=(n, 2))
    rules = GrowthRules(max_features=6)
    many = grow(X, phi, rules, n_trees=12)
    for t in range(12):
        alone = grow(X, phi, rules, first_tree=t)[0]
        assert engine_as_nested(many[t]) == engine_as_nested(alone)


@pytest.mark.parametrize("weighted", [False, True])
def test_bytes_are_sorted_like_numbers(weighted):
    """Counting sorts bytes as comparisons sort numbers."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, size=(900, 7)).astype(np.uint8)
    X[rng.random(X.shape) < 0.3] = 0
    phi = X[:, :2] / 50.0 + rng.normal(size=(900, 2))
    weight = rng.uniform(0.5, 2, 900) if weighted else None
    rules = GrowthRules(max_features=2)
    trees = [grow(x, phi, rules, n_trees=3, row_weight=weight) for x in (X, X.astype(float))]
    for t in range(3):
        assert engine_as_nested(trees[0][t]) == engine_as_nested(trees[1][t])


@pytest.mark.parametrize("gram", [False, True], ids=["factor", "gram"])
@pytest.mark.parametrize("n_draws", [0, 200])
def test_threads_do_not_change_the_forest(gram, n_draws):
    """One thread and four give the same arrays, and a tree grown on its own is the same."""
    X, phi = problem(0, n=200, q=10)
    outputs = phi @ phi.T if gram else phi
    rules = GrowthRules(random_splits=True, max_features=2)
    options = {"gram": gram, "seed": 5, "n_draws": n_draws}
    one = grow(X, outputs, rules, n_trees=12, **options)
    four = grow(X, outputs, rules, n_trees=12, n_threads=4, **options)
    for field in vars(one):
        assert np.array_equal(getattr(one, field), getattr(four, field)), field
    late = grow(X, outputs, rules, first_tree=7, n_trees=5, **options)
    assert engine_as_nested(late[2]) == engine_as_nested(one[9])


@given(seed=st.integers(0, 2**32), rules=st.sampled_from(list(RULES.values())), data=st.data())
def test_row_order_does_not_matter(seed, rules, data):
    """Without a bootstrap, shuffled rows give the same trees."""
    X, phi = problem(seed, n=30)
    order = np.array(data.draw(st.permutations(range(30))))
    a = grow(X, phi, rules, seed=seed, n_trees=2)
    b = grow(X[order], phi[order], rules, seed=seed, n_trees=2)
    assert np.array_equal(a.feature, b.feature)
    assert np.array_equal(a.threshold, b.threshold)
    for t in range(2):
        ours, theirs = a[t], b[t]
        for i, j in zip(ours.begin, ours.end, strict=True):
            assert sorted(order[theirs.members[i:j]]) == sorted(ours.members[i:j])


@given(seed=st.integers(0, 2**32), rules=st.sampled_from(list(RULES.values())), data=st.data())
def test_integer_weights_equal_repeated_rows(seed, rules, data):
    """Without a bootstrap, a row of weight k is equivalent to k equal rows, under every rule."""
    X, phi = problem(seed, n=25)
    weight = np.array(data.draw(st.lists(st.integers(0, 3), min_size=25, max_size=25)), float)
    weight[:2] = 1.0
    repeats = weight.astype(int)
    options = {"rules": rules, "seed": seed, "n_trees": 2}
    a = grow(X, phi, row_weight=weight, **options)
    b = grow(X.repeat(repeats, axis=0), phi.repeat(repeats, axis=0), **options)
    assert np.array_equal(a.feature, b.feature)
    assert np.allclose(a.threshold, b.threshold, rtol=0, atol=1e-12)
    assert np.allclose(a.weight, b.weight)
    assert np.allclose(a.variance, b.variance, atol=1e-9)


def test_small_weights_count_as_rows():
    """Weights that sum to one do not stop the growth, as in scikit-learn."""
    X, phi = problem(0)
    rules = GrowthRules(min_samples_leaf=3, min_samples_split=8)
    a = grow(X, phi, rules, seed=1)
    b = grow(X, phi, rules, seed=1, row_weight=np.full(len(X), 1 / len(X)))
    assert np.array_equal(a.feature, b.feature)


@pytest.mark.parametrize("random_splits", [False, True])
def test_rounding_errors_of_counts_do_not_matter(random_splits):
    """Ten rows of weight 1.1 count as 11 samples, though the sum is slightly less."""
    X = np.repeat([0.0, 1.0], 10)[:, None]
    rules = GrowthRules(random_splits=random_splits, min_samples_leaf=11, min_samples_split=22)
    assert np.full(10, 1.1).cumsum()[-1] < 11
    for phi in (X, X * [1.0, 2.0, 3.0]):
        assert len(grow(X, phi, rules, row_weight=np.full(20, 1.1)).left) == 3


@pytest.mark.parametrize("order", ["variance", "gain"])
def test_order_of_growth_does_not_change_a_full_tree(order):
    """A full best-first tree is the depth-first one: draws depend on the path to a node."""
    X, phi = problem(1, n=80)
    rules = GrowthRules(random_splits=True, max_features=2, min_samples_leaf=2)
    depth_first = grow(X, phi, rules, seed=4)[0]
    # Without a limit that a tree could exceed, any order is depth first.
    best_first = grow(X, phi, replace(rules, order=order, max_leaf_nodes=79), seed=4)[0]
    assert engine_as_nested(best_first) == engine_as_nested(depth_first)


@pytest.mark.parametrize("gram", [False, True], ids=["factor", "gram"])
@pytest.mark.parametrize("order", ["variance", "gain"])
def test_nodes_that_tie_are_split_in_order(order, gram):
    """Of two nodes whose variances and gains differ by rounding errors, the left one is split."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        side = np.tile([0.0, 1.0], 30)
        x = rng.normal(size=30).repeat(2)
        y = (rng.normal(size=(30, 3)) + np.outer(x[::2] > 0, [1, 2, 3])).repeat(2, axis=0)
        phi = np.c_[y + np.outer(side, rng.normal(size=3)), 20 * side]
        rules = GrowthRules(order=order, max_leaf_nodes=3)
        tree = grow(np.c_[side, x], phi @ phi.T if gram else phi, rules, gram=gram, seed=seed)[0]
        assert tree.left.tolist() == [1, 3, -1, -1, -1]


def test_the_least_gain_is_that_of_the_whole_tree():
    """Large trees are grown in branches; the least gain refers to the weight of all rows."""
    X, phi = problem(2, n=5000)
    rules = GrowthRules(random_splits=True, max_features=2, min_impurity_decrease=1e-4)
    in_branches = grow(X, phi, rules)[0]
    at_once = grow(X, phi, replace(rules, order="gain", max_leaf_nodes=4999))[0]
    assert engine_as_nested(in_branches) == engine_as_nested(at_once)
    assert 20 < len(in_branches.left) < 5000


@pytest.mark.parametrize("random_splits", [False, True])
def test_ties_favour_no_feature(random_splits):
    """Each of several equal features wins about equally often, and in both forms."""
    x = np.random.default_rng(0).normal(size=30)
    X = np.repeat((x > 0)[:, None], 5, axis=1).astype(float)
    phi = (x > 0)[:, None].astype(float) * np.ones((1, 4))
    rules = GrowthRules(random_splits=random_splits)
    winners = []
    for seed in range(300):
        a = grow(X, phi, rules, seed=seed)
        b = grow(X, phi @ phi.T, rules, gram=True, seed=seed)
        assert a.feature[0] == b.feature[0]
        winners.append(a.feature[0])
    assert np.bincount(winners, minlength=5).min() > 35  # 60 expected, 6.9 standard deviation


@pytest.mark.parametrize(("relative", "winners"), [(1e-10, {0, 1}), (1e-7, {1})])
def test_gains_are_compared_to_a_relative_1e_9(relative, winners):
    """Two features with gains 10 and 10 (1 + relative): closer than 1e-9, each wins sometimes."""
    X = np.tile([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], (10, 1))
    phi = (X - 0.5) * np.sqrt([1.0, 1.0 + relative])
    for outputs, gram in ((phi, False), (phi @ phi.T, True)):
        roots = {
            int(grow(X, outputs, GrowthRules(), gram=gram, seed=s).feature[0]) for s in range(40)
        }
        assert roots == winners


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["C", "F", "every second column", "reversed", "read-only"])
def test_inputs_of_any_layout(dtype, layout):
    """Inputs are read in place, in any layout and both precisions."""
    X, phi = problem(2)
    X = np.round(X, 2).astype(np.float32)  # the same numbers in both precisions
    expected = engine_as_nested(
        grow(np.ascontiguousarray(X, np.float64), phi, GrowthRules(), seed=1)[0]
    )
    given_X = {
        "C": lambda: np.ascontiguousarray(X, dtype),
        "F": lambda: np.asfortranarray(X, dtype),
        "every second column": lambda: np.repeat(X, 2, axis=1).astype(dtype)[:, ::2],
        "reversed": lambda: np.ascontiguousarray(X[::-1], dtype)[::-1],
        "read-only": lambda: np.ascontiguousarray(X, dtype),
    }[layout]()
    given_X.flags.writeable = layout != "read-only"
    assert engine_as_nested(grow(given_X, phi, GrowthRules(), seed=1)[0]) == expected


def test_arrays_are_not_converted():
    """Arrays of a wrong type or length are refused, never copied."""
    X, phi = problem(0)
    with pytest.raises(TypeError):
        grow(X.astype(np.float16), phi, GrowthRules())
    with pytest.raises(TypeError):
        grow(X, phi.astype(np.float32), GrowthRules())
    with pytest.raises(ValueError, match="X has length 39; outputs has length 40"):
        grow(X[:-1], phi, GrowthRules())


@pytest.mark.parametrize("gram", [False, True], ids=["factor", "gram"])
def test_large_gram_matrices_use_blocks_and_whole_rows(gram):
    """Nodes above and below half of the rows give consistent variances."""
    X, phi = problem(5, n=300, q=6)
    outputs = phi @ phi.T if gram else phi
    tree = grow(X, outputs, GrowthRules(max_depth=6), gram=gram, seed=0)[0]
    for node in range(len(tree.feature)):
        rows = tree.members[tree.begin[node] : tree.end[node]]
        variance = ((phi[rows] - phi[rows].mean(axis=0)) ** 2).sum()
        assert tree.variance[node] == pytest.approx(variance, abs=1e-9)


def test_progress_reports_and_its_errors_stop_the_growth():
    """The callback is called at the end; an exception in it stops the growth and is raised."""
    X, phi = problem(0)
    seen = []
    grow(X, phi, GrowthRules(), n_trees=5, progress=seen.append)
    assert seen[-1] == 5

    def fail(done):
        raise KeyError("stop here")

    with pytest.raises(KeyError, match="stop here"):
        grow(X, phi, GrowthRules(), n_trees=5, progress=fail)
    assert len(grow(X, phi, GrowthRules(), n_trees=5)) == 5


def test_progress_reports_before_the_first_tree():
    """Signals and the callback are also handled while a large training set is sorted."""
    X = np.random.default_rng(0).normal(size=(1_000_000, 8)).astype(np.float32)
    seen = []
    grow(X, np.zeros((len(X), 1)), GrowthRules(), n_trees=0, progress=seen.append)
    assert len(seen) > 1  # one of them at the end
    assert set(seen) == {0}


def test_unknown_order():
    """An unknown order raises an error that lists the valid ones."""
    X, phi = problem(0)
    with pytest.raises(ValueError, match='"depth", "variance" or "gain"'):
        grow(X, phi, GrowthRules(order="breadth"))
