"""Arbitrary arrays passed to the compiled core give a result or an error, no crash, no leak."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from growing import grow
from okforest import _core
from okforest.engine import GrowthRules, apply, leaf_weights, prune, pruning_path
from okforest.weights import LeafWeights

DTYPES = st.sampled_from([np.float32, np.float64, np.float16, np.int32, np.int64, bool, complex])


@st.composite
def hostile_matrices(draw):
    """Draw a matrix with huge, tiny, missing and repeated values, in any layout."""
    rows, columns = draw(st.integers(0, 12)), draw(st.integers(0, 4))
    elements = st.one_of(
        st.floats(allow_nan=True, allow_infinity=True, width=32),
        st.sampled_from([0.0, -0.0, 1.0, np.nan, 3.4e38, -3.4e38, 1e-45]),
    )
    X = draw(hnp.arrays(np.float32, (rows, columns), elements=elements))
    if rows and draw(st.booleans()):
        X = X[np.array(draw(st.lists(st.integers(0, rows - 1), min_size=rows, max_size=rows)))]
    if columns and draw(st.booleans()):
        X[:, draw(st.integers(0, columns - 1))] = draw(st.sampled_from([np.nan, 7.0]))
    X = X.astype(draw(st.sampled_from([np.float32, np.float64])))
    layout = draw(st.sampled_from(["C", "F", "reversed", "strided", "read-only"]))
    if layout == "F":
        X = np.asfortranarray(X)
    elif layout == "reversed":
        X = X[::-1, ::-1]
    elif layout == "strided":
        X = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]
    elif layout == "read-only":
        X.flags.writeable = False
    return X


ORDERS = st.one_of(
    st.just({"order": "depth"}),
    st.builds(
        lambda order, limit: {"order": order, "max_leaf_nodes": limit},
        st.sampled_from(["variance", "gain"]),
        st.integers(1, 9),
    ),
)
RULES = st.builds(
    lambda order, **rules: GrowthRules(**order, **rules),
    ORDERS,
    random_splits=st.booleans(),
    max_features=st.integers(1, 5),
    ignore_constant=st.booleans(),
    max_depth=st.integers(0, 5),
    min_samples_split=st.sampled_from([0.0, 2.0, np.inf]),
    min_samples_leaf=st.sampled_from([0.0, 1.0, 3.0, np.nan]),
    stop_when_pure=st.booleans(),
)


@given(
    X=hostile_matrices(),
    rules=RULES,
    gram=st.booleans(),
    n_draws=st.integers(0, 9),
    categories=st.integers(0, 70),
    scale=st.sampled_from([0.0, 1.0, 1e300, np.nan]),
)
def test_growing_and_applying_never_crash(X, rules, gram, n_draws, categories, scale):
    """Whatever the inputs, trees are grown and applied, or a Python exception is raised."""
    rng = np.random.default_rng(0)
    outputs = rng.normal(size=(len(X), 3)) * scale
    if gram:
        with np.errstate(all="ignore"):
            outputs = outputs @ outputs.T
    n_categories = np.full(X.shape[1], categories, dtype=np.int32)
    options = {"gram": gram, "n_draws": n_draws, "n_categories": n_categories, "n_trees": 2}
    try:
        trees = grow(X, outputs, rules, **options)
    except ValueError:
        assert len(X) == 0
        return
    leaves = apply(trees, X)
    assert leaves.shape == (len(X), 2)
    W = LeafWeights(trees, leaves).tocsr()
    np.testing.assert_allclose(W.sum(axis=1), 1.0)
    assert sorted(set(trees[0].members)) == sorted(trees[0].members)


RULES = {
    "gram": False,
    "seed": 0,
    "first_tree": 0,
    "n_trees": 1,
    "n_draws": 0,
    "n_threads": 1,
    "order": "depth",
    "random_splits": False,
    "frobenius": False,
    "max_features": 2,
    "ignore_constant": False,
    "max_depth": 3,
    "max_leaf_nodes": 9,
    "min_samples_split": 2.0,
    "min_samples_leaf": 1.0,
    "min_impurity_decrease": 0.0,
    "stop_when_pure": True,
    "progress": None,
}


@given(
    dtype=DTYPES,
    shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    which=st.sampled_from(["X", "outputs", "row_weight", "n_categories"]),
)
def test_arrays_of_other_types_and_shapes_are_refused(dtype, shape, which):
    """A wrong dtype, dimension or length raises a TypeError or ValueError."""
    arguments = {
        "X": np.eye(3, 2),
        "outputs": np.eye(3),
        "row_weight": np.ones(3),
        "n_categories": np.zeros(2, dtype=np.int32),
    }
    _core.grow(**arguments, **RULES)
    right = arguments[which]
    if dtype == right.dtype and shape == right.shape:
        return
    arguments[which] = np.zeros(shape, dtype=dtype)
    if which == "X" and shape == (3, 2) and dtype in (np.float32, np.float64):
        return
    if which == "outputs" and len(shape) == 2 and shape[0] == 3 and dtype == np.float64:
        return
    with pytest.raises((TypeError, ValueError)):
        _core.grow(**arguments, **RULES)


def test_inconsistent_arrays_are_refused():
    """Indices out of range are refused, not read out of bounds."""
    trees = grow(np.eye(5), np.eye(5), GrowthRules(), n_trees=2)
    leaves = apply(trees, np.eye(5))
    for bad in (leaves + 1000, leaves - 1000):
        with pytest.raises(ValueError, match="leaves contains a node that its tree does not have"):
            leaf_weights(trees, bad)
    with pytest.raises(ValueError, match="leaves must have one column per tree"):
        leaf_weights(trees, leaves[:, :1].copy())
    with pytest.raises(ValueError, match=r"values have shape \(4, 2\); expected \(5,\)"):
        LeafWeights(trees, leaves) @ np.ones((4, 2))
    with pytest.raises(TypeError):
        leaf_weights(trees, leaves.astype(np.int64))
    arrays = {**vars(trees), "left": trees.left[:-1]}
    with pytest.raises(ValueError, match="inconsistent lengths"):
        _core.apply(np.eye(5), arrays, 1)
    with pytest.raises(ValueError, match="different numbers of features"):
        _core.apply(np.eye(4), vars(trees), 1)
    with pytest.raises(ValueError, match="values must have one row per training row"):
        _core.leaf_means(leaves, vars(trees), np.ones((4, 2)), 1)
    with pytest.raises(ValueError, match="the arrays of exactly one tree"):
        _core.prune(vars(trees), 0.1)


def test_inconsistent_arguments_are_refused():
    """Growing and pruning name the argument that is wrong."""
    trees = grow(np.eye(5), np.eye(5), GrowthRules(), n_trees=2)
    with pytest.raises(ValueError, match="the Gram matrix is not square"):
        grow(np.eye(3), np.eye(3, 2), GrowthRules(), gram=True)
    with pytest.raises(ValueError, match="row_weight has length 2; outputs has length 3"):
        grow(np.eye(3), np.eye(3), GrowthRules(), row_weight=np.ones(2))
    with pytest.raises(ValueError, match="one entry >= 0 for each feature"):
        grow(np.eye(3), np.eye(3), GrowthRules(), n_categories=np.int32([0, -5, 0]))
    with pytest.raises(ValueError, match="takes a single tree, got 2"):
        pruning_path(trees)
    with pytest.raises(ValueError, match="takes a single tree, got 0"):
        pruning_path(grow(np.eye(3), np.eye(3), GrowthRules(), n_trees=0))
    assert len(prune(grow(np.eye(3), np.eye(3), GrowthRules(), n_trees=0), 0.1)) == 0
    with pytest.raises(ValueError, match="n_threads must be at least 1"):
        grow(np.eye(3), np.eye(3), GrowthRules(), n_threads=0)


def test_inconsistent_arrays_of_searches_are_refused():
    """Offsets, indices and shapes are checked before the core reads them."""
    offsets, columns, ranks = np.array([0, 2]), np.int32([0, 1]), np.int32([1, 0])
    good = (offsets, columns, np.ones(2), ranks, np.array([0.5]), 1)
    assert _core.quantile_places(*good).tolist() == [[0]]
    for place, bad in (
        (0, np.array([0, 3])),
        (1, np.int32([0, 2])),
        (2, np.ones(1)),
        (3, np.int32([2, 0])),
        (3, np.int32([])),
    ):
        with pytest.raises(ValueError, match="the arrays of the weights are inconsistent"):
            _core.quantile_places(*good[:place], bad, *good[place + 1 :])
    floats, words = np.zeros((1, 2, 64), np.float32), np.zeros((1, 2), np.uint64)
    for values in (floats, words):
        good = (np.ones((1, 2)), values, np.zeros(64, np.float32), np.zeros(1), 1, 64, 1)
        assert _core.near_candidates(*good)[1].tolist() == list(range(64))
        for place, bad in (
            (0, np.ones((1, 3))),
            (1, values[:0]),
            (1, np.zeros((1, 2, 32), np.float32)),
            (2, np.zeros(63, np.float32)),
            (3, np.zeros(2)),
            (4, 0),
            (5, 0),
        ):
            with pytest.raises(ValueError, match="the arrays of the candidates are inconsistent"):
                _core.near_candidates(*good[:place], bad, *good[place + 1 :])


def test_results_of_searches_do_not_depend_on_threads():
    """Rows and parts of the candidates are shared by threads."""
    rng = np.random.default_rng(0)
    queries, values = rng.normal(size=(300, 4)), rng.normal(size=(1100, 4, 64)).astype(np.float32)
    squares = np.square(values).sum(axis=1).ravel() / 2
    reach = np.sqrt(2 * squares.reshape(-1, 64).max(axis=1)).astype(float)
    arrays = (queries, values, squares, reach, 3, 1000)
    for one, four in zip(*(_core.near_candidates(*arrays, n) for n in (1, 4)), strict=True):
        np.testing.assert_array_equal(one, four)
    n, n_train = 1000, 200
    arrays = (np.arange(n + 1), rng.integers(n_train, size=n, dtype=np.int32), np.ones(n))
    arrays += (rng.permutation(n_train).astype(np.int32), np.array([0.1, 0.5]))
    one, four = (_core.quantile_places(*arrays, n) for n in (1, 4))
    np.testing.assert_array_equal(one, four)


def test_nothing_leaks():
    """Growing, applying and failing 800 times needs no more memory than 100 times."""
    program = """
        import resource
        import numpy as np
        from okforest.engine import GrowthRules, apply, leaf_weights, prune, pruning_path
        from okforest.weights import LeafWeights
        from growing import grow
        X = np.random.default_rng(0).normal(size=(500, 5))

        def work(times):
            for _ in range(times):
                trees = grow(X, X, GrowthRules(random_splits=True), n_trees=4, n_draws=500)
                W = LeafWeights(trees, apply(trees, X))
                W.tocsr(), W @ X
                try:
                    grow(X, X[:3], GrowthRules())
                except ValueError:
                    pass
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        work(100)
        before = work(100)
        print(work(800) - before)
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    unit = 1 if sys.platform == "darwin" else 1024
    # A forest takes 0.4 MB: 800 leaked ones would be 300 MB.
    assert int(result.stdout) * unit < 30e6
