"""Residuals, and their Gram matrix, after the means of leaves are subtracted."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from growing import grow
from okforest.engine import GrowthRules, LeafPartition, apply
from okforest.engine.cpu import (
    leaf_coefficients,
    pull_back,
    subtract_means,
    subtract_means_from_gram,
)


def leaves_of(seed, n, n_leaves, share=0.5):
    """Return random leaves: the rows that reach them, and the weights of some that are members."""
    rng = np.random.default_rng(seed)
    places = rng.integers(0, n_leaves, n).astype(np.int32)
    members = rng.permutation(n)[: max(1, int(share * n))]
    members = members[np.argsort(places[members], kind="stable")].astype(np.int32)
    offsets = np.searchsorted(places[members], np.arange(n_leaves + 1)).astype(np.int64)
    return LeafPartition(offsets, members, rng.uniform(0.1, 1.0, len(members)), places)


def averaging(leaves):
    """Return the matrix A of the leaves' means, and the matrix P of the rows' leaves."""
    A = np.zeros((len(leaves), len(leaves.places)))
    for leaf in range(len(leaves)):
        entries = slice(*leaves.offsets[leaf : leaf + 2])
        A[leaf, leaves.members[entries]] = leaves.weights[entries]
    return A, np.eye(len(leaves))[leaves.places]


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 300),
    q=st.sampled_from([1, 3, 128, 200]),
    n_leaves=st.integers(1, 40),
    n_threads=st.sampled_from([1, 3]),
)
@example(seed=0, n=300, q=3, n_leaves=1, n_threads=1)  # more members than are read at a time
def test_both_forms_by_matrices(seed, n, q, n_leaves, n_threads):
    """The results are (I − sPA)φ and (I − sPA) K (I − sPA)ᵀ, which stays exactly symmetric."""
    rng = np.random.default_rng(seed)
    leaves, scale = leaves_of(seed, n, n_leaves), rng.uniform(0.01, 1.0)
    A, P = averaging(leaves)
    np.testing.assert_allclose(leaves.means.toarray(), A)
    values = rng.normal(size=(n, q))
    gram = values @ values.T
    gram = (gram + gram.T) / 2
    left = values - scale * P @ A @ values
    expected = left @ left.T
    size = 1.0 + np.abs(gram).max() + np.abs(expected).max()
    changed = values.copy()
    means = subtract_means(leaves, changed, scale, n_threads)
    np.testing.assert_allclose(means, scale * A @ values, atol=1e-12)
    np.testing.assert_allclose(changed, left, atol=1e-12)
    again = gram.copy()
    sums = subtract_means_from_gram(leaves, gram, scale, n_threads)
    np.testing.assert_allclose(gram, expected, atol=1e-11 * size)
    assert np.array_equal(gram, gram.T)
    # Sums have the rounding errors of n additions of entries of the new matrix.
    error = n * np.finfo(float).eps * np.abs(gram).sum(axis=1)
    assert (np.abs(sums - [math.fsum(row) for row in gram]) <= error).all()
    assert np.array_equal(sums, subtract_means_from_gram(leaves, again, scale, 2))


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 300),
    shares=st.lists(st.sampled_from([0.5, 1.0]), max_size=4),
    n_threads=st.sampled_from([1, 3]),
)
@example(seed=0, n=300, shares=[1.0, 0.5, 1.0], n_threads=3)
def test_coefficients_by_matrices(seed, n, shares, n_threads):
    """Each tree adds sAR, and turns R into R − sPAR; at first, R is I − 1wᵀ."""
    rng = np.random.default_rng(seed)
    initial = rng.dirichlet(np.ones(n))
    trees = [
        (leaves_of(seed + t, n, int(rng.integers(1, 40)), share), rng.uniform(0.01, 1.0))
        for t, share in enumerate(shares)
    ]
    left, expected = np.eye(n) - initial, [np.empty((0, n))]
    for leaves, scale in trees:
        A, P = averaging(leaves)
        expected.append(scale * A @ left)
        left = left - P @ expected[-1]
    coefficients = leaf_coefficients(trees, initial, n_threads)
    size = 1.0 + max(np.abs(of_tree).max(initial=0.0) for of_tree in expected)
    np.testing.assert_allclose(coefficients, np.concatenate(expected), atol=1e-12 * size)
    assert np.array_equal(coefficients, leaf_coefficients(trees, initial, 2))


@pytest.mark.parametrize("size", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_sums_do_not_drift(size, offset):
    """After many rounds, sums equal the sums of the matrix, which has shrunk, at any scale."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(90, 3)) + offset
    gram = size * (values @ values.T)
    first = np.abs(gram).max()
    for seed in range(300):
        places = rng.integers(0, 30, 90).astype(np.int32)
        members = np.argsort(places, kind="stable").astype(np.int32)
        offsets = np.searchsorted(places[members], np.arange(31)).astype(np.int64)
        weights = 1.0 / np.bincount(places, minlength=30)[places[members]]
        leaves = LeafPartition(offsets, members, weights, places)
        sums = subtract_means_from_gram(leaves, gram, 0.5)
        error = 90 * np.finfo(float).eps * np.abs(gram).sum(axis=1)
        assert (np.abs(sums - [math.fsum(row) for row in gram]) <= error).all(), seed
    assert np.abs(gram).max() < 1e-6 * first


