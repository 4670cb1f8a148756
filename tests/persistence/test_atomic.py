"""Whatever fails, and whenever: the file is the old one or the new one."""

import os
import signal
import stat
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import okforest
from okforest import OKExtraTrees
from okforest.persistence.atomic import replacing

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3))


@pytest.fixture
def path(tmp_path):
    okforest.save(OKExtraTrees(3, random_state=0).fit(X, X), tmp_path / "model.okforest")
    return tmp_path / "model.okforest"


def test_failing_in_the_middle(path):
    """An exception, also one that is no Exception, removes the new file and leaves the old."""

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


def test_failing_at_the_end(path, monkeypatch):
    """So does a disk that does not take the bytes."""

    def fail(descriptor):
        raise OSError(28, "No space left on device")

    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        okforest.save(OKExtraTrees(2).fit(X, X), path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def run(program, *arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on files' sizes")
def test_a_file_too_large(path):
    """The system refuses to write on, half-way."""
    before = path.read_bytes()
    program = """
        import resource, sys, numpy as np, okforest
        X = np.random.default_rng(0).normal(size=(300, 3))
        model = okforest.OKExtraTrees(20).fit(X, X)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        try:
            okforest.save(model, sys.argv[1])
        except OSError as error:
            print(error.strerror)
    """
    assert run(program, path).communicate(timeout=60)[0] == "File too large\n"
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_killed_while_writing(path):
    """A process that is killed in the midst of saving leaves a file that can be loaded."""
    program = """
        import sys, numpy as np, okforest
        X = np.random.default_rng(0).normal(size=(300, 3))
        model = okforest.OKExtraTrees(3, random_state=0).fit(X, X)
        model.ballast_ = np.zeros(3_000_000)
        print("ready", flush=True)
        while True:
            okforest.save(model, sys.argv[1])
    """
    expected = okforest.load(path).predict(X)
    for _ in range(2):
        process = run(program, path)
        assert process.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0.05, 0.3))
        process.send_signal(signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
        process.communicate(timeout=60)
        np.testing.assert_array_equal(okforest.load(path).predict(X), expected)


@pytest.mark.skipif(sys.platform == "win32", reason="no links or modes as POSIX has them")
def test_links_and_permissions_are_kept(path):
    """The file behind a link is replaced, with its permissions."""
    path.chmod(0o640)
    link = path.with_name("link")
    link.symlink_to(path)
    before = path.read_bytes()
    okforest.save(OKExtraTrees(2).fit(X, X), link)
    assert link.is_symlink()
    assert path.read_bytes() != before
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
