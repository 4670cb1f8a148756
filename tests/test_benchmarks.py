"""The benchmarks run, at sizes where their times mean nothing, and none of them is asserted."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PEERS = sorted(path.stem for path in ROOT.glob("benchmarks/compare/versus_*.py"))
LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OKFOREST_NUM_THREADS")
TINY = ("--trees", "2", "--samples", "40", "--repeats", "1")

pytestmark = pytest.mark.skipif(not PEERS, reason="benchmarks come with the source tree")


def run(module, *arguments, **environment):
    """Run a benchmark, without a folder of data, and return what it prints."""
    # One thread from the start, or the program would have to start itself again.
    threads = dict.fromkeys(LIMITS, "1")
    result = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | threads | {"OKFOREST_DATA": "", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def without(tmp_path, package):
    """Return variables with which a package cannot be imported, even where it is installed."""
    (tmp_path / f"{package}.py").write_text(f"raise ImportError('no {package} for this test')\n")
    return {"PYTHONPATH": str(tmp_path)}


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("versus_scikit_learn", "extra-trees, K=√p, 10 trees, N=40, RBF"),
        ("versus_boosting_loop", "best splits, 2 rounds, N=40, RBF"),
    ],
)
def test_scikit_learn(tmp_path, name, work):
    """Both sides of a row are timed and weighed."""
    report = tmp_path / "report.json"
    printed = run(f"compare.{name}", *TINY, "--only", work, "--json", report)
    assert f"| {work} |" in printed
    assert "scikit-learn's digits" in printed
    report = json.loads(report.read_text())
    assert {"okforest", report["peer"], "numpy"} <= set(report["versions"])
    assert {"CPU", "cores", "memory", "system", "Python", "date"} <= set(report["machine"])
    (row,) = report["rows"]
    assert not row["skipped"]
    for side in (row["okforest"], row["peer"]):
        assert side["seconds"] > 0
        assert side["repeats"] == 1
        assert side["peak_bytes"] >= 0
        assert side["model_bytes"] > 0


@pytest.mark.parametrize(
    ("name", "package", "work"),
    [
        ("versus_catboost", "catboost", "a forest"),
        ("versus_drforest", "drforest", "MMD"),
        ("versus_structured_predictions", "stpredictions", "bagging"),
    ],
)
def test_missing_peers_are_skipped(tmp_path, name, package, work):
    """The row has okforest's side alone, and the reason is told."""
    report = tmp_path / "report.json"
    options = (*TINY, "--only", work, "--json", report)
    printed = run(f"compare.{name}", *options, **without(tmp_path, package))
    reason = f"cannot be imported (no {package} for this test)"
    assert "Skipped: " in printed
    assert reason in printed
    (row,) = json.loads(report.read_text())["rows"]
    assert reason in row["skipped"]
    assert row["okforest"]["seconds"] > 0
    assert "peer" not in row


def test_every_peer_is_tested():
    """A new comparison is added to the tests above."""
    assert PEERS == [
        "versus_boosting_loop",
        "versus_catboost",
        "versus_drforest",
        "versus_scikit_learn",
        "versus_structured_predictions",
    ]


def test_large(tmp_path):
    """The large forest is grown on one thread and on two, and is the same."""
    report = tmp_path / "report.json"
    options = ("--large", "--trees", "2", "--samples", "200", "--json", report)
    printed = run("compare.versus_scikit_learn", *options, OKFOREST_NUM_THREADS="2")
    assert "scikit-learn is not run" in printed
    one, two = json.loads(report.read_text())["rows"]
    assert (one["threads"], two["threads"]) == (1, 2)
    assert one["nodes"] == two["nodes"]


def test_report(tmp_path):
    """The tables of all peers, and the machine, are in one file."""
    output = tmp_path / "RESULTS.md"
    run("compare.report", "--output", output, "--", *TINY, "--only", "no such row")
    written = output.read_text()
    for part in (
        "| CPU |",
        "okforest and scikit-learn",
        "okforest and drforest",
        "okforest and CatBoost",
    ):
        assert part in written


def test_scaling(tmp_path):
    """Exponents are printed and the figure is drawn."""
    figure, report = tmp_path / "scaling.png", tmp_path / "report.json"
    options = ("--divide", "50", "--repeats", "1", "--figure", figure, "--json", report)
    printed = run("scaling.scaling", *options)
    assert "| extra-trees, K = √p | rows N |" in printed
    assert figure.read_bytes().startswith(b"\x89PNG")
    times = json.loads(report.read_text())["times"]
    assert all(len(axes) == 5 for axes in times.values())
