"""The size of outputs and weights does not change what trees are grown."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from growing import grow
from okforest.engine import GrowthRules
from reference.random import derive
from reference.trees import (
    as_nested,
    engine_as_nested,
    factor_rounding,
    gram_rounding,
    grow_tree,
)


@pytest.mark.parametrize("gram", [False, True], ids=["factor", "gram"])
@pytest.mark.parametrize("random_splits", [False, True])
@pytest.mark.parametrize("exponent", [-300, -100, -78, -76, -75, -60, 60, 100, 300])
def test_outputs_of_any_size(gram, random_splits, exponent):
    """Powers of two change no digit of the outputs, and no tree."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = (rng.normal(size=(60, 20)) > 0).astype(float)
        phi = rng.normal(size=(60, 3))
        phi -= phi.mean(axis=0)
        outputs, unit = (phi @ phi.T, 4.0**exponent) if gram else (phi, 2.0**exponent)
        rules = GrowthRules(random_splits=random_splits)
        expected = grow(X, outputs, rules, gram=gram, seed=seed, n_trees=2)
        found = grow(X, outputs * unit, rules, gram=gram, seed=seed, n_trees=2)
        assert np.array_equal(found.feature, expected.feature)
        assert np.array_equal(found.members, expected.members)


@pytest.mark.parametrize("random_splits", [False, True])
@pytest.mark.parametrize("gram", [False, True], ids=["factor", "gram"])
def test_small_outputs_beside_large_ones(random_splits, gram):
    """Where float32 would lose small outputs, the search is in float64."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(160, 5))
        small = X[:, 0] > 0
        phi = rng.normal(size=(160, 4)) + 5 * np.outer(small, rng.normal(size=4))
        phi[small] *= 1e-23
        exact = phi.astype(np.longdouble)
        rules = GrowthRules(random_splits=random_splits, max_features=5, max_depth=8)
        rounding = gram_rounding if gram else factor_rounding
        one = np.ones(160)
        expected = grow_tree(
            X, exact @ exact.T, rules, one, one, derive(seed, 0), rounding=rounding
        )
        outputs = phi @ phi.T if gram else phi
        found = grow(X, outputs, rules, gram=gram, seed=seed, n_trees=2)
        assert engine_as_nested(found[0]) == as_nested(expected)


@pytest.mark.parametrize("gram", [False, True], ids=["factor", "gram"])
@pytest.mark.parametrize("n", [40, 150])
@pytest.mark.parametrize("exponent", [-33, -55])
def test_light_rows_beside_heavy_ones(gram, n, exponent):
    """Products of small weights and outputs, which float32 would lose, are found in float64."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = np.r_[(rng.normal(size=(n, 20)) > 0).astype(float), np.full((2, 20), 1e6)]
        phi = np.r_[rng.normal(size=(n, 3)), np.full((2, 3), 1e3)] * 2.0**exponent
        weight = np.r_[np.full(n, 2.0**-40), 1.0, 1.0]
        exact = phi.astype(np.longdouble)
        rules = GrowthRules(random_splits=True, max_depth=6)
        rounding = gram_rounding if gram else factor_rounding
        count = np.ones(n + 2)
        expected = grow_tree(
            X, exact @ exact.T, rules, weight, count, derive(seed, 0), rounding=rounding
        )
        outputs = phi @ phi.T if gram else phi
        # Two trees: for the random splits of one, Gram matrices are not copied to float32.
        found = grow(X, outputs, rules, gram=gram, row_weight=weight, seed=seed, n_trees=2)
        assert len(found[0].left) > 20
        assert engine_as_nested(found[0]) == as_nested(expected)


