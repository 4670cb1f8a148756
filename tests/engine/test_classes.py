"""Classes as outputs have the same trees as any other outputs with the same inner products."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from growing import grow
from okforest.engine import GrowthRules
from reference.random import derive
from reference.trees import as_nested, engine_as_nested, grow_tree

RULES = {
    "best": GrowthRules(),
    "best of some": GrowthRules(max_features=2, min_samples_leaf=2),
    "random": GrowthRules(random_splits=True, max_features=5),
    "random of some": GrowthRules(random_splits=True, max_features=3, min_samples_leaf=1.5),
    "by gain": GrowthRules(order="gain", max_leaf_nodes=9),
    "of some gain": GrowthRules(random_splits=True, max_features=2, min_impurity_decrease=0.01),
}


def labelled(seed, n_classes, weighted):
    """Return inputs with ties, gaps and a category, classes that depend on them, and weights."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 90))
    X = np.round(rng.normal(size=(n, 5)), 1)
    X[:, 1] = rng.integers(0, 5, n)
    X[rng.random(n) < 0.2, 2] = np.nan
    X[:, 4] = -X[:, 0]  # the same partitions, with sides exchanged
    labels = (np.digitize(X[:, 0], [-0.5, 0.5]) + rng.integers(0, n_classes, n)) % n_classes
    weight = rng.integers(0, 4, n) * 0.5 if weighted else np.ones(n)
    weight[0] = 1.0
    return X, np.eye(n_classes)[labels], weight


