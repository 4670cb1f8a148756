"""The benchmarks run at tiny sizes; no test asserts a time."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parent.parent
PEERS = sorted(path.stem for path in ROOT.glob("benchmarks/compare/versus_*.py"))
LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OKFOREST_NUM_THREADS")
TINY = ("--trees", "2", "--samples", "40", "--repeats", "1")

pytestmark = pytest.mark.skipif(not PEERS, reason="benchmarks come with the source tree")


def run(module, *arguments, **environment):
    """Run a benchmark without a folder of data and return its output."""
    # One thread from the start, so that the program need not restart itself.
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
    """Return environment variables that make the import of a package fail."""
    (tmp_path / f"{package}.py").write_text(f"raise ImportError('no {package} for this test')\n")
    paths = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("versus_scikit_learn", "extra-trees, K=√p, 10 trees, N=40, RBF"),
        ("versus_boosting_loop", "best splits, 2 rounds, N=40, RBF"),
        ("versus_nystroem", "fit, 2 trees, N=40, Nyström 64"),
    ],
)
def test_scikit_learn(tmp_path, name, task):
    """Time, memory and model size are measured for both sides."""
    report = tmp_path / "report.json"
    printed = run(f"compare.{name}", *TINY, "--only", task, "--json", report)
    assert f"| {task} |" in printed
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
    ("name", "package", "task"),
    [
        ("versus_catboost", "catboost", "a forest"),
        ("versus_specialists", "quantile_forest", "quantiles"),
        pytest.param("versus_drforest", "drforest", "MMD", marks=pytest.mark.slow),
        pytest.param(
            "versus_structured_predictions", "stpredictions", "bagging", marks=pytest.mark.slow
        ),
    ],
)
def test_missing_peers_are_skipped(tmp_path, name, package, task):
    """Only okforest's side runs, and the reason is printed."""
    report = tmp_path / "report.json"
    options = (*TINY, "--only", task, "--json", report)
    printed = run(f"compare.{name}", *options, **without(tmp_path, package))
    reason = f"cannot be imported (no {package} for this test)"
    assert "Skipped: " in printed
    assert reason in printed
    (row,) = json.loads(report.read_text())["rows"]
    assert reason in row["skipped"]
    assert row["okforest"]["seconds"] > 0
    assert "peer" not in row


def test_boosting_libraries(tmp_path):
    """Every library that is installed fits, predicts and is scored; others give a reason."""
    report = tmp_path / "report.json"
    options = (*TINY, "--json", report)
    printed = run("compare.versus_boosting_libraries", *options, **without(tmp_path, "xgboost"))
    assert "Skipped: xgboost cannot be imported" in printed
    report = json.loads(report.read_text())
    assert "XGBoost" in report["skipped"]
    assert {row["library"] for row in report["rows"]} >= {"okforest", "scikit-learn"}
    for row in report["rows"]:
        assert row["n"] == 40
        assert min(row["fit_seconds"], row["predict_seconds"], row["row_seconds"]) > 0


def test_every_peer_is_tested():
    """The tests above cover every comparison."""
    assert PEERS == [
        "versus_boosting_libraries",
        "versus_boosting_loop",
        "versus_catboost",
        "versus_drforest",
        "versus_nystroem",
        "versus_scikit_learn",
        "versus_specialists",
        "versus_structured_predictions",
        "versus_target_encoder",
    ]


@pytest.mark.slow
def test_large(tmp_path):
    """The large forest is the same with one thread and with two."""
    report = tmp_path / "report.json"
    options = ("--large", "--trees", "2", "--samples", "200", "--json", report)
    printed = run("compare.versus_scikit_learn", *options, OKFOREST_NUM_THREADS="2")
    assert "scikit-learn is not run" in printed
    one, two = json.loads(report.read_text())["rows"]
    assert (one["threads"], two["threads"]) == (1, 2)
    assert one["nodes"] == two["nodes"]


def test_simd_levels():
    """Every task is timed with every instruction set."""
    printed = run("compare.simd_levels", *TINY)
    assert "## Instruction sets" in printed
    assert "| bagging, N=40, RBF |" in printed