@pytest.mark.parametrize("gram", [False, True], ids=["factor", "gram"])
@pytest.mark.parametrize("heavy", [1e6, 1e8, 1e10, 1e12])
@pytest.mark.parametrize("random_splits", [False, True])
def test_light_rows_among_heavy_ones(gram, heavy, random_splits):
    """Of the two sides of a cut, the lighter one is summed, which keeps its digits."""
    for seed, n in itertools.product(range(4), (12, 40, 150)):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 4))
        phi = rng.normal(size=(n, 3)) + 2 * np.outer(X[:, 0] > 0.3, rng.normal(size=3))
        X[:, 1] = np.maximum(np.round(X[:, 1], 1), 0)
        X[rng.random(n) < 0.2, 2] = np.nan
        weight = np.where(rng.random(n) < 0.1, heavy, 1.0)
        weight[0] = heavy
        exact = phi.astype(np.longdouble)
        rules = GrowthRules(random_splits=random_splits, max_features=4, max_depth=4)
        rounding = gram_rounding if gram else factor_rounding
        expected = grow_tree(
            X,
            exact @ exact.T,
            rules,
            weight.astype(np.longdouble),
            np.ones(n),
            derive(seed, 0),
            rounding=rounding,
        )
        outputs = phi @ phi.T if gram else phi
        found = grow(X, outputs, rules, gram=gram, row_weight=weight, seed=seed)
        assert engine_as_nested(found[0]) == as_nested(expected)


@pytest.mark.parametrize("n", [500, 1000, 2000])
@pytest.mark.parametrize("value", [3.3238901433412034, 0.1, 1 / 3])
def test_equal_outputs_of_many_rows(n, value):
    """Rounding errors grow with the number of rows; they are no variance."""
    X = np.random.default_rng(0).normal(size=(n, 2))
    trees = grow(X, np.full((n, n), value), GrowthRules(), gram=True)
    assert len(trees.left) == 1
    assert trees.variance[0] == 0.0


@pytest.mark.parametrize("exponent", [-40, -20, 20])
def test_frobenius_rule_at_any_scale(exponent):
    """Gains grow with the square of the kernel; so do the differences that count as ties."""
    rules = GrowthRules(frobenius=True, max_depth=3)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, phi = rng.normal(size=(30, 4)), rng.normal(size=(30, 3))
        K = phi @ phi.T
        expected, found = (
            grow(X, gram, rules, gram=True, seed=seed) for gram in (K, K * 2.0**exponent)
        )
        assert np.array_equal(found.feature, expected.feature)


@pytest.mark.parametrize("offset", [None, 0.0, 1e5])
def test_ties_of_the_frobenius_rule(offset):
    """Copies and mirrored copies of a feature are chosen alike, also if outputs are large.

    Of centred outputs, the mean before the first split is zero; of others, it may be most of them.
    """
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(size=60) * 3)
    phi = rng.normal(size=(60, 24)) * 1e6
    weight = rng.uniform(0.1, 3, 60)
    phi += -np.average(phi, axis=0, weights=weight) if offset is None else offset * 1e6
    rules = GrowthRules(frobenius=True, max_depth=1)
    trees = grow(np.c_[x, x, -x, -x], phi @ phi.T, rules, gram=True, row_weight=weight, n_trees=400)
    roots = trees.feature[trees.node_offsets[:-1]]
    assert (np.bincount(roots, minlength=4) > 65).all()  # 100 expected, 4 standard deviations


@pytest.mark.parametrize("gram", [False, True], ids=["factor", "gram"])
def test_missing_values_go_the_same_way_in_any_order(gram):
    """The heavier side takes missing values, whichever side was summed."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = np.round(rng.normal(size=(80, 4)), 1)
        phi = np.round(rng.normal(size=(80, 20)))
        weight = rng.choice([0.1, 0.2, 0.3, 0.7], 80)
        outputs = phi @ phi.T if gram else phi
        trees = [
            grow(
                X,
                outputs,
                GrowthRules(random_splits=True, min_samples_leaf=2, **rules),
                gram=gram,
                row_weight=weight,
                seed=seed,
            )
            for rules in ({}, {"order": "gain", "max_leaf_nodes": 79})
        ]
        if np.array_equal(trees[0].threshold, trees[1].threshold):
            assert np.array_equal(trees[0].missing_left, trees[1].missing_left)


@pytest.mark.parametrize("gram", [False, True], ids=["factor", "gram"])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("light", [1e-10, 1e-16, 1e-30])
def test_rows_of_hardly_any_weight(gram, n_outputs, light):
    """Best splits of the other rows are those that they have alone."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(120, 4))
        phi = X[:, :n_outputs] + rng.normal(size=(120, n_outputs))
        heavy = np.arange(120) % 2 == 0
        rules = GrowthRules(max_depth=2)
        outputs = [phi, phi[heavy]]
        if gram:
            outputs = [part @ part.T for part in outputs]
        weight = np.where(heavy, 1.0, light)
        found = grow(X, outputs[0], rules, gram=gram, row_weight=weight, seed=seed)
        alone = grow(X[heavy], outputs[1], rules, gram=gram, seed=seed)
        assert np.array_equal(found.feature, alone.feature)
        assert np.allclose(found.weight, alone.weight)


