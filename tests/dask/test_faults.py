"""What goes wrong on clusters: workers that die, other versions, partitions that do not fit."""

import os
import signal
import time
from itertools import pairwise

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster, get_client
from distributed.comm import CommClosedError
from sklearn.base import clone

from clusters import PATIENCE, assert_same_trees, left_on, make_data
from okforest import OKExtraTrees, OKRandomForest
from okforest.dask import fit, fit_remote, predict
from okforest.dask.cluster import WorkerLimits, find_client, patience

X, Y = make_data(400)
DRAWING = OKRandomForest(6, max_samples=100, random_state=0)


def pieces(values, sizes=(150, 0, 250)):
    """Return a Dask array of blocks of these sizes."""
    cuts = np.cumsum([0, *sizes])
    return from_blocks([values[a:b] for a, b in pairwise(cuts)])


def from_blocks(blocks):
    """Return a Dask array that trusts the shape and type of its first block."""
    first = blocks[0]
    return da.concatenate(
        [
            da.from_delayed(dask.delayed(block), (len(block), *first.shape[1:]), dtype=first.dtype)
            for block in blocks
        ]
    )


def test_without_a_client():
    """The error explains how to start one."""
    with pytest.raises(RuntimeError, match=r"there is no Dask client. Start one, as in Client\(\)"):
        fit(OKExtraTrees(), X, Y)


def test_without_a_scheduler(threads):
    """A closed client has lost it."""
    with Client(threads.cluster, set_as_default=False) as other:
        pass
    with pytest.raises(RuntimeError, match="the Dask client is closed: it has no connection"):
        fit(OKExtraTrees(), X, Y, client=other)


def test_patience():
    """Workers are awaited as long as Dask waits for a connection."""
    with dask.config.set({"distributed.comm.timeouts.connect": "7s"}):
        assert patience() == "7s"


@pytest.mark.parametrize(("protocol", "how"), [("tcp", "dask worker tcp:"), (None, "scale")])
def test_without_workers(monkeypatch, protocol, how):
    """Workers are awaited for a while; the advice depends on who can reach the scheduler."""
    monkeypatch.setattr("okforest.dask.cluster.patience", lambda: "0.2s")
    with (
        LocalCluster(
            n_workers=0, processes=False, dashboard_address=":0", protocol=protocol
        ) as cluster,
        Client(cluster) as client,
        pytest.raises(RuntimeError, match=f"has no workers after 0.2s; start some.*{how}"),
    ):
        fit(OKExtraTrees(), X, Y, client=client)


def test_asynchronous_clients(threads, monkeypatch):
    """They are refused."""
    monkeypatch.setattr(Client, "asynchronous", True)
    with pytest.raises(ValueError, match="the client is asynchronous"):
        find_client(threads)
    monkeypatch.undo()


def test_other_versions(client, monkeypatch):
    """A worker or a scheduler with another version is named; so is one without okforest."""
    (worker, _), *_ = client.run(os.getpid).items()

    def pretend(version):
        import okforest

        okforest.__version__, known = version, okforest.__version__
        return known

    known = client.run(pretend, "0.0.1", workers=[worker])[worker]
    try:
        with pytest.raises(RuntimeError, match=f"worker {worker} has okforest 0.0.1; this process"):
            fit(OKExtraTrees(), X, Y, client=client)
    finally:  # other tests use this cluster
        client.run(pretend, known, workers=[worker])
    fit(OKExtraTrees(2), X, Y, client=client)

    client.run_on_scheduler(pretend, "0.0.2")
    try:
        with pytest.raises(RuntimeError, match=r"the scheduler at tcp.* has okforest 0.0.2; this"):
            fit(OKExtraTrees(), X, Y, client=client)
    finally:
        client.run_on_scheduler(pretend, known)

    def missing():
        raise ModuleNotFoundError("No module named 'okforest'")

    monkeypatch.setattr("okforest.dask.cluster._version", missing)
    with pytest.raises(RuntimeError, match="has no okforest: No module named 'okforest'"):
        fit(OKExtraTrees(), X, Y, client=client)


@pytest.mark.parametrize("method", ["replicate", "scatter"])
def test_a_worker_that_dies_while_data_is_sent(threads, monkeypatch, method):
    """Data is sent again; after a few times, an error names a cause. Nothing is left."""
    scheduler, sent = threads.cluster.scheduler, []
    usual = scheduler.handlers["scatter"] if method == "scatter" else scheduler.replicate

    async def fail(*arguments, **options):
        sent.append(1)
        if len(sent) <= n_failures:
            raise CommClosedError("Stream is closed")
        return await usual(*arguments, **options)

    if method == "scatter":
        monkeypatch.setitem(scheduler.handlers, "scatter", fail)
    else:
        monkeypatch.setattr(scheduler, "replicate", fail)
    n_failures = 3
    with pytest.raises(RuntimeError, match=r"while the data was sent, 3 times .*out of memory"):
        fit(OKExtraTrees(2), X, Y)
    assert left_on(threads) == (0, 0, 0)
    sent.clear()
    n_failures = 1
    assert_same_trees(
        fit(OKExtraTrees(2, random_state=0), X, Y), OKExtraTrees(2, random_state=0).fit(X, Y)
    )
    assert left_on(threads) == (0, 0, 0)


