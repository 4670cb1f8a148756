"""The Makefile's set-up says what is missing, and fails."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SETUP = ROOT / "tools" / "setup.sh"

pytestmark = pytest.mark.skipif(
    shutil.which("sh") is None or not SETUP.exists(), reason="needs sh and the source tree"
)


def run(tmp_path, programs, **environment):
    """Run the set-up where only the named programs are found."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, target in programs.items():
        (folder / name).symlink_to(target)
    return subprocess.run(
        [shutil.which("sh"), str(SETUP), str(tmp_path / "venv")],
        env={"PATH": str(folder), "HOME": str(tmp_path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_python(tmp_path):
    """Without Python 3.11 or newer."""
    result = run(tmp_path, {})
    assert result.returncode != 0
    assert "no Python 3.11 or newer was found. Install one" in result.stderr


def test_old_python(tmp_path):
    """With an interpreter that is too old, or no interpreter at all."""
    result = run(tmp_path, {"python3": shutil.which("false")})
    assert result.returncode != 0
    assert "no Python 3.11 or newer" in result.stderr


def test_no_compiler(tmp_path):
    """Without a C++20 compiler."""
    result = run(tmp_path, {"python3": sys.executable})
    assert result.returncode != 0
    assert "no C++20 compiler was found. Install one" in result.stderr


def test_no_network(tmp_path):
    """Without a package index."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("needs a compiler to get as far as the network")
    result = run(
        tmp_path,
        {"python3": sys.executable},
        CXX=compiler,
        PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        PIP_INDEX_URL="http://127.0.0.1:9/simple",
        PIP_FIND_LINKS="",
        PIP_RETRIES="0",
        PIP_CONFIG_FILE=os.devnull,
    )
    assert result.returncode != 0
    assert "Check the network" in result.stderr
