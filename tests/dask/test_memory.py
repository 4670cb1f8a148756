"""The memory of workers: data that does not fit, workers that are paused or killed."""

import time
from types import SimpleNamespace

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster, Status

from clusters import PATIENCE, assert_same_trees, make_data
from okforest import OKExtraTrees, OKRandomForest
from okforest.dask import fit, fit_remote
from okforest.dask.cluster import _memory_in_use, replicated, watched
from okforest.dask.rows import SampleSize, trees_at_a_time

X, Y = make_data(400)
DRAWING = OKRandomForest(6, max_samples=100, random_state=0)


def blocks(values):
    """Return a Dask array of two blocks."""
    return da.from_array(values, chunks=(200, -1))


def test_data_that_does_not_fit(monkeypatch):
    """Sizes are compared with the workers' memory limits before anything is sent."""
    with (
        dask.config.set({"distributed.worker.memory.pause": False}),
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            dashboard_address=":0",
            memory_limit=50_000,
        ) as cluster,
        Client(cluster) as client,
    ):
        more = np.tile(X, (3, 1)), np.tile(Y, (3, 1))
        with pytest.raises(MemoryError, match=r"memory limit of 48.83 kiB.*partitioned=True"):
            fit(OKExtraTrees(), *more, client=client)
        with pytest.raises(MemoryError, match=r"the sample of a tree.*Lower max_samples"):
            trees_at_a_time(client, SampleSize(40_000, 0), 10)
        assert trees_at_a_time(client, SampleSize(4_000, 0), 1) == 1
        assert trees_at_a_time(client, SampleSize(4_000, 0), 10) == 3  # 8,000 bytes each
        assert trees_at_a_time(client, SampleSize(100, 1_000), 10) == 10
        assert trees_at_a_time(client, SampleSize(1_000, 10_000), 20) == 10  # one grows at a time
        fit(OKExtraTrees(2), X[:100], Y[:100], client=client)

        def in_use(n_bytes):
            return lambda: n_bytes

        monkeypatch.setattr("okforest.dask.cluster._memory_in_use", in_use(35_000))
        with pytest.raises(MemoryError, match=r"of which 34.18 kiB are in use, and 40% of the"):
            fit(OKExtraTrees(2), X[:100], Y[:100], client=client)
        monkeypatch.setattr("okforest.dask.cluster._memory_in_use", in_use(45_000))
        with (
            dask.config.set({"distributed.worker.memory.pause": 0.8}),
            pytest.raises(MemoryError, match=r"all workers are too small: .* without any data"),
        ):
            fit_remote(DRAWING, blocks(X), blocks(Y), partitioned=True)


@pytest.mark.parametrize(("n_tasks", "n_numbers", "most"), [(10, 10_000, 5), (100, 450, 4)])
def test_what_the_scheduler_is_sent(threads, monkeypatch, n_tasks, n_numbers, most):
    """Tasks and row numbers bound the trees that are grown together, whatever memory there is."""
    asked = []

    def ask(client, size, most):
        asked.append(most)
        return 2

    monkeypatch.setattr("okforest.dask.rows.TASKS", n_tasks)
    monkeypatch.setattr("okforest.dask.rows.ROW_NUMBERS", n_numbers)
    monkeypatch.setattr("okforest.dask.rows.trees_at_a_time", ask)
    fit_remote(DRAWING, blocks(X), blocks(Y), partitioned=True)
    assert asked == [most]


def test_memory_in_use(client):
    """A worker process uses memory before it has any data; results do not count."""
    before = client.run(_memory_in_use)
    assert all(n > 2**25 for n in before.values())
    data = np.ones(2**23)
    with replicated(client, data):
        during = client.run(_memory_in_use)
    assert all(during[worker] < n + 0.8 * data.nbytes for worker, n in before.items())


def test_results_on_disk():
    """Data that a worker has written to disk are not in its memory; threads share one memory."""
    worker = SimpleNamespace(
        address="tcp://127.0.0.1:1",
        state=SimpleNamespace(nbytes=100),
        data=SimpleNamespace(spilled_total=SimpleNamespace(memory=30, disk=20)),
        monitor=SimpleNamespace(get_process_memory=lambda: 500),
    )
    assert _memory_in_use(worker) == 430
    worker.data = {}
    assert _memory_in_use(worker) == 400
    worker.state.nbytes = 600  # not all of it is in memory at the same time
    assert _memory_in_use(worker) == 0
    worker.state.nbytes, worker.address = 100, "inproc://127.0.0.1/1"
    assert _memory_in_use(worker) == 0


def set_status(client, name):
    """Pause all workers, or let them run again."""

    def change(dask_worker):
        dask_worker.status = Status[name]

    client.run(change)


def test_paused_workers(threads, monkeypatch, caplog):
    """They are awaited for a while; within a fit, a warning tells why nothing happens."""
    monkeypatch.setattr("okforest.dask.cluster.WARN_EVERY", 0.01)
    set_status(threads, "paused")
    with monkeypatch.context() as patch:
        patch.setattr("okforest.dask.cluster.patience", lambda: "0.2s")
        with pytest.raises(RuntimeError, match=r"all 2 workers .* are paused after 0.2s"):
            fit(OKExtraTrees(2), X, Y)
    with watched(threads):
        end = time.monotonic() + PATIENCE
        while "all workers are paused" not in caplog.text and time.monotonic() < end:
            time.sleep(0.01)
    assert "all workers are paused, since they have too little memory" in caplog.text
    set_status(threads, "running")
    fit(OKExtraTrees(2), X, Y)


def exhaust_memory():
    """Make this worker run out of memory when it grows trees."""
    import time

    from okforest.dask import fitting

    def allocate(plan, trees, progress):
        held = []
        while True:  # until the nanny kills this process; the machine needs the rest of its memory
            held += [np.ones(2**22)] * (len(held) < 20)
            time.sleep(0.02)

    fitting.grow_locally = allocate


@pytest.mark.slow
@pytest.mark.parametrize("allowed", [0, 3])
def test_a_worker_out_of_memory(allowed):
    """It is restarted, and its tasks are repeated, up to a number of times; then fit raises."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": allowed}),
        LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=":0", memory_limit="600MiB"
        ) as cluster,
        Client(cluster) as client,
    ):
        client.run(exhaust_memory)
        model = OKExtraTrees(4, random_state=0)
        if allowed == 0:
            with pytest.raises(RuntimeError, match=r"workers died while it ran.*out of memory"):
                fit(model, X, Y, client=client)
        else:
            # The only worker held the data, which is sent again.
            found = fit(model, X, Y, client=client)
            assert_same_trees(found, OKExtraTrees(4, random_state=0).fit(X, Y))
