"""Ctrl-C during long calls of the compiled modules.

The calls run in a separate process, which sends itself SIGINT during each of them. If they did
not check for signals, a call would take minutes and the process would time out.
"""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from growing import grow
from okforest import _core, _strings
from okforest.engine import GrowthRules, Trees

N = 10_000


def chain(depth):
    """Return a tree that always splits the right child again; deeper splits gain less."""
    n_nodes = 2 * depth + 1
    left = np.where(np.arange(n_nodes) % 2, -1, np.arange(n_nodes) + 1).astype(np.int32)
    left[-1] = -1
    height = np.where(left < 0, 0, depth - np.arange(n_nodes) // 2)
    return {
        **repeat_root(grow(np.zeros((1, 1)), np.zeros((1, 1)), GrowthRules()), n_nodes),
        "left": left,
        "feature": np.where(left < 0, -1, 0).astype(np.int32),
        "threshold": np.full(n_nodes, -1.0),
        "variance": height**2.0,
    }


def repeat_root(tree, n_nodes):
    """Return the arrays of a tree whose nodes are all copies of its root."""
    names = ("feature", "left", "threshold", "missing_left", "subset", "weight", "variance")
    arrays = {name: getattr(tree, name)[:1].repeat(n_nodes) for name in (*names, "begin", "end")}
    return {**vars(tree), "node_offsets": np.array([0, n_nodes]), **arrays}


def stump():
    """Return a tree of a single node, with N members."""
    return grow(np.zeros((N, 1)), np.zeros((N, 1)), GrowthRules(max_depth=0))


def many_members(n_rows, n_leaves, n_members):
    """Return the arrays of leaves that list the same rows many times."""
    offsets = np.linspace(0, n_members, n_leaves + 1).astype(np.int64)
    members = (np.arange(n_members) % n_rows).astype(np.int32)
    return offsets, members, np.ones(n_members), np.zeros(n_rows, dtype=np.int32)


def apply(n_threads):
    trees, X = chain(100_000), np.zeros((1_000_000, 1))
    return lambda: _core.apply(X, trees, n_threads)


def leaf_weights(n_threads):
    trees = vars(Trees.join([stump()] * 1000))
    leaves = np.zeros((30_000, 1000), dtype=np.int32)
    return lambda: _core.leaf_weights(leaves, trees, n_threads)


def leaf_means(n_threads):
    trees = vars(Trees.join([Trees(**repeat_root(stump(), N))] * 100))
    leaves = np.repeat(np.arange(N, dtype=np.int32)[:, None], 100, axis=1)
    values = np.ones((N, 100))
    return lambda: _core.leaf_means(leaves, trees, values, n_threads)


def leaf_sums(n_threads):
    trees, X = chain(100_000), np.zeros((1_000_000, 1))
    n_nodes = len(trees["left"])
    arrays = (np.zeros(n_nodes, dtype=np.int32), np.ones((1, 1)), np.ones((1, 1)))
    return lambda: _core.leaf_sums(X, trees, *arrays, np.zeros(1), 1.0, n_threads)


def leaf_table(n_threads):
    trees = vars(Trees.join([Trees(**repeat_root(stump(), N))] * 100))
    values = np.random.default_rng(0).normal(size=(N, 100))
    return lambda: _core.leaf_table(trees, values, 10**12, n_threads)


def make_bins(n_threads):
    X = np.broadcast_to(np.random.default_rng(0).normal(size=(100_000, 1)), (100_000, 2000))
    return lambda: _core.BinnedRounds(X, np.ones(len(X)), 255, 0, n_threads)


def grow_on_bins(n_threads):
    rng = np.random.default_rng(0)
    X, values = rng.normal(size=(N, 300)), rng.normal(size=(N, 30))
    rounds = _core.BinnedRounds(X, np.ones(N), 255, 0, n_threads)
    return lambda: rounds.grow(
        values=values,
        row_weight=np.ones(N),
        row_errors=np.zeros(N),
        seed=0,
        number=0,
        scale=0.1,
        by_gain=True,
        max_features=300,
        max_depth=N,
        max_leaf_nodes=N,
        min_samples_split=2.0,
        min_samples_leaf=1.0,
        min_impurity_decrease=0.0,
        stop_when_pure=True,
    )


def quantile_places(n_threads):
    n, n_train = 2_000_000, 100_000
    arrays = (np.arange(n + 1), np.zeros(n, dtype=np.int32), np.ones(n))
    ranks = np.arange(n_train, dtype=np.int32)
    return lambda: _core.quantile_places(*arrays, ranks, np.array([0.5]), n_threads)


def near_candidates(n_threads):
    queries, panels = np.ones((20_000, 8)), np.ones((10_000, 8, 64), dtype=np.float32)
    squares, reach = np.ones(640_000, dtype=np.float32), np.ones(10_000)
    return lambda: _core.near_candidates(queries, panels, squares, reach, 1, 10**6, n_threads)


def subtract_means(n_threads):
    leaves, values = many_members(1, 10, 2_000_000), np.ones((1, 500_000))
    return lambda: _core.subtract_means(values, *leaves, 0.1, n_threads)


def subtract_means_from_gram(n_threads):
    leaves, gram = many_members(3000, 2000, 5_000_000), np.ones((3000, 3000))

    def call():
        try:
            _core.subtract_means_from_gram(gram, *leaves, 0.1, n_threads)
        finally:
            assert (gram == 1).all(), "not interrupted: the matrix has been changed"

    return call


def leaf_coefficients(n_threads):
    trees = [(*many_members(30_000, 2, 30_000), 0.1)] * 100  # no row is a member twice
    return lambda: _core.leaf_coefficients(trees, np.ones(30_000), n_threads)


def pull_back(n_threads):
    trees, leaves = vars(Trees.join([stump()] * 1000)), np.zeros((1000, 2000), dtype=np.int32)
    reached = np.zeros((1000, N), dtype=np.uint8)
    return lambda: _core.pull_back(trees, reached, np.ones(1000), np.ones(N), leaves, n_threads)


def pruning_path(n_threads):
    tree = chain(200_000)
    return lambda: _core.pruning_path(tree)


def prune(n_threads):
    tree = chain(200_000)
    return lambda: _core.prune(tree, 1e9)


def cut_subwindows(n_threads):
    n, image = 300, np.zeros((9, 9, 1), dtype=np.uint8)
    squares, angles = np.tile(np.array([[0, 0, 9]], dtype=np.int32), (n, 1)), np.ones(n, np.float32)
    owner, mirrored = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=bool)
    return lambda: _core.cut_subwindows([image], owner, squares, angles, mirrored, 1024, n_threads)


