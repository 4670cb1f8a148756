"""``python -m papers``: the report, the cache, and error messages."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from papers import EXPERIMENTS, data, friedman
from papers import __main__ as command
from papers.jobs import Job, run

TINY = friedman.Size(trees=2, rounds=3, splits=(1, 2), samples=2, tests=2)
N_JOBS = 14


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """Make the quick run take seconds."""
    monkeypatch.setattr(friedman, "QUICK", TINY)


def reproduce(*arguments, code=0):
    """Run the command and return its output on one line."""
    result = CliRunner().invoke(command.app, list(map(str, arguments)), env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output
    return re.sub(r"\s+", " ", result.output)


def test_report(tmp_path):
    """Published values and ours side by side, in Markdown and HTML, with versions and times."""
    output = reproduce("friedman", "--quick", "--out", tmp_path, "--jobs", 1)
    assert f"friedman: {N_JOBS}/{N_JOBS}" in output
    assert "report.html" in output
    text = (tmp_path / "report.md").read_text()
    (row,) = re.findall(r"^\| OKBoost \| (.*) \|$", text, flags=re.MULTILINE)
    paper, ours, _, second_paper, _, second_ours, chosen = row.split(" | ")
    assert (paper, second_paper) == ("3.589 ± 0.277", "3.589 ± 0.271")
    assert re.fullmatch(r"\d+\.\d{3} ± \d+\.\d{3}", ours)
    assert second_ours != ours
    assert set(chosen.split(", ")) <= {"1", "2"}
    for words in ("python -m papers friedman --quick", "a quick run", "scikit-learn", "seeds 0"):
        assert words in text
    assert f"| friedman | {N_JOBS} | 0 |" in text
    page = (tmp_path / "report.html").read_text()
    assert "<td>3.589 ± 0.277</td>" in page
    assert "<h2>Friedman1 (ICML 2007)</h2>" in page


def test_finished_jobs_are_kept(tmp_path):
    """A second run computes nothing, wherever its report is written."""
    options = ("--cache", tmp_path / "cache", "--jobs", 1)
    reproduce("friedman", "--quick", "--out", tmp_path / "one", *options)
    output = reproduce("friedman", "--quick", "--out", tmp_path / "two", *options)
    assert f"({N_JOBS} cached)" in output
    assert f"| friedman | {N_JOBS} | {N_JOBS} |" in (tmp_path / "two/report.md").read_text()
    assert not (tmp_path / "two/cache").exists()


def test_jobs_depend_on_the_data(tmp_path, monkeypatch):
    """Results computed from other files are not used."""
    data = tmp_path / "data.csv"
    monkeypatch.setattr(friedman, "load", lambda: [data])
    options = ("friedman", "--quick", "--out", tmp_path / "out", "--jobs", 1)
    for text, cached in (("one", 0), ("one", N_JOBS), ("two", 0)):
        data.write_text(text)
        reproduce(*options)
        report = (tmp_path / "out/report.md").read_text()
        assert f"| friedman | {N_JOBS} | {cached} |" in report


def test_interrupted(tmp_path, monkeypatch):
    """The message names the folder of finished jobs, and the exit code belongs to Ctrl-C."""

    def stop(jobs, cache, workers, finished):
        run(jobs[:3], cache, workers, finished)
        raise KeyboardInterrupt

    options = ("friedman", "--quick", "--out", tmp_path, "--jobs", 1)
    with monkeypatch.context() as patch:
        patch.setattr(command, "run", stop)
        output = reproduce(*options, code=130)
    assert f"interrupted; finished jobs are in {tmp_path}/cache" in output
    assert not (tmp_path / "report.md").exists()
    reproduce(*options)
    assert f"| friedman | {N_JOBS} | 3 |" in (tmp_path / "report.md").read_text()


def test_a_killed_worker(tmp_path, monkeypatch):
    """The message names a likely cause, without a traceback."""
    jobs = [Job("row", os._exit, {"status": 1})] * 2
    monkeypatch.setattr(friedman, "jobs", lambda size: jobs)
    output = reproduce("friedman", "--out", tmp_path, "--jobs", 2, code=1)
    assert "error: a worker process was killed" in output
    assert "fewer --jobs" in output


def test_without_data(tmp_path, monkeypatch):
    """The message names the missing file and its folder, before anything runs."""
    monkeypatch.setenv("OKFOREST_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    data.load_yeast.cache_clear()
    output = reproduce("network", "--out", tmp_path / "out", code=2)
    assert output.startswith("error: There is no file yeast_ppi/nodes.csv.gz")
    assert "OKFOREST_DATA" in output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", ["--out", "--cache"])
def test_folders_that_cannot_be_written(tmp_path, monkeypatch, option):
    """The error is raised before anything runs."""
    monkeypatch.setattr(command, "_run", None)
    (tmp_path / "file").touch()
    options = {"--out": tmp_path / "out"} | {option: tmp_path / "file/folder"}
    output = reproduce("friedman", *(word for pair in options.items() for word in pair), code=2)
    assert f"cannot write to {tmp_path}/file/folder: Not a directory" in output
    assert f"choose another folder with {option}" in output


def test_every_experiment_is_a_choice():
    assert [which.value for which in command.Which] == [*EXPERIMENTS, "all"]


def test_bad_options(tmp_path):
    output = reproduce("friedman", "--jobs", 0, "--out", tmp_path, code=2)
    assert "--jobs is 0; use a positive number" in output
    reproduce("no such", code=2)


def test_shared_options():
    """The options of the command line of okforest have the same names and the same words."""
    output = reproduce("--help")
    for words in (
        "--out",
        "Folder for the results; created if it does not exist.",
        "--jobs",
        "Number of cores to use; -1 for all cores.",
    ):
        assert words in output
    assert "bool" not in output.lower()


def test_module(tmp_path):
    """``python -m papers`` runs in the root of the repository."""
    root = Path(command.__file__).parents[1]
    run = subprocess.run(
        [sys.executable, "-m", "papers", "irma", "--out", tmp_path],
        cwd=root,
        env=os.environ | {"OKFOREST_DATA": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2
    assert "there are no folders irma/train and irma/test" in " ".join(run.stderr.split())
