"""One cluster of three processes, the scheduler and two workers, for all tests of a session."""

import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

import dask
from distributed import Client, LocalCluster
from distributed.deploy.subprocess import SubprocessCluster

from clusters import Mortal

dask.config.set(
    {
        "distributed.comm.timeouts.connect": "60s",  # several tests may run on a busy machine
        "distributed.worker.profile.enabled": False,  # a thread of each worker
    }
)


@pytest.fixture(scope="session")
def cluster():
    early = {"preload": ["okforest.dask"]}  # all processes import it at the same time
    with SubprocessCluster(
        n_workers=2,
        threads_per_worker=1,
        dashboard_address=None,
        worker_class="distributed.Worker",
        worker_kwargs={"memory_limit": 0, **early},
        scheduler_kwargs=early,
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=120)
        yield client


@pytest.fixture
def threads():
    """Return a client whose two workers are threads of this process: quick to start."""
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            dashboard_address=":0",
            memory_limit=0,
        ) as cluster,
        Client(cluster) as client,
    ):
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
