"""Jobs and their cache: nothing that was finished is done again, whatever ends a run."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from okforest.papers import Cache, Job, friedman, run

WORK = """
import time, uuid
from pathlib import Path

def work(folder, number):
    (Path(folder) / f"{number}-{uuid.uuid4()}.ran").touch()
    time.sleep(0.3)
    return {"number": number}
"""
SCRIPT = """
import sys
import time
from pathlib import Path
from okforest.papers import Cache, Job, run
from work import work

folder = Path(sys.argv[1])
if __name__ == "__mp_main__":  # a process that starts
    (folder / "starting").touch()
    time.sleep(0.5)
if __name__ == "__main__":
    jobs = [Job("row", work, {"folder": str(folder), "number": n}) for n in range(8)]
    results = run(jobs, Cache(folder / "cache"), workers=2, stopping=lambda n: print("stopping", n))
    print([result["number"] for result in results.of("row")])
"""
FOLDER = None  # where the jobs of a test leave their marks


def numbered(number):
    """Leave a mark for every call; fail if there is a file that says so."""
    mark = FOLDER / str(number)
    mark.write_text(mark.read_text() + "x" if mark.exists() else "x")
    if (FOLDER / f"fail-{number}").exists():
        raise RuntimeError(f"number {number}")
    return {"number": number}


def jobs_of(folder, monkeypatch):
    """Return five jobs that work in a folder; the dearest come first."""
    monkeypatch.setitem(globals(), "FOLDER", folder)
    return [Job("row", numbered, {"number": n}, cost=5 - n) for n in range(5)]


def calls(folder):
    return {n: len(mark.read_text()) for n in range(5) if (mark := folder / str(n)).exists()}


def test_an_error_loses_nothing_that_is_done(tmp_path, monkeypatch):
    """The job that failed and those after it are done by the next run, and no others."""
    jobs = jobs_of(tmp_path, monkeypatch)
    (tmp_path / "fail-2").touch()
    with pytest.raises(RuntimeError, match="number 2"):
        run(jobs, Cache(tmp_path / "cache"))
    assert calls(tmp_path) == {0: 1, 1: 1, 2: 1}
    (tmp_path / "fail-2").unlink()
    seen = []
    results = run(jobs, Cache(tmp_path / "cache"), finished=seen.append)
    assert calls(tmp_path) == {0: 1, 1: 1, 2: 2, 3: 1, 4: 1}
    assert [done.earlier for done in seen] == [True, True, False, False, False]
    assert results.values("number", "row").tolist() == [0, 1, 2, 3, 4]
    assert all(done.seconds >= 0 for done in results)
    run(jobs, Cache(tmp_path / "cache"))
    assert calls(tmp_path) == {0: 1, 1: 1, 2: 2, 3: 1, 4: 1}


def test_cache_knows_arguments_and_code(tmp_path, monkeypatch):
    """Other arguments, or other code, are other jobs; a damaged file is none."""
    jobs = jobs_of(tmp_path, monkeypatch)
    cache = Cache(tmp_path / "cache")
    run(jobs[:1], cache)
    assert cache.load(jobs[0]).result == {"number": 0}
    assert cache.load(jobs[1]) is None
    other = Cache(tmp_path / "cache")
    other.code = "other code"
    assert other.load(jobs[0]) is None
    (path,) = (tmp_path / "cache").iterdir()
    assert json.loads(path.read_text())["arguments"] == {"number": 0}
    path.write_text(path.read_text()[:-9])
    assert cache.load(jobs[0]) is None


def test_cache_knows_the_data(tmp_path, monkeypatch):
    """Other contents are other jobs; the same file in another folder is the same."""
    jobs = jobs_of(tmp_path, monkeypatch)
    paths = [tmp_path / folder / "a.csv" for folder in ("one", "two", "three")]
    for path, text in zip(paths, ("same", "same", "other"), strict=True):
        path.parent.mkdir()
        path.write_text(text)
    one, two, three = (Cache(tmp_path / "cache", [path]) for path in paths)
    run(jobs[:1], one)
    assert two.load(jobs[0]).result == {"number": 0}
    assert three.load(jobs[0]) is None
    assert Cache(tmp_path / "cache").load(jobs[0]) is None


@pytest.mark.parametrize("content", ["[]", "null", "{}", '{"result": {}}', "1"])
def test_a_file_of_something_else_is_none(tmp_path, monkeypatch, content):
    jobs = jobs_of(tmp_path, monkeypatch)
    cache = Cache(tmp_path / "cache")
    run(jobs[:1], cache)
    (path,) = (tmp_path / "cache").iterdir()
    path.write_text(content)
    assert cache.load(jobs[0]) is None


def test_processes_find_the_same(tmp_path):
    """Two processes and one give equal results, in the order of the jobs."""
    jobs = friedman.jobs(friedman.Size(trees=2, rounds=3, splits=(1, 2), samples=1))
    here = run(jobs, Cache(tmp_path / "here"))
    there = run(jobs, Cache(tmp_path / "there"), workers=2)
    assert [done.result for done in here] == [done.result for done in there]
    assert [done.job.row for done in there] == list(friedman.ROWS)


def test_errors_in_processes(tmp_path):
    """They are raised here, and what others have found is kept."""
    arguments = {"features": None, "sample": 0, "trees": 1}
    good = Job("good", friedman.grow, {"method": "single tree"} | arguments, cost=2.0)
    bad = Job("bad", friedman.grow, {"method": "no such"} | arguments)
    with pytest.raises(KeyError, match="no such"):
        run([bad, good], Cache(tmp_path), workers=2)
    assert Cache(tmp_path).load(good) is not None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_loses_little(tmp_path, number):
    """Ctrl-C and SIGTERM lose nothing; SIGKILL loses one job of each process at most."""
    (tmp_path / "work.py").write_text(WORK)
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, tmp_path / "script.py", tmp_path]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while len(list(tmp_path.glob("cache/work-*.json"))) < 2:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(number)
    said, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    assert ("stopping" in said) == (number != signal.SIGKILL)
    assert len(list(tmp_path.glob("cache/work-*.json"))) < 8
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stdout.strip() == str(list(range(8)))
    ran = len(list(tmp_path.glob("*.ran")))
    assert ran <= 8 + (2 if number == signal.SIGKILL else 0)


def test_a_signal_while_processes_start(tmp_path):
    """Ctrl-C goes to all processes of a group: those that start say nothing, and do their jobs."""
    (tmp_path / "work.py").write_text(WORK)
    (tmp_path / "script.py").write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, tmp_path / "script.py", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not (tmp_path / "starting").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    said, errors = process.communicate(timeout=120)
    assert "stopping 2" in said
    assert errors.count("Traceback") == 1
    assert errors.endswith("KeyboardInterrupt\n")
    assert len(list(tmp_path.glob("cache/work-*.json"))) == 2


def test_processes_that_are_ended_after_a_stop(tmp_path):
    """They are part of the stop, and no error."""
    jobs = [Job("row", end_after_a_stop, {"number": number}) for number in range(3)]
    with pytest.raises(KeyboardInterrupt):
        run(jobs, Cache(tmp_path), workers=2)


def end_after_a_stop(number):
    """Ask for a stop once, then end at once."""
    if number == 0:
        os.kill(os.getppid(), signal.SIGINT)
        time.sleep(0.3)
        os._exit(1)
    time.sleep(0.6)
    return {}
