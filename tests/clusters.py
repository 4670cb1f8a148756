"""What tests of clusters share: data, comparing forests, and what is left on a cluster."""

import asyncio
import threading
import time

import numpy as np
from distributed import Worker

# Seconds after which something that should happen counts as not happening, on a busy machine.
PATIENCE = 300


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


def left_on(client, seconds=PATIENCE):
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


class Mortal:
    """Workers in this process that are lost with all they hold, as if they were killed."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.workers = []
        self.starting = None

    def start(self, n_workers=2):
        """Start workers."""

        async def start():
            for _ in range(n_workers):
                worker = Worker(
                    self.cluster.scheduler.address, nthreads=1, memory_limit=0, dashboard=False
                )
                self.workers.append(await worker)

        self.cluster.sync(start)

    def start_later(self):
        """Start workers in a moment."""
        self.starting = threading.Timer(0.2, self.start)
        self.starting.start()

    def lose(self, n_workers=None):
        """Lose the first workers, or all; the scheduler has noticed."""
        if self.starting is not None:
            self.starting.join()
        gone, self.workers = self.workers[:n_workers], self.workers[len(self.workers[:n_workers]) :]

        async def close():
            for worker in gone:
                address = worker.address
                await worker.close(nanny=False, executor_wait=False, reason="lost")
                while address in self.cluster.scheduler.workers:
                    await asyncio.sleep(0.01)

        self.cluster.sync(close)