def test_one_row_latency(tmp_path):
    """Every kernel is timed; scikit-learn is decoded where its outputs are scores."""
    report = tmp_path / "report.json"
    printed = run("compare.one_row_latency", *TINY, "--json", report)
    assert "| kernel | N | okforest | scikit-learn | ratio |" in printed
    rows = {row["kernel"]: row for row in json.loads(report.read_text())["rows"]}
    assert set(rows) == {"RBF", "callable", "linear"}
    for kernel, row in rows.items():
        sides = {"okforest", "peer"} | (set() if kernel == "linear" else {"peer_decoded"})
        assert set(row["seconds"]) == sides
        assert row["n"] == 40
        assert 1 <= row["largest_support"] <= 40
        assert all(seconds > 0 for seconds in row["seconds"].values())


def test_resampled_halves():
    """Images beyond the available ones are noisy copies, the same in every run."""
    code = (
        "import numpy as np; from benchmarks import data;"
        "X, Y = data.resampled_halves(2000); real_X, real_Y = data.halves(2000);"
        "assert X.shape == (2000, 32) and Y.shape == (2000, 32) and len(real_X) == 1797;"
        "assert (X[:1797] == real_X).all() and (Y[:1797] == real_Y).all();"
        "assert len(np.unique(X, axis=0)) > 1900;"
        "assert (X == data.resampled_halves(2000)[0]).all()"
    )
    command = [sys.executable, "-c", code]
    environment = os.environ | {"OKFOREST_DATA": ""}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


@pytest.mark.slow
def test_report(tmp_path):
    """The file has the machine and a section for each peer."""
    output = tmp_path / "RESULTS.md"
    run("compare.report", "--out", output, "--", *TINY, "--only", "no such row")
    written = output.read_text()
    for part in (
        "| CPU |",
        "okforest and scikit-learn",
        "okforest and drforest",
        "okforest and CatBoost",
        "Latency of one row",
    ):
        assert part in written


@pytest.mark.slow
def test_scaling(tmp_path):
    """The exponents are printed and the figure is saved."""
    figure, report = tmp_path / "scaling.png", tmp_path / "report.json"
    options = ("--divide", "50", "--repeats", "1", "--figure", figure, "--json", report)
    printed = run("scaling.scaling", *options)
    assert "| extra-trees, K = √p | rows N |" in printed
    assert figure.read_bytes().startswith(b"\x89PNG")
    times = json.loads(report.read_text())["times"]
    assert all(len(axes) == 5 for axes in times.values())


def test_report_of_the_gpu(monkeypatch):
    """Parts that were measured have rows in the summary and sections; others are left out."""
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks import cuda_report

    few = json.loads((ROOT / "benchmarks" / "CUDA.json").read_text())
    for part in ("best", "boosting", "preimages", "predictions", "embeddings"):
        few.pop(part, None)
    best = {"n": 1_000_000, "trees": 16, "seconds": 2.0, "ms": 122.4, "cpu_tree": 7.0, "same": True}
    nearest = {"kernel": "RBF", "queries": 10_000, "candidates": 70_000, "q": 256, "n_train": 9}
    seconds = {"on_gpu": 0.97, "on_host": 1.5, "cpu": 3.25}
    more = few | {
        "best": [best],
        "boosting": {"n": 100_000, "rounds": 500, "seconds": 2.44, "ms": 4.8, "cpu_ms": 910.0},
        "preimages": [nearest | seconds | {"five": 1.0, "checked": 20, "equal": 20}],
        "predictions": [
            {"method": "apply", "n": 5_000, "trees": 9, "n_train": 8, "q": 2, "error": 0.0}
            | seconds
        ],
        "embeddings": [{"kernel": "RBF", "kind": "factor", "n": 7, "q": 2} | seconds],
    }
    rows = (
        "depth 16 | 1,000,000 | 122 ms | 7.0 s, one core |",
        "at most 15 splits | 100,000 | 4.8 ms | 0.9 s, one core |",
        "500 such rounds, from NumPy arrays | 100,000 | 2.4 s |  |",
        "70,000 candidates on the GPU, 256 dimensions, RBF kernel | 10,000 | 1.0 s | 3.2 s for 20",
        "`apply` of 9 trees, X on the GPU | 5,000 | 1.0 s | 3.2 s, all cores |",
        "| RBF | `factor` | 7 | 2 | 0.970 | 3.25 |",
    )
    assert [row for row in rows if row not in cuda_report.report(more)] == []
    assert [row for row in rows if row in cuda_report.report(few)] == []