@pytest.mark.parametrize("kind", ["vectors", "numbers", "classes"])
@pytest.mark.parametrize("light", [1e-3, 1e-5, 1e-30])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_forms_agree_on_random_splits_of_uneven_weights(missing, light, kind):
    """Features that set the same light rows apart tie in every form of the outputs."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.integers(3, size=(200, 30)).astype(float)
        X[rng.random(X.shape) < missing] = np.nan
        phi = {
            "vectors": rng.normal(size=(200, 20)) + 3,
            "numbers": rng.normal(size=(200, 1)) + 3,
            "classes": np.eye(4)[rng.integers(4, size=200)],
        }[kind]
        weight = np.where(rng.random(200) < 0.5, 1.0, light * rng.random(200))
        rules = GrowthRules(random_splits=True, max_features=30)
        trees = [
            grow(X, outputs, rules, gram=gram, row_weight=weight, seed=seed)
            for outputs, gram in ((phi, False), (phi @ phi.T, True))
        ]
        assert np.array_equal(trees[0].feature, trees[1].feature)
        assert np.array_equal(trees[0].members, trees[1].members)


def test_what_cannot_be_grown_is_refused():
    """A limit of leaves needs best-first growth, and best splits need outputs."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(ValueError, match='order="depth" has no limit of leaves'):
        grow(X, X, GrowthRules(max_leaf_nodes=7))
    with pytest.raises(ValueError, match="outputs without columns need random splits"):
        grow(X, np.empty((30, 0)), GrowthRules(stop_when_pure=False))


def test_negative_norms_of_equal_outputs():
    """Centring may leave tiny numbers below zero for outputs at the centre: they are equal."""
    rng = np.random.default_rng(0)
    X, far = rng.normal(size=(60, 3)), np.arange(60) >= 40
    gram = np.where(far[:, None] & far, 5.0 * np.eye(60), -1e-14 * ~(far[:, None] | far))
    tree = grow(X, gram, GrowthRules(random_splits=True), gram=True)
    for node in np.flatnonzero(tree.left >= 0):
        assert far[tree.members[tree.begin[node] : tree.end[node]]].any()


@pytest.mark.parametrize("gram", [False, True])
@pytest.mark.parametrize("light", [1e-9, 1e-16, 1e-40])
def test_subsets_of_categories_of_uneven_weights(light, gram):
    """Every subset is scored from its lighter side, in which no heavy category hides the others."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        heavy = rng.random(40) < 0.3
        weight = np.where(heavy, 1.0, light * (0.5 + rng.random(40)))
        code = rng.integers(5, size=40)
        y = rng.normal(size=(40, 2))
        if seed % 2 and light == 1e-9:  # with less weight, light rows alone hardly have a gain
            y[heavy] = 0.0
        y -= weight @ y / weight.sum()
        rules = GrowthRules(max_depth=1)
        tree = grow(
            code[:, None].astype(float),
            y @ y.T if gram else y,
            rules,
            gram=gram,
            row_weight=weight,
            n_categories=np.array([5], np.int32),
        )
        left = np.isin(np.arange(40), tree.members[tree.begin[1] : tree.end[1]])
        subsets = (itertools.combinations(range(5), n) for n in (1, 2, 3, 4))
        sides = [np.isin(code, subset) for subset in itertools.chain(*subsets)]
        gains = gains_of([left, *sides], y, weight)
        assert gains[0] >= gains[1:].max() * (1 - 1e-6)


def gains_of(lefts, y, weight):
    """Return the reduction of the total variance by each split, in extended precision."""
    y, weight = y.astype(np.longdouble), weight.astype(np.longdouble)
    left, right = (side * weight for side in (np.array(lefts), ~np.array(lefts)))
    a, b = left.sum(axis=1), right.sum(axis=1)
    apart = (left @ y) / a[:, None] - (right @ y) / b[:, None]
    return a * b / (a + b) * (apart**2).sum(axis=1)


def test_errors_of_outputs():
    """Outputs that differ by less than their rounding errors are equal, in either form."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), 1e-8 * rng.normal(size=(40, 1))
    options = {"rules": GrowthRules(random_splits=True), "gram": True}
    assert len(grow(X, y @ y.T, **options).left) == 79
    assert len(grow(X, y @ y.T, row_errors=np.full(40, 1e-15), **options).left) == 1
    assert len(grow(X, y, row_errors=np.full(40, 1e-15), **options | {"gram": False}).left) == 1
    far = y + (np.arange(40)[:, None] < 20)
    tree = grow(X, far, GrowthRules(), row_errors=np.where(np.arange(40) < 20, 1e-15, 0.0))
    for node in np.flatnonzero(tree.left >= 0):  # a node has the errors of its rows
        assert (tree.members[tree.begin[node] : tree.end[node]] >= 20).any()
    with pytest.raises(ValueError, match="row_errors has length 39; outputs has length 40"):
        grow(X, y @ y.T, row_errors=np.ones(39), **options)