def test_growth_takes_the_sums_of_rows():
    """The root takes sums that are given, if it has all rows, and none is weighted."""
    rng = np.random.default_rng(0)
    X, phi = rng.normal(size=(50, 4)), rng.normal(size=(50, 3)) + 1.0
    gram, rules = phi @ phi.T, GrowthRules(max_depth=2)
    trees = grow(X, gram, rules, gram=True)
    given_sums = grow(X, gram, rules, gram=True, row_sums=gram.sum(axis=1))
    for name in ("feature", "threshold", "members"):
        assert np.array_equal(getattr(given_sums, name), getattr(trees, name))
    np.testing.assert_allclose(given_sums.variance, trees.variance, rtol=1e-12)
    # Sums of centred outputs would be zero: these are wrong, and taken.
    wrong = {"gram": True, "row_sums": np.zeros(50)}
    np.testing.assert_allclose(grow(X, gram, rules, **wrong).variance[0], np.trace(gram))
    weights = np.repeat([1.0, 0.0], [45, 5])
    for weight in (weights, weights + 1.0):
        np.testing.assert_array_equal(
            grow(X, gram, rules, row_weight=weight, **wrong).variance,
            grow(X, gram, rules, row_weight=weight, gram=True).variance,
        )
    with pytest.raises(ValueError, match="row_sums has length 49; outputs has length 50"):
        grow(X, gram, rules, gram=True, row_sums=np.zeros(49))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("places", np.array([0, 1, 2, 0], np.int32)),
        ("places", np.array([0, -1, 0, 0], np.int32)),
        ("places", np.array([0, 1], np.int32)),
        ("members", np.array([0, 1, 2, 4], np.int32)),
        ("members", np.array([0, 1, 2, -1], np.int32)),
        ("offsets", np.array([0, 3, 5])),
        ("offsets", np.array([0, 5, 4])),
        ("offsets", np.array([1, 2, 4])),
        ("offsets", np.array([4])),
        ("weights", np.ones(3)),
    ],
)
def test_wrong_arrays_are_refused(name, value):
    """Indices out of range and wrong lengths are refused, not read out of bounds."""
    arrays = {
        "offsets": np.array([0, 2, 4]),
        "members": np.arange(4, dtype=np.int32),
        "weights": np.ones(4),
        "places": np.array([0, 0, 1, 1], np.int32),
    }
    subtract_means(LeafPartition(**arrays), np.ones((4, 2)), 1.0)
    leaves = LeafPartition(**arrays | {name: value})
    with pytest.raises(ValueError, match="arrays of the leaves are inconsistent"):
        subtract_means(leaves, np.ones((4, 2)), 1.0)
    with pytest.raises(ValueError, match="arrays of the leaves are inconsistent"):
        subtract_means_from_gram(leaves, np.ones((4, 4)), 1.0)
    with pytest.raises(ValueError, match="arrays of the leaves are inconsistent"):
        leaf_coefficients([(LeafPartition(**arrays), 1.0), (leaves, 1.0)], np.ones(4))
    with pytest.raises(ValueError, match="square"):
        subtract_means_from_gram(LeafPartition(**arrays), np.ones((4, 3)), 1.0)


def test_rows_are_members_once():
    """Coefficients are refused if a row is twice in the leaves of a tree, in one leaf or in two."""
    places = np.array([0, 0, 1, 1], np.int32)
    offsets, weights = np.array([0, 2, 4]), np.full(4, 0.5)
    valid = LeafPartition(offsets, np.arange(4, dtype=np.int32), weights, places)
    leaf_coefficients([(valid, 1.0), (valid, 1.0)], np.full(4, 0.25))
    for members in ([0, 0, 2, 3], [0, 1, 1, 3], [3, 1, 2, 3]):
        twice = LeafPartition(offsets, np.array(members, np.int32), weights, places)
        with pytest.raises(ValueError, match="a row is twice in a tree's leaves"):
            leaf_coefficients([(valid, 1.0), (twice, 1.0)], np.full(4, 0.25))


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32])
def test_weights_are_pulled_back(kind, n_threads):
    """They are products of (I − sPA), by which later rounds see what earlier ones have left."""
    n, rng = 60, np.random.default_rng(0)
    X, phi = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
    weight = rng.integers(0, 3, n).astype(float)
    rules = GrowthRules(order="variance", max_leaf_nodes=5)
    trees = grow(X, phi, replace(rules, max_features=1), row_weight=weight, n_trees=3)
    scales, initial = rng.uniform(0.1, 1.0, 3), weight / weight.sum()
    reached, maps, leaves = [], [], rng.integers(0, 5, (3, 70)).astype(np.int32)
    for t in range(3):
        order = np.argsort(np.where(trees[t].left < 0, trees[t].begin, n), kind="stable")
        number = np.empty(len(order), dtype=int)
        number[order] = np.arange(len(order))
        places = number[apply(trees[t], X)[:, 0]]
        members = (places[:, None] == np.arange(5)) * weight[:, None]
        A = (members / members.sum(axis=0)).T
        reached.append(places)
        maps.append((scales[t] * A, np.eye(5)[places]))
    left, expected = np.eye(n) - initial, np.tile(initial, (70, 1))
    for (A, P), own in zip(maps, leaves, strict=True):
        vectors = A @ left
        expected = expected + vectors[own]
        left = left - P @ vectors
    arrays = (np.array(reached, dtype=kind), scales, initial)
    found = pull_back(trees, *arrays, leaves, n_threads)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    # Of the first rounds alone; predictions without rounds are the mean.
    np.testing.assert_allclose(pull_back(trees, *arrays, leaves[:0]), np.tile(initial, (70, 1)))
    with pytest.raises(ValueError, match="do not fit the trees"):
        pull_back(trees, arrays[0] + kind(1), scales, initial, leaves)
    with pytest.raises(ValueError, match="do not fit the trees"):
        pull_back(trees, *arrays, leaves + np.int32(1))
    with pytest.raises(ValueError, match="do not fit the trees"):
        pull_back(trees, *arrays, np.repeat(leaves, 2, axis=0))
