"""A cluster of separate processes over TCP, started from the command line."""

import subprocess
import sys

import dask.array as da
import numpy as np
import pytest
from distributed import Client

from clusters import assert_same_trees, left_on, make_data
from okforest import OKExtraTrees, OKRandomForest
from okforest.dask import fit, fit_remote, predict

X, Y = make_data()


@pytest.fixture
def address(tmp_path):
    """Start a scheduler and two workers; return the file that names the scheduler."""
    path = str(tmp_path / "scheduler.json")
    dask = [sys.executable, "-m", "dask"]
    quietly = ["--no-dashboard", "--local-directory", str(tmp_path)]
    commands = [
        [*dask, "scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", path],
        *[[*dask, "worker", "--scheduler-file", path, "--nthreads", "1", *quietly]] * 2,
    ]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes = [subprocess.Popen(command, **quiet) for command in commands]
    try:
        yield path
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(timeout=60)


@pytest.mark.slow
def test_scheduler_and_workers_over_tcp(address):
    """Fits and predictions equal local ones."""
    with Client(scheduler_file=address, timeout=60) as client:
        client.wait_for_workers(2, timeout=120)
        expected = OKExtraTrees(20, random_state=0).fit(X, Y)
        found = fit(OKExtraTrees(20, random_state=0), X, Y, client=client)
        assert_same_trees(found, expected)
        x, y = da.from_array(X, chunks=(80, -1)), da.from_array(Y, chunks=(80, -1))
        assert np.array_equal(predict(found, x).compute(), expected.predict(X))
        model = OKRandomForest(4, max_samples=100, random_state=0)
        forest = fit_remote(model, x, y, partitioned=True, client=client)
        assert_same_trees(forest.to_local(), model.fit(X, Y), but=("variance",))
        forest.release()
        assert left_on(client)[2] == 0
