"""The Makefile's set-up reports its steps and what is missing, and installs no more than asked."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SETUP = Path(__file__).parent.parent / "tools" / "setup.sh"

pytestmark = pytest.mark.skipif(
    shutil.which("sh") is None or not SETUP.exists(), reason="needs sh and the source tree"
)


@pytest.fixture
def run(tmp_path):
    """Return a function that runs the set-up where only the named programs are found."""

    def run(*groups, **programs):
        folder = tmp_path / "bin"
        folder.mkdir()
        for name, target in programs.items():
            (folder / name).symlink_to(target)
        return subprocess.run(
            [shutil.which("sh"), str(SETUP), str(tmp_path / "venv"), *groups],
            env={"PATH": str(folder), "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture
def virtual_environment(tmp_path):
    """Create a virtual environment whose Python writes its arguments to a file, then fails or not.

    Returns a function of the exit status of that Python, which returns the file.
    """

    def make(status):
        log = tmp_path / "log"
        python = tmp_path / "venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!{shutil.which("sh")}\necho "$@" >>"{log}"\nexit {status}\n')
        python.chmod(0o755)
        (python.parent / "pip").symlink_to(python)
        return log

    return make


def test_no_python(run):
    """No interpreter is found."""
    result = run()
    assert result.returncode != 0
    assert "no Python 3.11 or newer was found. Install one" in result.stderr


def test_old_python(run):
    """The interpreter is too old, or not an interpreter."""
    result = run(python3=shutil.which("false"))
    assert result.returncode != 0
    assert "no Python 3.11 or newer" in result.stderr


def test_no_compiler(run):
    """There is no C++20 compiler."""
    result = run(python3=sys.executable)
    assert result.returncode != 0
    assert "no C++20 compiler was found. Install one" in result.stderr


def test_the_demo_needs_no_tools(run, virtual_environment):
    """Without a group, only the build tools and the run-time packages are installed."""
    log = virtual_environment(0)
    result = run(python3=sys.executable, **{"c++": shutil.which("true")})
    assert result.returncode == 0, result.stderr
    assert [line.split(": ")[1] for line in result.stdout.splitlines()] == [
        "installing the build tools",
        "compiling the C++ core (two to five minutes)",
        "installing NumPy, SciPy, scikit-learn and Matplotlib",
    ]
    installed = log.read_text()
    assert "okforest[plot]" in installed
    assert [line.split()[-1] for line in installed.splitlines() if "--group" in line] == ["build"]


def test_a_group_is_added(run, virtual_environment):
    """With a group, its packages are installed, and nothing is built."""
    log = virtual_environment(0)
    result = run("test")
    assert result.returncode == 0
    assert "installing the packages of the 'test' group" in result.stdout
    assert "--group test" in log.read_text()
    assert len(log.read_text().splitlines()) == 1


def test_no_network(run, virtual_environment):
    """Pip cannot download a package."""
    virtual_environment(1)
    result = run("test")
    assert result.returncode != 0
    assert "pip failed; its message is above. If it could not download" in result.stderr
    assert "check the network connection" in result.stderr