@pytest.mark.slow
def test_refits():
    """Every part that needs no images prints its table."""
    pytest.importorskip("clarabel", reason="Clarabel is not installed")
    printed = run("refit", "synthetic", "moons", "priors", "--draws", "1")
    for part in ("RMSE of log times", "Two moons", "Priors", "SemiSupervisedForest"):
        assert part in printed


@pytest.mark.slow
def test_survival():
    """Models of both libraries are compared on the same folds."""
    pytest.importorskip("sksurv", reason="scikit-survival is not installed")
    printed = run("survival", "curves", "refit", "--data", "veteran")
    assert "| OKRandomForest |" in printed
    assert "| Cox regression |" in printed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "title"), [("pixels", "Segmentation of textures"), ("speed", "Speed and memory")]
)
def test_segments(name, title):
    """Experiments on segments that need no data print their tables."""
    printed = run(f"segments.{name}", "--images", 4)
    assert f"### {title}" in printed


@pytest.mark.slow
def test_graphs():
    """Neighbourhoods and the recipe on statistics of degrees are compared on the same graphs."""
    printed = run("segments.graphs", "--graphs", 20)
    assert "### Graphs with planted triangles" in printed
    assert "| SegmentClassifier, 20 balls, radius 1 |" in printed


@pytest.mark.slow
def test_conformal():
    """Data sets that come with scikit-learn have rows for every method."""
    printed = run("conformal", "--splits", 1)
    assert printed.startswith("Printed by `python -m benchmarks.conformal --splits 1`.")
    for part in ("classes: digits | split, votes", "numbers: diabetes | oob, normalized"):
        assert part in printed


@pytest.mark.slow
def test_missing_truths_are_counted(data_folder, monkeypatch):
    """The warning is recognised: of these rankings of 11 labels, nearly all are new."""
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.setenv("OKFOREST_DATA", str(data_folder))
    from benchmarks import conformal

    *_, rankings = conformal.missing_truths(1)
    assert rankings[-1] == "1 of 1"


@pytest.mark.slow
def test_candidates():
    """Both kernels are measured."""
    printed = run("candidates", "--candidates", 70_000)
    assert "70,000 candidates" in printed
    assert "| RBF | 100 | 10 |" in printed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "data", "method"),
    [
        ("multilabel", "emotions", "OKExtraTrees, expected F1"),
        ("decoders", "emotions", "expected Jaccard"),
        ("hierarchies", "derisi_FUN", "OKBoost, rate 0.05"),
        ("rankings", "iris", "OKRandomForest, Kendall, Kemeny"),
        ("strings", "words", "eulerian_path"),
        ("curves", "tecator", "OKExtraTrees, medoid"),
    ],
)
def test_output_types(data_folder, name, data, method):
    """Tables of the guides on output types have a row or a column for each method."""
    options = (data, "--scale", "0.02", "--repeats", "1")
    printed = run(f"outputs.{name}", *options, OKFOREST_DATA=str(data_folder))
    first, *lines = filter(None, printed.splitlines())
    assert first == f"Printed by `python -m benchmarks.outputs.{name} {' '.join(options)}`."
    assert method in printed
    assert all(line.startswith(("###", "| ")) or line.endswith("one thread.") for line in lines)