def test_a_worker_that_dies_while_a_model_is_sent(threads, monkeypatch):
    """The model of a prediction is sent again; after a few times, an error names a cause."""
    sent, usual = [], threads.cluster.scheduler.handlers["scatter"]

    async def fail(*arguments, **options):
        sent.append(1)
        if len(sent) <= n_failures:
            raise CommClosedError("Stream is closed")
        return await usual(*arguments, **options)

    model, n_failures = OKExtraTrees(2, random_state=0).fit(X, Y), 1
    monkeypatch.setitem(threads.cluster.scheduler.handlers, "scatter", fail)
    np.testing.assert_array_equal(predict(model, pieces(X)).compute(), model.predict(X))
    sent.clear()
    n_failures = 3
    with pytest.raises(RuntimeError, match=r"while the data was sent, 3 times .*out of memory"):
        predict(model, pieces(X))


def test_unequal_types_are_promoted(threads):
    """Inputs are of the common type of all partitions, as if they were concatenated."""
    filled = np.round(np.nan_to_num(X))
    blocks = [filled[:100].astype(np.float32), filled[100:200].astype(int), filled[200:]]
    forest = fit_remote(DRAWING, from_blocks(blocks), pieces(Y, (100, 100, 200)), partitioned=True)
    expected = DRAWING.fit(filled, Y)
    assert_same_trees(forest.to_local(), expected, but=("variance",))


def test_empty_partitions(threads):
    """They take no part; if all are empty, that is an error."""
    forest = fit_remote(DRAWING, pieces(X), pieces(Y), partitioned=True)
    assert_same_trees(forest.to_local(), DRAWING.fit(X, Y), but=("variance",))
    with pytest.raises(ValueError, match="all 2 partitions are empty"):
        fit_remote(DRAWING, pieces(X, (0, 0)), pieces(Y, (0, 0)), partitioned=True)


def test_unknown_chunk_sizes(threads):
    """The sizes of partitions are counted."""
    x, y = pieces(X, (200, 200)), pieces(Y, (200, 200))
    kept = X[:, 1] > 0
    mask = pieces(kept, (200, 200))
    forest = fit_remote(DRAWING, x[mask], y[mask], partitioned=True)
    assert_same_trees(forest.to_local(), DRAWING.fit(X[kept], Y[kept]), but=("variance",))
    found = fit(OKExtraTrees(4, random_state=0), x[mask], y[mask], client=threads)
    assert_same_trees(found, OKExtraTrees(4, random_state=0).fit(X[kept], Y[kept]))


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (
            from_blocks([X[:200], X[200:, :5]]),
            pieces(Y, (200, 200)),
            "partition 1 of X has 5 columns and partition 0 has 6",
        ),
        (
            pieces(X, (200, 200)),
            from_blocks([Y[:200], Y[200:, :1]]),
            r"partition 1 of y has outputs of shape \(1,\) and partition 0 of shape \(3,\)",
        ),
        (
            from_blocks([X[:200], np.where(X[200:] > 0, np.inf, 0.0)]),
            pieces(Y, (200, 200)),
            "partition 1: Input X contains infinity",
        ),
        (
            pieces(X, (200, 200))[pieces(X, (200, 200))[:, 1] > 0],
            pieces(Y, (200, 200)),
            r"partition \d has \d+ rows of X and 200 of y",
        ),
        (
            pieces(X, (200, 200)),
            pieces(Y, (100, 300))[pieces(np.arange(400), (100, 300)) >= 0][:, :2],
            r"partition \d has 200 rows of X and \d00 of y",
        ),
        (pieces(X, (200, 200)), pieces(Y[:390], (200, 190)), "y has 390 rows; X has 400"),
        (pieces(X, (200, 200)), Y, "y is a ndarray; expected a Dask array"),
    ],
)
def test_partitions_that_do_not_fit(threads, x, y, message):
    """The error names the partition; nothing is left on the cluster."""
    with pytest.raises((TypeError, ValueError), match=message):
        fit_remote(DRAWING, x, y, partitioned=True)
    assert left_on(threads) == (0, 0, 0)


