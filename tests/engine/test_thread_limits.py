"""Systems that refuse to start threads, as a container does at its limit of processes.

The superuser has no limit of processes. Here, threads are refused for lack of address space: the
default size of their stacks is so large that one or two of them fit, or none.
"""

import ctypes
import os
import resource
import subprocess
import sys
import threading

import numpy as np
import pytest

from growing import grow
from okforest import _core
from okforest.engine import GrowthRules
from okforest.engine import apply as apply_trees

pytestmark = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "pthread_setattr_default_np"),
    reason="the default size of stacks cannot be set on this platform",
)

GIB = 2**30
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6000, 4)), RNG.normal(size=(6000, 2))


def set_stack_size(n_bytes):
    libc, attributes = ctypes.CDLL(None), ctypes.create_string_buffer(256)
    assert libc.pthread_attr_init(attributes) == 0
    assert libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(n_bytes)) == 0
    assert libc.pthread_setattr_default_np(attributes) == 0


def allow_two_threads():
    set_stack_size(GIB)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 5 * GIB // 2, resource.RLIM_INFINITY))


def allow_no_thread():
    set_stack_size(2**47)


def many_trees(n_threads):
    """Grow trees that are tasks of the workers."""
    return vars(grow(X[:500], Y[:500], GrowthRules(), n_trees=12, n_threads=n_threads)).values()


def one_tree(n_threads):
    """Grow a tree whose branches are shared between workers."""
    return vars(grow(X, Y, GrowthRules(), n_threads=n_threads)).values()


def predictions(n_threads):
    """Find leaves and weights, in the calling thread, too."""
    trees = grow(X[:500], Y[:500], GrowthRules(), n_trees=3)
    return [
        apply_trees(trees, X, n_threads),
        *_core.leaf_weights(apply_trees(trees, X), vars(trees), n_threads),
    ]


CALLS = (many_trees, one_tree, predictions)


def check(limit):
    """Compare results with a fit for which only one thread could be started."""
    expected = [call(1) for call in CALLS]
    limit()
    events, refused = threading.Event(), False
    try:
        for _ in range(8):
            threading.Thread(target=events.wait, daemon=True).start()
    except RuntimeError:
        refused = True
    events.set()
    assert refused, "this system starts all threads"
    for call, values in zip(CALLS, expected, strict=True):
        for found, value in zip(call(8), values, strict=True):
            np.testing.assert_array_equal(found, value)
        print(call.__name__, flush=True)


@pytest.mark.parametrize("limit", [allow_two_threads, allow_no_thread])
def test_work_is_done_by_the_threads_that_start(limit):
    """Trees, weights and leaves are the same, by fewer threads or by the calling one."""
    process = subprocess.run(
        [sys.executable, __file__, limit.__name__],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.split() == [call.__name__ for call in CALLS]


if __name__ == "__main__":
    check(globals()[sys.argv[1]])
