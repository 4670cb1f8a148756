"""Searches in float32 decide as float64 does: at all scales, with offsets, ties and clusters."""

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
    factor_rounding,
    gram_rounding,
    grow_tree,
    thresholds_of,
)


def adversarial(seed):
    """Return inputs, outputs and weights with ties, mirrored features, clusters and odd scales."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(20, 90)), int(rng.integers(2, 7))
    q = int(rng.choice([1, 2, 3, 9, 17, 33]))
    X = rng.normal(size=(n, p))
    if rng.random() < 0.5:
        X = np.round(X * 2) / 2
    if rng.random() < 0.3:
        X[:, -1] = -X[:, 0]  # the same partitions, with sides exchanged
    phi = rng.normal(size=(n, q)) + 2 * np.outer(X[:, 0] > 0, rng.normal(size=q))
    if rng.random() < 0.3:
        phi = np.round(phi)  # equal outputs
    if rng.random() < 0.3:
        phi = phi * 1e-4 + 3 * rng.normal(size=(3, q))[rng.integers(3, size=n)]  # clusters
    phi = (phi - phi.mean(axis=0)) * 10.0 ** rng.integers(-8, 9)
    weight = rng.integers(0, 4, n) * 0.5 if rng.random() < 0.3 else np.ones(n)
    weight[0] = 1.0
    return X, np.ascontiguousarray(phi), weight


def check_decisions(seed):
    # Two trees: for the random splits of one, Gram matrices are not copied to float32.
    X, phi, weight = adversarial(seed)
    rules = GrowthRules(
        random_splits=seed % 2 == 0, max_features=1 + seed // 2 % X.shape[1], max_depth=5
    )
    exact = phi.astype(np.longdouble)
    K = exact @ exact.T
    for outputs, gram in ((phi, False), (phi @ phi.T, True)):
        rounding = gram_rounding if gram else factor_rounding
        count = np.maximum(weight, 1.0)
        expected = grow_tree(X, K, rules, weight, count, derive(seed, 0), rounding=rounding)
        trees = grow(X, outputs, rules, gram=gram, row_weight=weight, seed=seed, n_trees=2)
        assert engine_as_nested(trees[0]) == as_nested(expected), (seed, gram)


@given(st.integers(0, 10**6))
def test_decisions_are_those_of_float64(seed):
    """Both forms of the outputs grow the tree of an oracle in extended precision."""
    check_decisions(seed)


@pytest.mark.parametrize("n", [63, 64, 65, 79, 81, 128, 129, 193, 260])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["random", "best"])
def test_gram_matrices_of_several_panels(n, weighted, kind):
    """Float32 copies of Gram matrices are read in panels of 64 columns, of 1 to 4 vectors each."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 6))
    phi = rng.normal(size=(n, 9)) + 2 * np.outer(X[:, 0] > 0, rng.normal(size=9))
    phi -= phi.mean(axis=0)
    weight = rng.integers(1, 4, n) * 0.5 if weighted else np.ones(n)
    count = np.maximum(weight, 1.0)
    rules = GrowthRules(random_splits=kind == "random", max_features=6, max_depth=3)
    exact = phi.astype(np.longdouble)
    expected = grow_tree(
        X, exact @ exact.T, rules, weight, count, derive(n, 0), rounding=gram_rounding
    )
    trees = grow(X, phi @ phi.T, rules, gram=True, row_weight=weight, seed=n, n_trees=2)
    assert engine_as_nested(trees[0]) == as_nested(expected)


