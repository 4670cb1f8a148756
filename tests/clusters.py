"""What tests of clusters share: data, comparing forests, and what is left on a cluster."""

import time

import numpy as np


def make_data(n=300, seed=0):
    """Return inputs with missing values, and vectors as outputs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    Y = np.c_[X[:, 0] ** 2, X[:, 1] > 0, rng.normal(size=n)]
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, Y


def assert_same_trees(found, expected, but=()):
    """Check that all arrays of the trees of two models are equal, to the last bit."""
    for name, array in vars(expected.trees_).items():
        if name not in but:
            assert np.array_equal(getattr(found.trees_, name), array), name


def left_on(client, seconds=10.0):
    """Return the numbers of tasks, results and running tasks on a cluster, once it is at rest."""

    def count():
        workers = client.run(
            lambda dask_worker: (len(dask_worker.data), dask_worker.state.executing_count)
        )
        n_tasks = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
        return n_tasks, *(sum(counts) for counts in zip(*workers.values(), strict=True))

    end = time.monotonic() + seconds
    while any(found := count()) and time.monotonic() < end:
        time.sleep(0.05)
    return found
