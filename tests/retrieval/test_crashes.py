"""Processes that are killed at any moment, and disks that are full: the index stays intact."""

import errno
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from itertools import count
from mmap import mmap

import numpy as np
import pytest

from okforest.retrieval import SubwindowIndex
from reference.retrieval import make_images, scores_by_name

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it needs fork")


def in_child(work):
    """Run a function in a forked process, and return the process's number."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return child


def check(path, promised, forbidden=()):
    """Check that the index has every image of a list, none twice, and finds them."""
    index = SubwindowIndex(path)
    rows = list(index.rows())
    names = [row.name for row in rows]
    assert len(set(names)) == len(names), "an image is there twice"
    assert len({row.id for row in rows}) == len(rows)
    assert set(promised) <= set(names), "a committed image is missing"
    assert not set(forbidden) & set(names)
    if names:
        scores = index.scores(make_images()[0][0])[1]
        assert scores.sum() == pytest.approx(1)
    return index


def killed_within(change, longest, rng):
    """Run a change in a process that is killed; return whether that was before the change ended.

    ``change`` is called with two functions: the first is to be called when a change begins, the
    second when it has ended. The process is killed a random time after the first beginning.
    """
    shared = mmap(-1, 1)  # 0 before the first change, 1 within a change, 2 after it

    def mark(state):
        return lambda: shared.__setitem__(0, state)

    child = in_child(lambda: change(mark(1), mark(2)))
    while shared[0] == 0:
        ended, status = os.waitpid(child, os.WNOHANG)
        assert not ended, f"the process has ended with status {status}"
        time.sleep(0.001)
    time.sleep(rng.uniform(0, longest))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status) and shared[0] == 1


HUNDRED = pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])


@pytest.mark.parametrize("n_kills", [12, HUNDRED])
def test_kill_during_add(build, tmp_path, n_kills):
    """After kill -9 in the middle of add, every committed image is there, none twice."""
    path, log = build([]).path, tmp_path / "log"
    log.touch()
    many = make_images(240)[0]

    def names_of(numbers):
        return [f"n{i}" for i in numbers]

    def add_forever(begin, end):
        index = SubwindowIndex(path)
        for first in count(len(log.read_text().split()), 4):
            numbers = range(first, first + 4)
            begin()
            index.add(many[[i % 240 for i in numbers]], names=names_of(numbers), commit_every=3)
            end()
            with open(log, "a") as file:
                file.write(" ".join(names_of(numbers)) + "\n")

    rng, n_within = np.random.default_rng(0), 0
    while n_within < n_kills:
        n_within += killed_within(add_forever, 0.1, rng)
        index = check(path, log.read_text().split())
        if len(index.snapshot.segments) > 50:
            index.compact()
    n = len(log.read_text().split()) + 4
    index.add(many[[i % 240 for i in range(n)]], names=names_of(range(n)))  # resumes
    assert {row.name for row in check(path, []).rows()} == set(names_of(range(n)))
    assert not list(path.glob(".okforest-*"))


@pytest.mark.parametrize("n_kills", [8, HUNDRED])
def test_kill_during_compact(build, images, tmp_path, n_kills):
    """After kill -9 in the middle of compact, the index has the same images and scores."""
    original = build(commit_every=1)
    original.remove(["5", "6"])
    expected = scores_by_name(original, images[0])
    path = tmp_path / "copy"

    def compact(begin, end):
        index = SubwindowIndex(path)
        begin()
        index.compact()
        end()

    rng, n_within, n_segments = np.random.default_rng(1), 0, set()
    longest = 0.05  # seconds; adapted to how long a compaction takes on this machine
    while n_within < n_kills:
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(original.path, path)
        within = killed_within(compact, longest, rng)
        longest *= 1.3 if within else 0.7
        n_within += within
        index = check(path, expected, forbidden=["5", "6"])
        n_segments.add(len(index.snapshot.segments))
        assert scores_by_name(index, images[0]) == expected
        index.compact()
        index.add(images[5:6], names=["5"])  # deletes what the killed process has left behind
        assert len(list(path.glob("segment-*.okf"))) == 2
        assert not list(path.glob(".okforest-*"))
    assert n_segments <= {12, 1}


def limited(n_bytes):
    """Let this process write files of so many bytes at most."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))


@pytest.mark.parametrize("n_bytes", [0, 100, 2000, 4000])
def test_no_room(build, images, n_bytes):
    """A file that cannot be written ends add and compact with an error; the index is as it was."""
    index = build(range(9), commit_every=4)
    expected = scores_by_name(index, images[1])

    def work():
        limited(n_bytes)
        for change in (lambda: index.add(images[9:], names=list("abc")), index.compact):
            with pytest.raises(OSError, match="is as it was before this change"):
                change()

    _, status = os.waitpid(in_child(work), 0)
    assert status == 0
    after = check(index.path, [str(i) for i in range(9)], forbidden="abc")
    assert scores_by_name(after, images[1]) == expected
    assert after.add(images[9:], names=list("abc")).n_added == 3


def test_no_room_for_a_new_index(build, images, tmp_path):
    """No index is made; the same call works later."""

    def work():
        limited(100)
        with pytest.raises(OSError, match=r"no index was made in .*new\. Make room"):
            build(range(3), "new")

    _, status = os.waitpid(in_child(work), 0)
    assert status == 0
    with pytest.raises(FileNotFoundError, match="has no index"):
        SubwindowIndex(tmp_path / "new")
    assert len(build(range(3), "new")) == 3


def test_full_disk(build, images, monkeypatch):
    """So does a disk that is full when data are flushed."""
    index = build(range(3))

    def fail(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="No space left on device: the index in") as caught:
            index.remove(["1"])
    assert caught.value.errno == errno.ENOSPC
    assert len(check(index.path, ["0", "1", "2"])) == 3
