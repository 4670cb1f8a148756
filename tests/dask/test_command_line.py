"""A cluster of separate processes over TCP, started from the command line."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import dask.array as da
import numpy as np
import pytest
from distributed import Client

from clusters import PATIENCE, assert_same_trees, left_on, make_data
from okforest import OKExtraTrees, OKRandomForest
from okforest.dask import fit, fit_remote, predict

X, Y = make_data()


@pytest.fixture
def address(tmp_path):
    """Start a scheduler and two workers as the guide does; return the scheduler's address."""
    dask, file = [sys.executable, "-m", "dask"], tmp_path / "scheduler.json"
    quiet = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
    local = ["--host", "127.0.0.1", "--no-dashboard"]
    command = [*dask, "scheduler", "--port", "0", *local, "--scheduler-file", str(file)]
    processes = [subprocess.Popen(command, **quiet, start_new_session=True)]
    try:
        address = None
        while address is None:
            assert processes[0].poll() is None, "the scheduler has ended"
            time.sleep(0.05)
            with suppress(OSError, ValueError):  # the file is not there yet, or not complete
                address = json.loads(file.read_text())["address"]
        worker = [*dask, "worker", address, "--nthreads", "1", *local]
        processes += [
            subprocess.Popen(
                [*worker, "--local-directory", str(tmp_path)], **quiet, start_new_session=True
            )
            for _ in range(2)
        ]
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
            try:
                process.wait(timeout=PATIENCE / 4)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # a nanny has started a worker
                process.wait()


@pytest.mark.slow
def test_scheduler_and_workers_over_tcp(address):
    """Fits and predictions equal local ones."""
    with Client(address, timeout=PATIENCE) as client:
        client.wait_for_workers(2, timeout=PATIENCE)
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
