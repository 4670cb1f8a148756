"""The examples run, print their tables and write their figures."""

import runpy
from pathlib import Path

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
    assert all(row in printed for row in ("unseen-unseen pairs", "extra-trees", "cosine"))
    assert "Importance" in printed
