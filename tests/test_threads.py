"""The number of threads, and behaviour on fork and Ctrl-C."""

import _thread
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading

import joblib
import numpy as np
import pytest

from okforest import OKExtraTrees
from okforest._utils.resources import gram_product, interruptible, thread_count
from okforest.kernels import RBF

X = np.random.default_rng(0).normal(size=(600, 4))


@pytest.fixture(autouse=True)
def no_limits(monkeypatch):
    for name in ("OKFOREST_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)


def test_number_of_threads(monkeypatch):
    """None is one or joblib's setting, -1 all cores; environment variables limit both."""
    assert thread_count(None) == 1
    assert thread_count(-1) == joblib.cpu_count()
    assert thread_count(5) == 5
    assert thread_count(-100) == 1
    with pytest.raises(ValueError, match="n_jobs=0 is not valid"):
        thread_count(0)
    with joblib.parallel_config(n_jobs=3, backend="threading"):
        assert thread_count(None) == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert thread_count(5) == 2
    monkeypatch.setenv("OKFOREST_NUM_THREADS", "4")
    assert thread_count(5) == 4
    monkeypatch.setenv("OKFOREST_NUM_THREADS", "")
    assert thread_count(5) == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "4,2")
    assert thread_count(5) == 5


@pytest.mark.parametrize("limit", ["many", "0", "-1", "1.5"])
def test_a_limit_that_is_no_number_of_threads(monkeypatch, limit):
    """The error names the variable and its value."""
    monkeypatch.setenv("OKFOREST_NUM_THREADS", limit)
    with pytest.raises(ValueError, match=f"OKFOREST_NUM_THREADS is '{limit}'; set it to a posit"):
        thread_count(5)


def _score(_):
    return OKExtraTrees(4, n_jobs=2, random_state=0).fit(X, X).score(X, X)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_forked_child_can_fit():
    """A forked child does not hang if threads were used before."""
    expected = _score(0)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.map_async(_score, [0]).get(timeout=60) == [expected]


def test_ctrl_c_stops_a_fit():
    """SIGINT during a long fit raises KeyboardInterrupt; the interpreter stays usable."""
    program = """
        import numpy as np
        from okforest import OKBagging, OKTree
        X = np.random.default_rng(0).normal(size=(3000, 50))
        print("ready", flush=True)
        try:
            OKBagging(10_000, kernel="rbf").fit(X, X)
        except KeyboardInterrupt:
            print("stopped", OKTree().fit(X[:50], X[:50]).score(X[:50], X[:50]))
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    try:
        process.wait(1.0)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "stopped 1.0\n"


def test_ctrl_c_during_a_long_call():
    """It is heard while a function of a library is still at work."""
    done = threading.Event()

    def wait():
        _thread.interrupt_main()
        done.wait(60)

    try:
        with pytest.raises(KeyboardInterrupt):
            interruptible(wait)
    finally:
        done.set()


def test_errors_of_long_calls():
    """They are raised in the calling thread."""
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 / 0)


def test_long_calls_without_another_thread(monkeypatch):
    """If the system refuses to start a thread, the calling one does the work."""

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr("okforest._utils.resources.LARGE_PRODUCT", 1)
    np.testing.assert_array_equal(gram_product(X, X[:9]), X @ X[:9].T)


def test_long_products_are_interruptible(monkeypatch):
    """Those of large matrices run in a thread, with the same result."""
    called = []

    def remember(call):
        called.append(call)
        return interruptible(call)

    monkeypatch.setattr("okforest._utils.resources.interruptible", remember)
    expected = RBF(1.0)(X)
    assert not called
    monkeypatch.setattr("okforest._utils.resources.LARGE_PRODUCT", 1000)
    np.testing.assert_array_equal(RBF(1.0)(X), expected)
    np.testing.assert_array_equal(gram_product(X, X[:9]), X @ X[:9].T)
    assert len(called) == 2
