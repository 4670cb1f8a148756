"""The examples run, print their tables and write their figures."""

import os
import re
import runpy
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
if not EXAMPLES.exists():
    pytest.skip("examples/ is only in the source tree", allow_module_level=True)


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Return a function that runs an example and returns what it prints."""

    def run(name, *options):
        figure = tmp_path / "figure.png"
        monkeypatch.setattr("sys.argv", [name, *options, "--figure", str(figure)])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        assert figure.read_bytes().startswith(b"\x89PNG")
        printed = capsys.readouterr().out
        assert str(figure) in printed
        return printed

    return run


def test_complete_digits(run):
    """The demo compares three models with two bounds."""
    printed = run("complete_digits.py", "--trees", "5")
    rows = ("baseline", "single tree", "bagging", "extra-trees", "best possible")
    assert all(row in printed for row in rows)


def test_complete_network(run, monkeypatch, tmp_path):
    """Without the yeast data, a synthetic network is completed."""
    monkeypatch.setenv("OKFOREST_DATA", str(tmp_path))
    printed = run("complete_network.py", "--trees", "5", "--folds", "3")
    assert "yeast_ppi is not available" in printed
    assert all(row in printed for row in ("new-new pairs", "extra-trees", "cosine"))
    assert "Importance" in printed


def test_search_images():
    """The demo of the image search prints its address at once, also to a pipe, and serves it."""
    pytest.importorskip("fastapi", reason="FastAPI is not installed")
    port = 40_000 + os.getpid() % 20_000
    command = [sys.executable, EXAMPLES / "search_images.py", "--port", str(port), "--images", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as demo:
        try:
            printed = next(line for line in demo.stdout if line.startswith("open "))
            folder = re.search(r"are in (\S+),", demo.stdout.readline())[1]
            with urlopen(re.search(r"http://\S+", printed)[0], timeout=60) as page:
                assert b"Image search" in page.read()
            assert (Path(folder) / "harbour").is_dir()
            demo.send_signal(signal.SIGINT)
            demo.wait(60)
        finally:
            demo.kill()
