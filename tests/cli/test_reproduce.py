"""``okforest reproduce``: the report, what is kept, and what it says when something is wrong."""

import os
import re

import pytest
from typer.testing import CliRunner

from okforest.cli import reproduce as command
from okforest.cli._app import app
from okforest.papers import (
    EXPERIMENTS,
    Figure,
    Heading,
    Job,
    Paragraph,
    Table,
    _proteins,
    friedman,
    run,
    save_figures,
)
from okforest.papers._report import new_drawing

TINY = friedman.Size(trees=2, rounds=3, splits=(1, 2), samples=2)
N_JOBS = 14


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """Make the quick run a matter of seconds."""
    monkeypatch.setattr(friedman, "QUICK", TINY)


def reproduce(*arguments, code=0):
    """Run the command; return what it says, on one line."""
    result = CliRunner().invoke(app, ["reproduce", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return re.sub(r"\s+", " ", result.output)


def test_report(tmp_path):
    """Paper and ours side by side, as Markdown and as a page, with all that a reader must know."""
    said = reproduce("friedman", "--quick", "--output", tmp_path, "--jobs", 1)
    assert f"friedman: {N_JOBS}/{N_JOBS}" in said
    assert "report.html" in said
    text = (tmp_path / "report.md").read_text()
    (row,) = re.findall(r"^\| OKBoost \| (.*) \|$", text, flags=re.MULTILINE)
    paper, ours, paper_too, ours_too, chosen = row.split(" | ")
    assert (paper, paper_too) == ("3.589 ± 0.277", "3.589 ± 0.271")
    assert re.fullmatch(r"\d+\.\d{3} ± \d+\.\d{3}", ours)
    assert ours_too != ours
    assert set(chosen.split(", ")) <= {"1", "2"}
    for words in ("okforest reproduce friedman --quick", "A quick run", "scikit-learn", "seeds 0"):
        assert words in text
    assert f"| friedman | {N_JOBS} | 0 |" in text
    page = (tmp_path / "report.html").read_text()
    assert "<td>3.589 ± 0.277</td>" in page
    assert "<h2>Friedman1 (ICML 2007)</h2>" in page


def test_page(tmp_path):
    """Every block is on the page, figures inside it with their captions; nothing does harm."""
    blocks = [
        Heading("Part", 3),
        Paragraph("a < b", note=True),
        Table(["row", "paper"], [["<b>", "1"]]),
        Figure("curve", "A line.", lambda: new_drawing(2.0, 1.0), wide=True),
    ]
    save_figures(blocks, tmp_path / "figures")
    command._write_page(blocks, tmp_path)
    page = (tmp_path / "report.html").read_text()
    for part in (
        "<h3>Part</h3>",
        "<p class=note>a &lt; b</p>",
        "<td>&lt;b&gt;</td><td>1</td>",
        "<figure class=wide>",
        'src="data:image/png;base64,',
        "<figcaption>A line.</figcaption>",
    ):
        assert part in page


def test_finished_jobs_are_kept(tmp_path):
    """The second run has nothing to do, wherever its report goes; the full one has."""
    options = ("--cache", tmp_path / "cache", "--jobs", 1)
    reproduce("friedman", "--quick", "--output", tmp_path / "one", *options)
    said = reproduce("friedman", "--quick", "--output", tmp_path / "two", *options)
    assert f"({N_JOBS} earlier)" in said
    assert f"| friedman | {N_JOBS} | {N_JOBS} |" in (tmp_path / "two/report.md").read_text()
    assert not (tmp_path / "two/cache").exists()


def test_other_data_are_other_jobs(tmp_path, monkeypatch):
    """What was found in other files is not reported."""
    data = tmp_path / "data.csv"
    monkeypatch.setattr(friedman, "load", lambda: [data])
    options = ("friedman", "--quick", "--output", tmp_path / "out", "--jobs", 1)
    for text, earlier in (("one", 0), ("one", N_JOBS), ("two", 0)):
        data.write_text(text)
        reproduce(*options)
        report = (tmp_path / "out/report.md").read_text()
        assert f"| friedman | {N_JOBS} | {earlier} |" in report


def test_interrupted(tmp_path, monkeypatch):
    """It is told where things are kept, and the exit code is that of Ctrl-C."""

    def stop(jobs, cache, workers, **watchers):
        run(jobs[:3], cache, workers, **watchers)
        raise KeyboardInterrupt

    options = ("friedman", "--quick", "--output", tmp_path, "--jobs", 1)
    with monkeypatch.context() as patch:
        patch.setattr(command, "run", stop)
        said = reproduce(*options, code=130)
    assert f"what is done is in {tmp_path}/cache" in said
    assert not (tmp_path / "report.md").exists()
    reproduce(*options)
    assert f"| friedman | {N_JOBS} | 3 |" in (tmp_path / "report.md").read_text()


def test_a_process_is_killed(tmp_path, monkeypatch):
    """It is said what may have happened, without a traceback."""
    jobs = [Job("row", os._exit, {"status": 1})] * 2
    monkeypatch.setattr(friedman, "jobs", lambda size: jobs)
    said = reproduce("friedman", "--output", tmp_path, "--jobs", 2, code=1)
    assert "error: a process was ended from outside" in said
    assert "fewer --jobs" in said


def test_without_data(tmp_path, monkeypatch):
    """It says where to put the files, before anything is run."""
    monkeypatch.setenv("OKFOREST_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    _proteins.yeast.cache_clear()
    said = reproduce("network", "--output", tmp_path / "out", code=2)
    assert said.startswith("error: there is no file yeast_ppi/nodes.csv.gz")
    assert "OKFOREST_DATA" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", ["--output", "--cache"])
def test_folders_that_cannot_be_written(tmp_path, monkeypatch, option):
    """It is told before anything is run."""
    monkeypatch.setattr(command, "_run", None)
    (tmp_path / "file").touch()
    options = {"--output": tmp_path / "out"} | {option: tmp_path / "file/folder"}
    said = reproduce("friedman", *(word for pair in options.items() for word in pair), code=2)
    assert f"nothing can be written to {tmp_path}/file/folder: Not a directory" in said
    assert f"choose another folder with {option}" in said


def test_all_experiments_can_be_asked_for():
    assert [which.value for which in command.Which] == [*EXPERIMENTS, "all"]


def test_bad_options(tmp_path):
    said = reproduce("friedman", "--jobs", 0, "--output", tmp_path, code=2)
    assert "--jobs is 0; use a positive number" in said
    reproduce("no such", code=2)
