"""Dask's sampling of running tasks, which is paused while trees grow."""

import time
from types import SimpleNamespace

import dask
import pytest
from distributed import Client, LocalCluster, Status, get_worker

from clusters import PATIENCE, make_data
from okforest import OKExtraTrees
from okforest.dask import _growing, fit, fit_remote
from okforest.dask._sampling import without_sampling

X, Y = make_data(200)


class Callback:
    """A periodic callback that counts how often it is started."""

    n_starts, running = 0, True

    def start(self):
        self.n_starts, self.running = self.n_starts + 1, True

    def stop(self):
        self.running = False

    def is_running(self):
        return self.running


class Worker(SimpleNamespace):
    """A worker whose event loop runs everything at once; weak references need a class."""

    __hash__ = object.__hash__


@pytest.fixture
def worker(monkeypatch):
    loop = SimpleNamespace(add_callback=lambda function, *arguments: function(*arguments))
    worker = Worker(loop=loop, periodic_callbacks={"profile": Callback()}, status=Status.running)
    monkeypatch.setattr("distributed.get_worker", lambda: worker)
    return worker


def test_several_tasks_of_a_worker(worker):
    """The first task pauses the sampling, and the last one resumes it, after an error, too."""
    sampling = worker.periodic_callbacks["profile"]
    with without_sampling():
        with without_sampling():
            assert not sampling.running
        assert not sampling.running
        assert sampling.n_starts == 0
    assert sampling.running
    with pytest.raises(ZeroDivisionError), without_sampling():
        raise ZeroDivisionError
    assert sampling.running
    assert sampling.n_starts == 2


def test_a_worker_that_is_closing(worker):
    """Its callbacks have been stopped for good; those of a paused one are resumed."""
    sampling = worker.periodic_callbacks["profile"]
    with without_sampling():
        worker.status = Status.closing
    assert not sampling.running
    with without_sampling():
        worker.status = Status.paused
    assert sampling.running


def test_a_worker_without_sampling(worker):
    """There is nothing to pause."""
    worker.periodic_callbacks.clear()
    with without_sampling():
        pass


def seen_within(seconds, condition):
    """Return whether a condition is true within some seconds; the event loop may be late."""
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.01)
    return found


def test_growing_trees(monkeypatch):
    """Workers do not sample while trees grow, and do so again after."""
    paused = []

    def grow(*arguments, **options):
        sampling = get_worker().periodic_callbacks["profile"]
        paused.append(seen_within(PATIENCE, lambda: not sampling.is_running()))
        return usual(*arguments, **options)

    usual = _growing.grow_here
    monkeypatch.setattr(_growing, "grow_here", grow)
    with (
        dask.config.set({"distributed.worker.profile.enabled": True}),
        LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        fit(OKExtraTrees(8), X, Y, client=client)
        fit_remote(OKExtraTrees(8), X, Y, client=client)
        assert len(paused) > 3
        assert all(paused)
        (worker,) = cluster.workers.values()
        assert seen_within(PATIENCE, worker.periodic_callbacks["profile"].is_running)
