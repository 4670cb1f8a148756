"""Clusters for all tests of a session: one of three processes, and one in this process."""

import os
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

import dask
from distributed import Client, LocalCluster
from distributed.deploy.spec import SpecCluster
from distributed.deploy.subprocess import SubprocessScheduler, SubprocessWorker

from clusters import PATIENCE, Mortal, left_on

dask.config.set(
    {
        "distributed.comm.timeouts.connect": f"{PATIENCE}s",
        "distributed.worker.profile.enabled": False,  # a thread of each worker
    }
)


def pytest_collection_modifyitems(items):
    """Let tests of this folder take long: starting processes may take minutes on a busy machine."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(4 * PATIENCE))


@pytest.fixture(autouse=True)
def environment():
    """Restore environment variables: Dask changes them in this process, too."""
    before = dict(os.environ)
    yield
    after = dict(os.environ)
    for name in {*before, *after}:
        if name not in before:
            del os.environ[name]
        elif before[name] != after.get(name):
            os.environ[name] = before[name]


@pytest.fixture(scope="session")
def cluster():
    # SubprocessCluster would give the scheduler 30 seconds to start.
    early = {"preload": ["okforest.dask"], "host": "127.0.0.1"}  # all import it at the same time
    scheduler = {
        "scheduler_kwargs": {"port": 0, "dashboard": False, "dashboard_address": ":0", **early},
        "timeout": PATIENCE,
    }
    worker = {
        "worker_class": "distributed.Worker",
        "worker_kwargs": {"nthreads": 1, "memory_limit": 0, "dashboard": False, **early},
    }
    with SpecCluster(
        workers={i: {"cls": SubprocessWorker, "options": worker} for i in range(2)},
        scheduler={"cls": SubprocessScheduler, "options": scheduler},
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=PATIENCE)
        yield client


@pytest.fixture(scope="session")
def cluster_of_threads():
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        dashboard_address=":0",
        memory_limit=0,
    ) as cluster:
        yield cluster


@pytest.fixture
def threads(cluster_of_threads):
    """Return a client of two workers that are threads of this process; they have no tasks."""
    with Client(cluster_of_threads) as client:
        assert left_on(client) == (0, 0, 0)
        yield client


@pytest.fixture
def mortal():
    """Return a cluster in this process whose workers can be lost."""
    with LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster:
        mortal = Mortal(cluster)
        mortal.start()
        with Client(cluster):
            yield mortal
        mortal.lose()