def test_numbers_of_partitions(threads):
    """With unknown sizes, X and y must have as many partitions."""
    x = pieces(X, (200, 200))
    with pytest.raises(ValueError, match="y has 1 partitions and X has 2"):
        fit_remote(DRAWING, x[x[:, 1] > 0], pieces(Y, (400,)), partitioned=True)


def test_an_error_while_rows_are_taken(threads, monkeypatch):
    """It is raised here, and the parts grown so far are removed."""

    def fail(*arguments):
        raise RuntimeError("no disk")

    monkeypatch.setattr("okforest.dask.rows.add_piece", fail)
    with pytest.raises(RuntimeError, match="no disk"):
        fit_remote(DRAWING, pieces(X), pieces(Y), partitioned=True)
    assert left_on(threads) == (0, 0, 0)


def losing(mortal, model):
    """Let a fit lose all workers after its first trees, and start others."""
    lost = []

    def lose(done):
        if not lost:
            lost.append(done)
            mortal.lose()
            mortal.start_later()

    return model.set_params(callback=lose)


def test_all_workers_lost_in_a_fit(mortal):
    """Others are awaited, and the data is sent again: the forests are the same."""
    many = OKExtraTrees(60, random_state=0)
    assert_same_trees(fit(losing(mortal, many), X, Y), many.set_params(callback=None).fit(X, Y))
    found = fit_remote(losing(mortal, many), X, Y).to_local()
    assert_same_trees(found, many.set_params(callback=None).fit(X, Y))
    few = clone(DRAWING)
    found = fit_remote(losing(mortal, few), pieces(X), pieces(Y), partitioned=True).to_local()
    assert_same_trees(found, DRAWING.fit(X, Y), but=("variance",))


def test_data_lost_too_often(mortal):
    """After a few times, an error names a cause."""

    def lose(done):
        mortal.lose()
        mortal.start()

    with pytest.raises(RuntimeError, match=r"held the data have died, 3 times.*out of memory"):
        fit_remote(OKExtraTrees(60, callback=lose), X, Y)
    assert left_on(get_client()) == (0, 0, 0)


def test_workers_lost_after_a_fit(mortal):
    """Partitioned forests are grown again, with all that predictions need; others are lost."""
    x, y = pieces(X), pieces(Y)
    forest = fit_remote(DRAWING, x, y, partitioned=True)
    predicted = forest.predict(x)
    expected, score = predicted.compute(), float(forest.score(x, y))
    mortal.lose()
    mortal.start()
    assert np.array_equal(predicted.compute(), expected)
    mortal.lose(1)
    assert float(forest.score(x, y)) == score
    assert_same_trees(forest.to_local(), DRAWING.fit(X, Y), but=("variance",))
    mortal.start(1)
    forest = fit_remote(OKExtraTrees(60, random_state=0), X, Y)
    predicted, score = forest.predict(x), forest.score(x, y)
    mortal.lose(1)
    for lazy in (predicted, score):
        with pytest.raises(
            RuntimeError, match="parts of the forest were on workers that have died"
        ):
            lazy.compute()
    with pytest.raises(RuntimeError, match=r"of 12 parts .* have died; fit it again"):
        forest.to_local()
    end = time.monotonic() + PATIENCE  # until this process has been told
    while all(part.status != "error" for part in forest.parts) and time.monotonic() < end:
        time.sleep(0.01)
    with pytest.raises(RuntimeError, match=r"of 12 parts .* have died; fit it again"):
        forest.predict(x)


def test_workers_are_read_from_the_scheduler(threads, monkeypatch):
    """What the client remembers is without workers while Dask refreshes it: it is asked again."""
    asked, ask = [], Client.scheduler_info

    def refreshed(client, **options):
        asked.append(options)
        return {"workers": {}} if len(asked) == 1 else ask(client, **options)

    monkeypatch.setattr(Client, "scheduler_info", refreshed)
    assert WorkerLimits(threads).n_workers == 2
    assert len(asked) == 2


@pytest.mark.slow
@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_killed_worker(partitioned, n_workers):
    """A worker killed by a signal costs its tasks only: the forest is the same."""
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        victim = next(iter(client.run(os.getpid).values()))
        killed = []

        def kill(done):
            if not killed:
                os.kill(victim, signal.SIGKILL)
                killed.append(done)

        if partitioned:
            model = OKRandomForest(8, max_samples=200, random_state=0, callback=kill)
            found = fit_remote(model, pieces(X), pieces(Y), partitioned=True).to_local()
            assert_same_trees(found, model.set_params(callback=None).fit(X, Y), but=("variance",))
        else:
            model = OKRandomForest(60, random_state=0, callback=kill)
            found = fit(model, X, Y, client=client)
            assert_same_trees(found, OKRandomForest(60, random_state=0).fit(X, Y))
        assert 0 < killed[0] < model.n_estimators