@pytest.mark.parametrize("gram", [False, True], ids=["factor", "gram"])
def test_errors_of_outputs_of_little_weight(gram):
    """The rounding errors of light rows count for as little as the rows."""
    rng = np.random.default_rng(0)
    X, y, heavy = rng.normal(size=(40, 3)), 1e-4 * rng.normal(size=(40, 1)), np.arange(40) < 20
    tree = grow(
        X,
        y @ y.T if gram else y,
        GrowthRules(),
        gram=gram,
        row_weight=np.where(heavy, 1.0, 1e-12),
        row_errors=np.where(heavy, 0.0, 1e-6),
    )
    for leaf in np.flatnonzero(tree.left < 0):
        assert heavy[tree.members[tree.begin[leaf] : tree.end[leaf]]].sum() <= 1


@pytest.mark.parametrize("light", [1e-30, 1e-40, 1e-100])
def test_light_rows_of_classes(light):
    """Rounding errors of the weights of classes are no gain of a split that parts light rows."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        heavy = np.arange(60) < 40
        X = rng.integers(2, size=(60, 16)) * (~heavy[:, None] | (np.arange(16) == 5)).astype(float)
        weight = np.where(heavy, 0.5 + rng.random(60), light)
        tree = grow(
            X,
            np.eye(3)[rng.integers(3, size=60)],
            GrowthRules(random_splits=True, max_depth=1),
            row_weight=weight,
            seed=seed,
        )
        assert tree.feature[0] == 5


@pytest.mark.parametrize("order", ["depth", "gain"])
@pytest.mark.parametrize("n_outputs", [1, 3, 40])
@pytest.mark.parametrize("spread", [1e-5, 1e-7, 1e-9, 1e-10])
def test_tight_clusters_are_split_to_the_end(spread, n_outputs, order):
    """Vectors that differ by few digits are told apart, by the best splits; equal ones are not."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n = 60
        X = rng.normal(size=(n, 3)) if seed % 2 else np.round(rng.normal(size=(n, 60)), 1)
        near = rng.normal(size=(n, n_outputs)) + np.outer(X[:, 2] > 0, rng.normal(size=n_outputs))
        y = rng.normal(size=(3, n_outputs))[rng.integers(3, size=n)] + spread * near
        y *= 10.0 ** rng.uniform(-8, 8)
        if seed % 3 == 0:
            y = y[rng.integers(n // 3, size=n)]
        weight = 10.0 ** rng.uniform(-3, 0, n) if seed > 2 else np.ones(n)
        rules = GrowthRules(order=order, max_leaf_nodes=2**31 - 1 if order == "depth" else n - 1)
        tree = grow(X, y, rules, row_weight=weight, seed=seed)[0]
        n_leaves = 0
        for node in range(len(tree.left)):
            rows = tree.members[tree.begin[node] : tree.end[node]]
            n_leaves += tree.left[node] < 0
            equal = (y[rows] == y[rows[0]]).all()
            assert equal or tree.left[node] >= 0 or order == "gain"
            assert not equal or tree.left[node] < 0
            if tree.left[node] >= 0 and len(rows) > 2:
                sides = [X[rows, f] <= x for f in range(X.shape[1]) for x in set(X[rows, f])]
                left = X[rows, tree.feature[node]] <= tree.threshold[node]
                splits = [left, *(side for side in sides if not side.all())]
                gains = gains_of(splits, y[rows] - y[rows[0]], weight[rows])
                assert gains[0] >= gains[1:].max() * (1 - 1e-8)
        assert order == "depth" or n_leaves >= min(n - 1, len(np.unique(y, axis=0)))


@pytest.mark.parametrize("random_splits", [False, True])
@pytest.mark.parametrize("n_outputs", [2, 40])
def test_order_of_growth_in_tight_clusters(n_outputs, random_splits):
    """Rows around a node's own mean, or around the mean of a node above, have the same splits."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = np.round(rng.normal(size=(120, 30)))
        y = rng.normal(size=(4, n_outputs))[rng.integers(4, size=120)]
        for spread in (1e-5, 1e-9):
            y = y + spread * rng.normal(size=(3, n_outputs))[rng.integers(3, size=120)]
        rules = GrowthRules(random_splits=random_splits, max_features=10)
        one = grow(X, y, rules, seed=seed)
        other = grow(X, y, replace(rules, order="gain", max_leaf_nodes=119), seed=seed)
        assert engine_as_nested(one[0]) == engine_as_nested(other[0])


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("digits", [0, 4])
def test_equal_vectors_of_many_rows(digits, n_outputs):
    """Neither rounding errors of long sums, nor of a few last digits, are a variance."""
    rng = np.random.default_rng(0)
    n = 30_000
    X, label = rng.normal(size=(n, 2)), rng.integers(3, size=n)
    y = np.array([1 / 3, 0.1, 3.3238901433412034])[label, None] * np.ones(n_outputs)
    y *= 1 + digits * np.finfo(float).eps * rng.integers(-1, 2, size=y.shape)
    tree = grow(X, y, GrowthRules(random_splits=True))[0]
    for node in np.flatnonzero(tree.left >= 0):
        assert len(set(label[tree.members[tree.begin[node] : tree.end[node]]])) > 1


def test_order_of_growth_at_the_limit_of_a_gram_matrix():
    """Which nodes are leaves hardly depends on the block that a node above was centred in."""
    n_different = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(100, 5))
        y = rng.normal(size=(4, 6))[(X[:, 0] > 0) + 2 * (X[:, 1] > 0)]
        y += 1e-7 * rng.normal(size=(100, 6))
        y -= y.mean(axis=0)
        rules = GrowthRules(random_splits=seed % 2 == 1)
        one = grow(X, y @ y.T, rules, gram=True, seed=seed)
        by_gain = replace(rules, order="gain", max_leaf_nodes=99)
        other = grow(X, y @ y.T, by_gain, gram=True, seed=seed)
        n_different += engine_as_nested(one[0]) != engine_as_nested(other[0])
    assert n_different <= 8  # rounding errors of the variances themselves differ


def test_small_gains_in_a_tight_cluster():
    """Gains of a thousandth of the variance are told apart, far from the centre of all outputs."""
    A, B, sign = (x.ravel() for x in np.meshgrid([0, 1], [0, 1], np.tile([-1, 1], 250)))
    spread = 1e-7
    a = 0.06 * spread
    y = np.c_[a * (A - 0.5) + a * (1 + 2e-3) * (B - 0.5) + spread, spread * sign] + 1.0
    X = np.c_[A, B, np.ones(len(A))].astype(float)
    for seed in range(20):
        assert grow(X, y, GrowthRules(max_depth=1), seed=seed)[0].feature[0] == 1


def test_sums_of_all_rows_in_bootstraps():
    """A tree that draws all rows does not take the sum of another one, which drew them as well."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 3)), rng.normal(size=(12, 3))
    options = {"n_draws": 400, "seed": 1}
    for t in range(4):
        alone = grow(X, y, GrowthRules(), first_tree=t, **options)[0]
        together = grow(X, y, GrowthRules(), n_trees=4, **options)[t]
        assert together.variance[0] == alone.variance[0]