@pytest.mark.parametrize("gram", [False, True], ids=["factor", "gram"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_constant", [0, 20])
def test_gains_that_float32_cannot_tell_apart(gram, weighted, n_constant):
    """The larger of two gains wins, however close, also if the last features are constant."""
    rng = np.random.default_rng(4)
    for seed in range(30):
        first, second = np.repeat([0.0, 1.0], 100), np.tile([0.0, 1.0], 100)
        noise = rng.normal(size=(200, 40)) * 0.3
        for side in (first, second):  # the noise does not change the gains
            for value in (0.0, 1.0):
                noise[side == value] -= noise[side == value].mean(axis=0)
        phi = np.c_[first - 0.5, (second - 0.5) * (1 + 2e-8), noise]
        X = np.c_[first, second, np.zeros((200, n_constant))]
        weight = np.full(200, 3.0 if weighted else 1.0)
        outputs = phi @ phi.T if gram else phi
        rules = GrowthRules(random_splits=True, max_features=X.shape[1], max_depth=1)
        trees = grow(X, outputs, rules, gram=gram, row_weight=weight, seed=seed, n_trees=2)
        assert trees.feature[trees.node_offsets[:-1]].tolist() == [1, 1]


def exact_gains(X, phi, weight):
    """Return the gains of binary features, in extended precision."""
    exact = phi.astype(np.longdouble)
    exact -= weight @ exact / weight.sum()
    left = weight @ X
    norms = (((X * weight[:, None]).T @ exact) ** 2).sum(axis=1)
    return norms * weight.sum() / (left * (weight.sum() - left))


def check_largest_gain(X, phi, weight, *, gram, random_splits, seed):
    """Check that the gain of the root of two trees counts as equal to the largest."""
    gains = exact_gains(X, phi, weight)
    rules = GrowthRules(random_splits=random_splits, max_features=X.shape[1], max_depth=1)
    outputs = phi @ phi.T if gram else phi
    trees = grow(X, outputs, rules, gram=gram, row_weight=weight, seed=seed, n_trees=2)
    roots = trees.feature[trees.node_offsets[:-1]]
    assert (gains[roots] >= gains.max() * (1 - 2e-9)).all(), seed


@pytest.mark.parametrize(
    ("gram", "n", "q", "offset", "spread"),
    [(True, 32, 3, 0.0, 2e-7), (True, 200, 9, 5.0, 1e-6), (False, 200, 9, 30.0, 1e-6)],
    ids=["small", "gram", "factor"],
)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["random", "best"])
def test_errors_of_searches_are_bounded(gram, n, q, offset, spread, weighted, kind):
    """Of many gains that differ by less than errors of float32, the largest in float64 wins."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        # Rows in pairs of nearly the same output: some on one side, others divided in any way.
        left = rng.random((n // 2, 150)) < 0.5
        together = rng.random((n // 2, 1)) < 0.2
        together[:4] = True
        left[:] = np.where(together, left[:, :1], left)
        X = np.stack([left, left == together], axis=1).reshape(n, -1).astype(float)
        phi = rng.normal(size=(n // 2, q)) + offset + 6 * together * (left[:, :1] - 0.5)
        phi = phi.repeat(2, axis=0)
        phi[::2] += spread * rng.normal(size=(n // 2, q))
        weight = rng.integers(1, 4, n // 2).repeat(2) * 0.7 if weighted else np.ones(n)
        order = rng.permutation(n)
        X, phi, weight = X[order], phi[order], weight[order]
        check_largest_gain(X, phi, weight, gram=gram, random_splits=kind == "random", seed=seed)


@pytest.mark.parametrize("gram", [False, True], ids=["factor", "gram"])
@pytest.mark.parametrize("n", [30, 200])
def test_cuts_of_a_feature_that_float32_cannot_tell_apart(gram, n):
    """Of two cuts of the same feature, the larger gain wins, however close."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        half = rng.normal(size=(n // 2, 9)) * 0.1
        half[: n // 5] += rng.normal(size=9)
        for larger in (0, 1):  # the gain of the cut on the left, or on the right
            sides = [half, half[::-1]]
            sides[larger] = sides[larger] * (1 + 1e-7)
            phi = np.concatenate(sides)
            x = np.arange(n) - (n - 1) / 2
            order = rng.permutation(n)
            outputs = phi[order] @ phi[order].T if gram else phi[order]
            tree = grow(x[order, None], outputs, GrowthRules(max_depth=1), gram=gram)
            assert (tree.threshold[0] > 0) == (larger == 1)


@pytest.mark.parametrize("gram", [False, True], ids=["factor", "gram"])
@pytest.mark.parametrize("max_features", [1, 4])
def test_the_first_of_equal_cuts_is_taken(gram, max_features):
    """Two cuts of a feature tie up to rounding errors, which an offset makes large."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        half = np.r_[np.ones((8, 1)), np.zeros((22, 1))] * rng.normal(size=9)
        half += rng.normal(size=(30, 9)) * 0.1
        phi = np.concatenate([half, half[::-1]]) + 3e3
        X = np.c_[np.arange(60) - 29.5, np.zeros((60, 3))]
        order = rng.permutation(60)
        outputs = phi[order] @ phi[order].T if gram else phi[order]
        rules = GrowthRules(max_depth=1, max_features=max_features)
        tree = grow(X[order], outputs, rules, gram=gram, seed=seed)
        assert tree.threshold[0] < 0


@pytest.mark.parametrize("gram", [False, True], ids=["factor", "gram"])
@pytest.mark.parametrize(("n_light", "n_heavy", "share"), [(16, 16, 0.2), (100, 20, 0.8)])
@pytest.mark.parametrize("kind", ["random", "best"])
def test_the_lighter_side_is_summed(gram, n_light, n_heavy, share, kind):
    """Errors of the sum over a heavy side would be larger than the gain of a light one."""
    n = n_light + n_heavy
    for seed in range(5):
        rng = np.random.default_rng(seed)
        weight = np.r_[np.full(n_light, 1e-8), np.ones(n_heavy)] * rng.uniform(0.5, 1.0, n)
        phi = rng.normal(size=(n, 9)) / np.sqrt(weight)[:, None]
        X = np.zeros((n, 100))
        X[:n_light] = rng.random((n_light, 100)) < share
        X[0] = 1.0
        X[:, ::2] = 1 - X[:, ::2]
        order = rng.permutation(n)
        X, phi, weight = X[order], phi[order], weight[order]
        check_largest_gain(X, phi, weight, gram=gram, random_splits=kind == "random", seed=seed)


@pytest.mark.parametrize("gram", [False, True], ids=["factor", "gram"])
@pytest.mark.parametrize("n", [32, 200])
@pytest.mark.parametrize("kind", ["random", "best"])
def test_the_least_gain_is_compared_in_float64(gram, n, kind):
    """A split of exactly the least gain is made; one of slightly less is not."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = (rng.normal(size=(n, 20)) > 0).astype(float)
        phi = rng.normal(size=(n, 9)) + np.outer(X[:, 3], rng.uniform(1, 2, 9))  # the best feature
        outputs = phi @ phi.T if gram else phi
        decrease = float(exact_gains(X, phi, np.ones(n))[3] / n)
        for least, n_nodes in ((decrease, 3), (decrease * (1 + 1e-8), 1)):
            rules = GrowthRules(
                random_splits=kind == "random", max_depth=1, min_impurity_decrease=least
            )
            trees = grow(X, outputs, rules, gram=gram, seed=seed, n_trees=2)
            assert np.diff(trees.node_offsets).tolist() == [n_nodes, n_nodes]


@pytest.mark.parametrize("gram", [False, True], ids=["factor", "gram"])
@pytest.mark.parametrize("kind", ["random", "best"])
def test_equal_outputs_are_never_split(gram, kind):
    """Repeated outputs with a large offset make pure nodes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    label = (X[:, 0] > 0) + 2 * (X[:, 1] > 0.5)
    phi = rng.normal(size=(4, 20))[label] + 100.0
    rules = GrowthRules(random_splits=kind == "random")
    tree = grow(X, phi @ phi.T if gram else phi, rules, gram=gram)[0]
    for node in np.flatnonzero(tree.left >= 0):
        assert len(set(label[tree.members[tree.begin[node] : tree.end[node]]])) > 1


@pytest.mark.parametrize("spread", [1e-5, 1e-7])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "p", "q"), [(300, 5, 40), (90, 60, 200)])  # the latter: one branch
def test_clusters_keep_their_digits(spread, weighted, n, p, q):
    """In tight clusters, variances are right, and the order of growth does not matter."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, p))
    centres = rng.normal(size=(4, q))
    noise = rng.normal(size=(n, q)) + 2 * np.outer(X[:, 2] > 0, rng.normal(size=q))
    phi = centres[(X[:, 0] > 0) + 2 * (X[:, 1] > 0)] + spread * noise
    phi -= phi.mean(axis=0)
    weight = rng.uniform(1.0, 5.0, n) if weighted else np.ones(n)
    rules = GrowthRules(max_depth=6)
    tree = grow(X, phi, rules, row_weight=weight)[0]
    by_gain = grow(X, phi, replace(rules, order="gain", max_leaf_nodes=n - 1), row_weight=weight)[0]
    assert engine_as_nested(tree) == engine_as_nested(by_gain)
    for node in range(len(tree.left)):
        members = tree.members[tree.begin[node] : tree.end[node]]
        w = weight[members]
        variance = w @ (phi[members] - np.average(phi[members], axis=0, weights=w)) ** 2
        assert tree.variance[node] == pytest.approx(variance.sum(), rel=1e-7)


@pytest.mark.parametrize("gram", [False, True], ids=["factor", "gram"])
@pytest.mark.parametrize("kind", ["random", "best"])
def test_features_that_tie_are_chosen_alike(gram, kind):
    """Two copies and two mirrored copies of a feature are chosen equally often."""
    rng = np.random.default_rng(2)
    x = np.round(rng.normal(size=60) * 3)
    if kind == "random":
        x = (x > 0).astype(float)  # every random cut is the same
    X = np.c_[x, x, -x, -x]
    phi = rng.normal(size=(60, 24)) + np.outer(x > 0, rng.normal(size=24))
    phi -= phi.mean(axis=0)
    rules = GrowthRules(random_splits=kind == "random", max_depth=1)
    trees = grow(X, phi @ phi.T if gram else phi, rules, gram=gram, n_trees=400)
    roots = trees.feature[trees.node_offsets[:-1]]
    assert (np.bincount(roots, minlength=4) > 65).all()  # 100 expected, 4 standard deviations


@pytest.mark.parametrize("gram", [False, True], ids=["factor", "gram"])
@pytest.mark.parametrize("size", [1e-200, 1e200, 2.0**-1000])
def test_the_unit_of_weights_does_not_matter(size, gram):
    """Uniform weights of any size grow the tree of unit weights."""
    rng = np.random.default_rng(3)
    X, phi = rng.normal(size=(70, 3)), rng.normal(size=(70, 20))
    phi -= phi.mean(axis=0)
    outputs = phi @ phi.T if gram else phi
    rules = GrowthRules(max_features=2, min_impurity_decrease=1e-3 * phi.var())
    expected = grow(X, outputs, rules, gram=gram)
    trees = grow(X, outputs, rules, gram=gram, row_weight=np.full(len(X), size))
    assert np.array_equal(trees.feature, expected.feature)
    assert np.array_equal(trees.threshold, expected.threshold)
    np.testing.assert_allclose(trees.weight, expected.weight * size)
    np.testing.assert_allclose(trees.variance, expected.variance * size, rtol=1e-9, atol=0)


@pytest.mark.parametrize("p", [17, 40, 70, 130])
@pytest.mark.parametrize("gram", [False, True], ids=["factor", "gram"])
def test_random_cuts_of_many_features(p, gram):
    """Cuts are scored 64 at a time, and their values read 16 at a time."""
    rng = np.random.default_rng(p)
    X, phi = rng.normal(size=(80, p)), rng.normal(size=(80, 5))
    phi += 2 * np.outer(X[:, p - 1] > 0, rng.normal(size=5))
    phi -= phi.mean(axis=0)
    rules = GrowthRules(random_splits=True, max_features=p, max_depth=2)
    for seed in range(3):
        expected = grow_tree(X, phi @ phi.T, rules, np.ones(80), np.ones(80), derive(seed, 0))
        trees = grow(X, phi @ phi.T if gram else phi, rules, gram=gram, seed=seed, n_trees=2)
        assert engine_as_nested(trees[0]) == as_nested(expected)
        np.testing.assert_allclose(engine_thresholds(trees[0]), thresholds_of(expected))


@pytest.mark.parametrize("gram", [False, True], ids=["factor", "gram"])
@pytest.mark.parametrize(("places", "p"), [((0, 1), 2), ((0, 1), 90), ((7, 15), 16)])
def test_close_gains_among_constant_features(gram, places, p):
    """Wherever the two features with gains are, and if many others have none."""
    rng = np.random.default_rng(4)
    for seed in range(30):
        first, second = np.repeat([0.0, 1.0], 100), np.tile([0.0, 1.0], 100)
        noise = rng.normal(size=(200, 40)) * 0.3
        for side in (first, second):
            for value in (0.0, 1.0):
                noise[side == value] -= noise[side == value].mean(axis=0)
        phi = np.c_[first - 0.5, (second - 0.5) * (1 + 2e-8), noise]
        X = np.zeros((200, p))
        X[:, places] = np.c_[first, second]
        rules = GrowthRules(random_splits=True, max_features=p, max_depth=1)
        trees = grow(X, phi @ phi.T if gram else phi, rules, gram=gram, seed=seed, n_trees=2)
        assert trees.feature[trees.node_offsets[:-1]].tolist() == [places[1]] * 2