@pytest.mark.parametrize("rules", RULES)
@given(seed=st.integers(0, 2**32), n_classes=st.sampled_from([2, 3, 7, 30]), weighted=st.booleans())
def test_classes_equal_the_oracle(rules, seed, n_classes, weighted):
    """Trees of indicators equal the oracle's, which knows inner products only."""
    X, phi, weight = labelled(seed, n_classes, weighted)
    n_categories = np.array([0, 5, 0, 0, 0], np.int32)
    rules = RULES[rules]
    count = np.maximum(weight, 1.0)
    K = (phi @ phi.T).astype(np.longdouble)
    expected = grow_tree(X, K, rules, weight, count, derive(seed, 0), categories=n_categories)
    trees = grow(X, phi, rules, row_weight=weight, seed=seed, n_categories=n_categories)
    assert engine_as_nested(trees[0]) == as_nested(expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("n_draws", [0, 3000])
def test_large_nodes_equal_those_of_features(dtype, rules, n_draws):
    """The same trees, variances and weights as from moved features, which are no indicators."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 99, (3000, 5)).astype(dtype)
    labels = (X[:, 0] // 20 + rng.integers(0, 3, 3000)).astype(int)
    phi = np.eye(8)[labels]
    trees = grow(X, phi, RULES[rules], n_trees=2, n_draws=n_draws)
    expected = grow(X, phi - 0.25, RULES[rules], n_trees=2, n_draws=n_draws)
    for name, array in vars(expected).items():
        if name == "variance":
            np.testing.assert_allclose(trees.variance, array, rtol=1e-9, atol=1e-9)
        else:
            assert np.array_equal(getattr(trees, name), array), name


@pytest.mark.parametrize("rules", RULES)
@given(seed=st.integers(0, 2**32), n_classes=st.sampled_from([2, 3, 7, 30]))
@example(seed=1, n_classes=7)  # two nodes of the same gain
def test_bytes_equal_the_oracle(rules, seed, n_classes):
    """Bytes are split as bytes: the smallest and the largest, a constant, a category."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 90))
    X = rng.integers(0, 256, (n, 5), dtype=np.uint8)
    X[:, 1] = rng.integers(0, 5, n)
    X[:, 2] = rng.integers(0, 256)
    X[:, 3] = rng.choice([0, 1, 254, 255], n)
    phi = np.eye(n_classes)[(X[:, 0] // 90 + rng.integers(0, n_classes, n)) % n_classes]
    n_categories = np.array([0, 5, 0, 0, 0], np.int32)
    K, ones = (phi @ phi.T).astype(np.longdouble), np.ones(n)
    of_oracle = [X.astype(float), K, RULES[rules], ones, ones, derive(seed, 0)]
    expected = grow_tree(*of_oracle, categories=n_categories)
    trees = grow(X, phi, RULES[rules], seed=seed, n_categories=n_categories)
    assert engine_as_nested(trees[0]) == as_nested(expected)


@pytest.mark.parametrize(
    ("shape", "n_trees"),
    [((3000, 37), 2), ((5000, 256), 8), ((5000, 256), 2), ((1000, 1100), 2)],
    ids=["few features", "read by columns", "read by rows", "read by values"],
)
@pytest.mark.parametrize("layout", ["C", "F", "every second column", "between bytes"])
def test_bytes_grow_the_trees_of_floats(shape, n_trees, layout):
    """All arrays are equal to the last bit, with more rows of a class than a byte counts."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, shape, dtype=np.uint8)
    X[:, ::7] //= 100
    labels = np.where(rng.random(len(X)) < 0.9, 0, rng.integers(0, 9, len(X))) + X[:, 1] // 200
    floats = X.astype(np.float32)
    if layout == "every second column":
        X = np.repeat(X, 2, axis=1)[:, ::2]
    elif layout == "between bytes":  # a part of other rows, at an odd address
        X = np.pad(X, ((0, 0), (3, 2)))[:, 3:-2]
    else:
        X = np.asarray(X, order=layout)
    rules = GrowthRules(random_splits=True, max_features=21)
    trees = grow(X, np.eye(10)[labels], rules, n_trees=n_trees)
    expected = grow(floats, np.eye(10)[labels], rules, n_trees=n_trees)
    for name, array in vars(expected).items():
        assert np.array_equal(getattr(trees, name), array), name


@pytest.mark.parametrize("n_other", [1, 3])
def test_nearly_pure_nodes(n_other):
    """Few rows of another class among many: the sum of the smaller side keeps its digits."""
    n = 40_000
    labels = np.zeros(n, dtype=int)
    labels[[7, 20_001, 39_990][:n_other]] = 1
    X = np.arange(n, dtype=float)[:, None]
    tree = grow(X, np.eye(2)[labels], GrowthRules(max_depth=1))
    shares = labels.mean()
    assert tree.variance[0] == pytest.approx(n * 2 * shares * (1 - shares), rel=1e-9)
    gains = []
    for cut in range(1, n):
        left, right = labels[:cut], labels[cut:]
        gains.append(left.sum() ** 2 / len(left) + right.sum() ** 2 / len(right))
    assert tree.threshold[0] == np.argmax(gains) + 0.5


@pytest.mark.parametrize("weights", ["one", "fractions"])
def test_mirrored_features_tie(weights):
    """The gain of a few rows beside many is the same from either end of a feature."""
    rng = np.random.default_rng(0)
    x = rng.permutation(20_000).astype(float)
    weight = np.ones(len(x)) if weights == "one" else rng.uniform(0.5, 2.0, len(x))
    phi = np.eye(3)[np.where(x < 3, 0, np.where(x % 7 == 0, 1, 2))]
    rules = GrowthRules(max_depth=1)
    trees = grow(np.c_[x, -x], phi, rules, n_trees=200, row_weight=weight)
    roots = trees.feature[trees.node_offsets[:-1]]
    assert (np.bincount(roots, minlength=2) > 70).all()  # 100 expected, 4 standard deviations


def test_other_rows_are_not_classes():
    """A row of zeros, two ones in a row, or another number: features like any others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    for change in ([0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 2.0, 0.0], [1.0, 0.0, 1e-3]):
        phi = np.eye(3)[rng.integers(0, 3, 200)]
        phi[-1] = change
        trees = grow(X, phi, GrowthRules())
        expected = grow(X, phi + 0.5, GrowthRules())
        np.testing.assert_allclose(trees.variance, expected.variance, atol=1e-9)
        assert np.array_equal(trees.feature, expected.feature)