@pytest.mark.slow
@pytest.mark.timeout(1200)  # a dozen processes are started
def test_dask(tmp_path):
    """Workers and a local fit are compared; rows in partitions give the score of one process."""
    pytest.importorskip("distributed", reason="Dask is not installed")
    report = tmp_path / "report.json"
    tiny = ("--rows", 400, "--features", 12, "--outputs", 3, "--trees", 4)
    figure = tmp_path / "efficiency.png"
    options = ("--workers", 1, 2, "--repeats", 1, "--json", report, "--figure", figure)
    assert "### CPU time of workers: N = 400" in run("dask.overhead", *tiny, *options)
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert [row["workers"] for row in json.loads(report.read_text())["rows"]] == [1, 2, 2]
    options = ("--samples", 100, "--workers", 1, "--share", 20_000, "--json", report)
    printed = run("dask.partitioned", *tiny, "--partitions", 3, *options)
    assert "| a worker was restarted | False |" in printed
    results = json.loads(report.read_text())
    scores = [results[f"kernel R², {where}"] for where in ("rows in partitions", "one process")]
    assert scores[0] == pytest.approx(scores[1])
    assert not results["a worker was restarted"]


@pytest.mark.slow
def test_retrieval(tmp_path):
    """Cost of image search and load of its server, at tiny sizes."""
    figure, report = tmp_path / "growth.png", tmp_path / "growth.json"
    options = ("--images", 40, "--figure", figure, "--json", report)
    run("retrieval.speed", "growth", *options)
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert [row["images"] for row in json.loads(report.read_text())] == [10, 20, 30, 40]
    assert "whole query (ms)" in run("retrieval.speed", "query", "--images", 5)
    pytest.importorskip("fastapi", reason="FastAPI is not installed")
    printed = run("retrieval.load", "--minutes", 0.05, "--images", 20, "--clients", 2)
    assert "other 5xx, or no answer: 0" in printed
    assert "resident memory (MB)" in printed


@pytest.mark.parametrize("script", ["profile", "simd_levels", "one_row_latency"])
def test_rows_that_do_not_exist(script):
    """The rows are listed, and nothing is measured."""
    printed = run(f"compare.{script}", *TINY, "--only", "no such row")
    assert printed.startswith("No row contains 'no such row'; the rows are\n\n- ")
    assert "N=40" in printed or "extra-trees" in printed
    assert "|" not in printed


def test_the_printed_command_can_be_pasted(monkeypatch, capsys):
    """Arguments with spaces are quoted."""
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import machine

    monkeypatch.setattr(sys, "argv", ["x.py", "--only", "K=√p, RBF"])
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", SimpleNamespace(name="benchmarks.x"))
    machine.print_command()
    assert capsys.readouterr().out.startswith(
        "Printed by `python -m benchmarks.x --only 'K=√p, RBF'`."
    )


@pytest.mark.slow
def test_profile():
    """Speeds of the machine, times by the size of nodes, and the functions that take the time."""
    printed = run("compare.profile", *TINY, "--only", "√p")
    assert printed.startswith("Printed by `python -m benchmarks.compare.profile")
    assert "| rows of 512 bytes, L2 |" in printed
    (times,) = re.findall(r"\| extra-trees, K=√p, RBF, N=40 \| (.* ms.*)\|", printed)
    cells = [cell.strip() for cell in times.split("|")]
    assert len(cells) == 8  # in all, before, five sizes of nodes, reading
    assert cells[4].endswith("µs)")
    assert cells[-3:] == ["–", "–", "–"]  # no node has 129 rows
    assert "| boosting, random splits, √p, N=40 |" in printed


def test_shares_of_functions():
    """Functions of the core are named, and everything else is one line."""
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks.compare.profile import read_shares, short_name
    finally:
        sys.path.remove(str(ROOT))
    assert short_name("okforest::avx512::(anonymous namespace)::sum_rows(double*)") == "sum_rows"
    walk = "long okforest::(anonymous namespace)::walk<8l, okforest::Inputs<float> >(int)"
    assert short_name(walk) == "walk"
    assert short_name("okforest::GramBlock::copy(int)") == "GramBlock::copy"
    report = """
    50.00%  _core.so      [.] okforest::GramBlock::copy(int)   -      -
    20.50%  libpython.so  [.] eval
    10.00%  [kernel]      [k] page_fault
     9.50%  libc.so       [.] malloc
     1.00%  _core.so      [.] okforest::rare(int)
"""
    expected = [("GramBlock::copy", 0.5), ("Python, NumPy, system", 0.4)]
    assert [(name, round(share, 6)) for name, share in read_shares(report)] == expected
