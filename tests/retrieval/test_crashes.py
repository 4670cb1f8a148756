"""Processes that are killed at any moment, and disks that are full: the index stays intact."""

import errno
import os
import resource
import signal
import sys
import time
import traceback

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


def kill_at_random(path, log, work, n_kills, longest, seed):
    """Run work again and again, killing it at random moments; check the index each time.

    ``work`` writes the names of the images that are committed to the log.
    """
    rng = np.random.default_rng(seed)
    n_killed = 0
    for _ in range(n_kills):
        child = in_child(work)
        time.sleep(rng.uniform(0, longest))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        n_killed += os.WIFSIGNALED(status)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        check(path, log.read_text().split() if log.exists() else [])
    assert n_killed > n_kills // 4  # most were killed, not late


@pytest.mark.parametrize(
    "n_kills", [12, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])]
)
def test_kill_during_add(build, images, tmp_path, n_kills):
    """After kill -9 in the middle of add, every committed image is there, none twice."""
    path, log = build([]).path, tmp_path / "log"
    many = make_images(240)[0]
    names = [f"n{i}" for i in range(len(many))]

    def work():
        index = SubwindowIndex(path)
        first = len(log.read_text().split()) if log.exists() else 0
        for i in range(first, len(many), 4):
            index.add(many[i : i + 4], names=names[i : i + 4], commit_every=3)
            with open(log, "a") as file:
                file.write(" ".join(names[i : i + 4]) + "\n")

    kill_at_random(path, log, work, n_kills, 0.25, seed=0)
    index = check(path, [])
    index.add(many, names=names)  # resumes
    assert len(index) == len(many)
    assert not list(path.glob(".okforest-*"))


@pytest.mark.parametrize(
    "n_kills", [8, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])]
)
def test_kill_during_compact(build, images, tmp_path, n_kills):
    """After kill -9 in the middle of compact, the index has the same images and scores."""
    index = build(commit_every=1)
    index.remove(["5", "6"])
    expected = scores_by_name(index, images[0])

    def work():
        for _ in range(50):
            mine = SubwindowIndex(index.path)
            mine.compact()
            mine.remove([next(mine.rows()).id])  # so that there is something to compact
            removed = [row.name for row in mine.rows()]
            missing = [name for name in map(str, range(12)) if name not in {*removed, "5", "6"}]
            mine.add(images[[int(name) for name in missing]], names=missing)

    rng = np.random.default_rng(1)
    for _ in range(n_kills):
        child = in_child(work)
        time.sleep(rng.uniform(0, 0.25))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        after = check(index.path, [], forbidden=["5", "6"])
        names = {row.name for row in after.rows()}
        assert len(names) >= 9  # at most the one that was being replaced
        lost = sorted(set(expected) - names)
        after.add(images[[int(name) for name in lost]], names=lost)
        assert scores_by_name(after, images[0]) == expected


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
