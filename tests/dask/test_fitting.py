"""Forests grown on a cluster equal those grown here, and leave nothing behind."""

import os
import pickle
import signal
import threading
import time

import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from distributed import Client, LocalCluster

from clusters import assert_same_trees, left_on, make_data
from okforest import OKBagging, OKBoost, OKExtraTrees, OKRandomForest, OKTotallyRandomTrees, OKTree
from okforest.dask import fit, fit_remote
from okforest.dask.cluster import cancelling
from okforest.dask.fitting import SentPlan, tree_ranges
from okforest.engine import GrowthPlan, grow

X, Y = make_data()
WEIGHT = np.random.default_rng(1).integers(0, 4, size=len(X)).astype(float)
MODELS = {
    "extra-trees": OKExtraTrees(11, random_state=0),
    "random forest": OKRandomForest(30, random_state=0, oob_score=True),
    "rbf kernel": OKBagging(5, kernel="rbf", max_features=2, random_state=0),
    "pruned": OKRandomForest(6, ccp_alpha=1.0, random_state=0),
    "totally random": OKTotallyRandomTrees(9, random_state=0),
    "one tree": OKTree(random_state=0),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
def test_equal_to_a_local_fit(threads, model, weight):
    """All arrays of the trees are equal, and so are predictions."""
    expected = model.fit(X, Y, weight)
    found = fit(type(model)(**model.get_params()), X, Y, weight, client=threads)
    assert_same_trees(found, expected)
    assert np.array_equal(found.predict(X), expected.predict(X))
    if getattr(model, "oob_score", False):
        assert found.oob_score_ == expected.oob_score_


def test_worker_processes(client, monkeypatch):
    """The data is sent once, whatever the number of tasks, and nothing stays on the cluster."""
    n_pickled = []
    reduce = GrowthPlan.__reduce_ex__

    def counting(plan, protocol):
        n_pickled.append(1)
        return reduce(plan, protocol)

    monkeypatch.setattr(GrowthPlan, "__reduce_ex__", counting)
    counts = []
    model = OKRandomForest(20, random_state=0, callback=counts.append)
    found = fit(model, X, Y, WEIGHT, client)
    assert len(n_pickled) == 1
    assert len(counts) > 2
    assert counts == sorted(counts)
    assert counts[-1] == 20
    assert_same_trees(found, OKRandomForest(20, random_state=0).fit(X, Y, WEIGHT))
    assert left_on(client) == (0, 0, 0)


def as_frame(values):
    frame = pd.DataFrame(values, columns=[f"x{j}" for j in range(values.shape[1])])
    frame["colour"] = np.resize(["red", "green", "blue", None], len(frame))
    return frame.astype({"colour": "category"})


COLLECTIONS = {
    "array": (da.from_array(X, chunks=(70, 4)), X),
    "float32": (da.from_array(X.astype(np.float32), chunks=100), X.astype(np.float32)),
    "frame with categories": (dd.from_pandas(as_frame(X), npartitions=3), as_frame(X)),
    "sparse, not a collection": (sp.csr_array(np.nan_to_num(X)), sp.csr_array(np.nan_to_num(X))),
}


@pytest.mark.parametrize(("collection", "local"), COLLECTIONS.values(), ids=COLLECTIONS)
def test_collections(threads, collection, local):
    """Dask arrays and frames are fitted as what they hold."""
    y, weight = da.from_array(Y, chunks=100), da.from_array(WEIGHT, chunks=50)
    found = fit(OKExtraTrees(5, random_state=0), collection, y, weight, client=threads)
    expected = OKExtraTrees(5, random_state=0).fit(local, Y, WEIGHT)
    assert_same_trees(found, expected)
    assert found.n_features_in_ == expected.n_features_in_
    assert hasattr(found, "feature_names_in_") == hasattr(expected, "feature_names_in_")


def test_columns_of_partitions(threads):
    """A column that one partition does not have is an error, not a missing value."""
    frames = [as_frame(part) for part in (X[:100], X[100:])]
    expected = fit(OKExtraTrees(5, random_state=0), pd.concat(frames), Y, client=threads)
    turned = [frame[[*frame.columns[::-1]]] for frame in frames]
    for pair, is_valid in (
        ((frames[0], turned[1]), True),
        ((turned[0], frames[1]), True),
        ((frames[0], frames[1].drop(columns="x2")), False),
    ):
        parts = [dask.delayed(frame) for frame in pair]
        x = dd.from_delayed(parts, meta=frames[0].iloc[:0], verify_meta=False)
        if is_valid:  # another order
            assert_same_trees(fit(OKExtraTrees(5, random_state=0), x, Y), expected)
        else:
            for fit_any in (fit, fit_remote):
                with pytest.raises(
                    ValueError, match=r"a partition of X has columns \['x0', 'x1', '"
                ):
                    fit_any(OKExtraTrees(5), x, Y)


def test_the_current_client_is_used(threads):
    """No client needs to be passed."""
    assert_same_trees(fit(MODELS["one tree"], X, Y), OKTree(random_state=0).fit(X, Y))


def test_warm_start(threads):
    """More trees are added on the cluster."""
    model = OKExtraTrees(4, warm_start=True, random_state=0).fit(X, Y)
    fit(model.set_params(n_estimators=9), X, Y, client=threads)
    assert_same_trees(model, OKExtraTrees(9, random_state=0).fit(X, Y))


def test_progress_bar(threads, capsys):
    """With verbose=1 a bar counts the trees."""
    fit(OKExtraTrees(10, verbose=1), X, Y, client=threads)
    assert "10/10" in capsys.readouterr().err


@pytest.mark.parametrize("n_trees", [1, 3, 8, 25, 200, 1000])
@pytest.mark.parametrize("n_threads", [1, 3, 16])
def test_ranges(n_trees, n_threads):
    """Ranges cover every tree once; there is one for each thread if there are enough trees."""
    ranges = tree_ranges(range(5, 5 + n_trees), n_threads)
    assert [t for trees in ranges for t in trees] == list(range(5, 5 + n_trees))
    assert len(ranges) >= min(n_trees, n_threads) / 2


@pytest.mark.parametrize("inputs", [X, sp.csr_array(np.nan_to_num(X))], ids=["dense", "sparse"])
def test_received_arrays_are_aligned(inputs):
    """Buffers of a message begin anywhere; the arrays of a received plan do not."""
    plan = OKExtraTrees(3, random_state=0)._plan(inputs, Y, None).growth
    buffers = []
    data = pickle.dumps(SentPlan.of(plan), protocol=5, buffer_callback=buffers.append)
    shifted = []
    for buffer in buffers:
        raw = np.zeros(len(buffer.raw()) + 3, dtype=np.uint8)
        raw[3:] = np.frombuffer(buffer.raw(), dtype=np.uint8)
        shifted.append(raw[3:])
    found = pickle.loads(data, buffers=shifted)
    assert len(buffers) > 2
    assert found.outputs.flags.aligned
    assert getattr(found.X, "data" if sp.issparse(inputs) else "T").flags.aligned
    grown, expected = grow(found, range(3)), grow(plan, range(3))
    assert np.array_equal(grown.threshold, expected.threshold)


class Broken(Exception):
    pass


@pytest.mark.parametrize("error", [Broken, KeyboardInterrupt])
def test_an_error_cancels_the_rest(threads, error):
    """An error here, as from a callback, leaves no task and no data on the cluster."""

    def fail(done):
        raise error

    with pytest.raises(error):
        fit(OKExtraTrees(2000, callback=fail), X, Y, client=threads)
    assert left_on(threads) == (0, 0, 0)


def test_a_failed_task_cancels_the_rest(threads, monkeypatch):
    """An error on a worker is raised here, and leaves nothing behind."""

    def fail(plan, trees, progress):
        raise Broken(f"tree {trees[0]}")

    monkeypatch.setattr("okforest.dask.fitting.grow_locally", fail)
    with pytest.raises(Broken, match="tree"):
        fit(OKExtraTrees(100), X, Y, client=threads)
    assert left_on(threads) == (0, 0, 0)


def test_ctrl_c(threads, monkeypatch):
    """Growth on the workers stops: it would take an hour."""
    begun = threading.Event()

    def begin(plan, trees, progress):
        begun.set()
        return grow(plan, trees, progress=progress)

    def interrupt():
        begun.wait()
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("okforest.dask.fitting.grow_locally", begin)
    slow = OKExtraTrees(20_000, random_state=0)
    inputs = np.random.default_rng(0).normal(size=(20_000, 10))
    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        fit(slow, inputs, inputs, client=threads)
    thread.join()
    assert left_on(threads) == (0, 0, 0)
    assert not hasattr(slow, "trees_")


SUBMITTED = {  # fits, and the tasks that are submitted when they are interrupted
    "trees": (fit, {}, 3),
    "trees that stay": (fit_remote, {}, 3),
    "trees to keep": (fit_remote, {}, 15),
    "samples": (fit_remote, {"partitioned": True}, 20),
}


@pytest.mark.parametrize(("fit_any", "options", "n_tasks"), SUBMITTED.values(), ids=SUBMITTED)
def test_ctrl_c_while_tasks_are_submitted(threads, monkeypatch, fit_any, options, n_tasks):
    """Those submitted so far are cancelled, even while the error is kept, as shells do."""
    submitted = []
    submit = Client.submit

    def interrupted(client, function, *arguments, **others):
        if function is not int:  # it comes after the interruption
            submitted.append(function)
            if len(submitted) == n_tasks:
                raise KeyboardInterrupt
        return submit(client, function, *arguments, **others)

    monkeypatch.setattr(Client, "submit", interrupted)
    x, y = da.from_array(X, chunks=(50, -1)), da.from_array(Y, chunks=(50, -1))
    with pytest.raises(KeyboardInterrupt) as kept:
        fit_any(OKRandomForest(60, random_state=0), x, y, client=threads, **options)
    assert len(submitted) == n_tasks
    assert left_on(threads) == (0, 0, 0)
    assert kept.value is not None


def test_ctrl_c_before_the_scheduler_knows_the_tasks(threads, monkeypatch):
    """It reads them in another thread: tasks may come after the message that cancels them."""
    read, futures = distributed.scheduler._materialize_graph, []

    def read_slowly(*arguments, **others):
        time.sleep(0.2)
        return read(*arguments, **others)

    def interrupted():
        with cancelling(threads, futures):
            futures.extend(threads.submit(abs, k, pure=False) for k in range(4))
            raise KeyboardInterrupt

    monkeypatch.setattr(distributed.scheduler, "_materialize_graph", read_slowly)
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert left_on(threads) == (0, 0, 0)
    for _ in range(8):  # none comes later
        assert left_on(threads, seconds=0) == (0, 0, 0)
        time.sleep(0.15)


def test_gpus(threads):
    """Workers have none; device="auto" grows on their CPUs."""
    for fit_any in (fit, fit_remote):
        with pytest.raises(ValueError, match=r"device='cuda' grows trees on the GPU.*device='cpu'"):
            fit_any(OKExtraTrees(3, device="cuda"), X, Y)
    found = fit(OKExtraTrees(3, device="auto", random_state=0), X, Y)
    assert_same_trees(found, OKExtraTrees(3, random_state=0).fit(X, Y))


def test_other_models_are_refused(threads):
    """The rounds of boosting depend on each other."""
    for model in (OKBoost(), OKTree, "forest"):
        with pytest.raises(TypeError, match=r"fits forests, whose trees .* joblib's dask backend"):
            fit(model, X, Y, client=threads)


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_numbers_of_worker_processes(n_workers):
    """The forest is the same for 1, 2 and 4 workers, with weights, missing values, categories."""
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        for make in (OKExtraTrees, OKRandomForest):
            for inputs in (X, as_frame(X)):
                for weight in (None, WEIGHT):
                    expected = make(20, random_state=0).fit(inputs, Y, weight)
                    found = fit(make(20, random_state=0), inputs, Y, weight, client)
                    assert_same_trees(found, expected)
        assert left_on(client) == (0, 0, 0)