def paste_subwindows(n_threads):
    squares = np.tile(np.array([[0, 0, 2000]], dtype=np.int32), (20_000, 1))
    sums, counts = np.zeros((2000, 2000, 1)), np.zeros((2000, 2000))
    return lambda: _core.paste_subwindows(squares, np.zeros((20_000, 1)), 1, sums, counts)


def long_pair(kind):
    """Return two sequences of a million values, of which one comparison takes many minutes."""
    rng = np.random.default_rng(0)
    return [(rng.integers(4, size=10**6).astype(kind), np.array([0, 10**6])) for _ in range(2)]


def mismatch(n_threads):
    a, b = long_pair(np.int32)
    return lambda: _strings.mismatch(a, b, 3, np.ones(4))


def gap_weighted(n_threads):
    a, b = long_pair(np.int32)
    return lambda: _strings.gap_weighted(a, b, 2, 0.5)


def edit_distances(n_threads):
    a, b = long_pair(np.int32)
    return lambda: _strings.edit_distances(a, b)


def log_alignments(n_threads):
    a, b = long_pair(np.float64)
    return lambda: _strings.log_alignments(a, b, 1.0)


CALLS = (
    apply,
    leaf_weights,
    leaf_means,
    leaf_sums,
    leaf_table,
    make_bins,
    grow_on_bins,
    quantile_places,
    near_candidates,
    subtract_means,
    subtract_means_from_gram,
    leaf_coefficients,
    pull_back,
    pruning_path,
    prune,
    cut_subwindows,
    paste_subwindows,
    mismatch,
    gap_weighted,
    edit_distances,
    log_alignments,
)


def interrupt_all(n_threads):
    """Start every call, interrupt it, and print its name if it raised KeyboardInterrupt."""
    for prepare in CALLS:
        call = prepare(n_threads)
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            call()
        except KeyboardInterrupt:
            print(prepare.__name__, flush=True)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_ctrl_c_ends_long_calls(n_threads):
    """SIGINT raises KeyboardInterrupt in every long call, for any number of threads."""
    process = subprocess.run(
        [sys.executable, __file__, str(n_threads)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.split() == [prepare.__name__ for prepare in CALLS]


if __name__ == "__main__":
    interrupt_all(int(sys.argv[1]))
