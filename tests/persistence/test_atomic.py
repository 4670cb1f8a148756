"""Whatever fails, and whenever: the file is the old one or the new one."""

import multiprocessing
import os
import signal
import stat
import sys
import time

import numpy as np
import pytest

import okforest
from okforest import OKExtraTrees
from okforest.persistence import atomic
from okforest.persistence.atomic import replacing

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3))
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")


@pytest.fixture(scope="module")
def model():
    return OKExtraTrees(20, random_state=0).fit(X, X)


@pytest.fixture
def path(tmp_path):
    okforest.save(OKExtraTrees(3, random_state=0).fit(X, X), tmp_path / "model.okforest")
    return tmp_path / "model.okforest"


def temporary_files(path):
    return sorted(path.parent.glob(".okforest-*"))


def test_failing_in_the_middle(path):
    """Any exception removes the new file and keeps the old one."""

    def fail(error):
        with replacing(path) as file:
            file.write(b"half")
            raise error

    before = path.read_bytes()
    for error in (OSError, KeyboardInterrupt):
        with pytest.raises(error):
            fail(error)
        assert path.read_bytes() == before
        assert list(path.parent.iterdir()) == [path]


def test_failing_at_the_end(path, model, monkeypatch):
    """So does a full disk."""

    def fail(descriptor):
        raise OSError(28, "No space left on device")

    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        okforest.save(model, path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def start(work, *arguments):
    """Run a function in another process; return the process and what it reports."""
    context = multiprocessing.get_context("fork")
    reports = context.SimpleQueue()
    process = context.Process(target=work, args=(reports, *arguments), daemon=True)
    process.start()
    return process, reports


def kill(process):
    process.kill()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


def save_with_little_space(reports, model, path):
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    try:
        okforest.save(model, path)
    except OSError as error:
        reports.put(error.strerror)


@posix
def test_a_file_too_large(path, model):
    """The system refuses to write more, half-way."""
    before = path.read_bytes()
    process, reports = start(save_with_little_space, model, path)
    assert reports.get() == "File too large"
    process.join(60)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def save_forever(reports, path):
    model = okforest.load(path)
    model.categorical_features = np.zeros(3_000_000)  # ballast
    reports.put("ready")
    while True:
        okforest.save(model, path)


@posix
def test_killed_while_saving(path):
    """A killed process leaves a file that can be loaded, and the next save cleans up."""
    expected = okforest.load(path).predict(X)
    for _ in range(3):
        process, reports = start(save_forever, path)
        assert reports.get() == "ready"
        time.sleep(rng.uniform(0.02, 0.2))
        kill(process)
        np.testing.assert_array_equal(okforest.load(path).predict(X), expected)
    okforest.save(okforest.load(path), path)
    assert temporary_files(path) == []


def write_slowly(reports, go_on, path):
    with replacing(path) as file:
        file.write(b"half, ")
        file.flush()
        reports.put("half")
        go_on.wait(60)
        file.write(b"whole")


@posix
def test_only_leftovers_are_removed(path, model):
    """A save removes the temporary file of a killed process, but not one in use."""
    go_on, never = (multiprocessing.get_context("fork").Event() for _ in range(2))
    other = path.with_name("other")
    alive, reports = start(write_slowly, go_on, other)
    assert reports.get() == "half"
    in_use = temporary_files(path)
    killed, reports = start(write_slowly, never, path)
    assert reports.get() == "half"
    kill(killed)
    assert len(temporary_files(path)) == 2
    okforest.save(model, path)
    assert temporary_files(path) == in_use
    go_on.set()
    alive.join(60)
    assert other.read_bytes() == b"half, whole"
    assert sorted(path.parent.iterdir()) == [path, other]


@posix
def test_links_are_not_leftovers(path, model):
    """A link is not followed, whatever its name: neither it nor its file is touched."""
    file, link = path.with_name("file"), path.with_name(".okforest-link.tmp")
    file.write_bytes(b"mine")
    link.symlink_to(file)
    okforest.save(model, path)
    assert link.is_symlink()
    assert link.read_bytes() == b"mine"


@posix
def test_a_temporary_file_that_is_taken_for_a_leftover(path, model, monkeypatch):
    """A file that another process removes before it is locked is created again."""
    removed = []

    def remove_then_lock(descriptor, operation):
        if not removed:
            removed.extend(temporary_files(path))
            removed[0].unlink()

    monkeypatch.setattr(atomic, "flock", remove_then_lock)
    okforest.save(model, path)
    assert len(removed) == 1
    assert len(okforest.load(path).trees_) == 20
    assert temporary_files(path) == []


@posix
def test_file_systems_without_locks(path, model, monkeypatch):
    """Models are saved without locks, and leftovers stay."""

    def fail(descriptor, operation):
        raise OSError(95, "Operation not supported")

    leftover = path.with_name(".okforest-0123456789abcdef.tmp")
    leftover.write_bytes(b"half")
    monkeypatch.setattr(atomic, "flock", fail)
    okforest.save(model, path)
    assert len(okforest.load(path).trees_) == 20
    assert temporary_files(path) == [leftover]


@posix
def test_links_and_permissions_are_kept(path, model):
    """Of a link, the file that it points to is replaced, with its permissions."""
    path.chmod(0o640)
    link = path.with_name("link")
    link.symlink_to(path)
    before = path.read_bytes()
    okforest.save(model, link)
    assert link.is_symlink()
    assert path.read_bytes() != before
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
