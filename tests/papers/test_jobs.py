"""Jobs and their cache: no finished job runs twice, however a run ends."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import joblib
import pytest

from papers import friedman
from papers.jobs import Cache, Finished, Job, Outcome, Results, run

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
from pathlib import Path
from papers.jobs import Cache, Job, run
from work import work

folder = Path(sys.argv[1])
jobs = [Job("row", work, {"folder": str(folder), "number": n}) for n in range(8)]
results = run(jobs, Cache(folder / "cache", "test", "1"), workers=int(sys.argv[2]))
print([result["number"] for result in results.select("row")])
"""
ROOT = Path(friedman.__file__).parents[1]
FOLDER = None  # the jobs of a test record their calls in it


def numbered(number):
    """Record the call in a file; fail if the file fail-number exists."""
    mark = FOLDER / str(number)
    mark.write_text(mark.read_text() + "x" if mark.exists() else "x")
    if (FOLDER / f"fail-{number}").exists():
        raise RuntimeError(f"number {number}")
    return {"number": number}


def make_jobs(folder, monkeypatch):
    """Return five jobs that record their calls in a folder; the most expensive come first."""
    monkeypatch.setitem(globals(), "FOLDER", folder)
    return [Job("row", numbered, {"number": n}, cost=5 - n) for n in range(5)]


def calls(folder):
    return {n: len(mark.read_text()) for n in range(5) if (mark := folder / str(n)).exists()}


def make_cache(folder, version="1", files=()):
    return Cache(folder / "cache", "test", version, files)


def cache_file(folder):
    """Return the only file of a cache."""
    (path,) = (folder / "cache").iterdir()
    return path


def test_an_error_keeps_finished_jobs(tmp_path, monkeypatch):
    """The next run computes the job that failed and those after it, and no others."""
    jobs = make_jobs(tmp_path, monkeypatch)
    (tmp_path / "fail-2").touch()
    with pytest.raises(RuntimeError, match="number 2"):
        run(jobs, make_cache(tmp_path))
    assert calls(tmp_path) == {0: 1, 1: 1, 2: 1}
    (tmp_path / "fail-2").unlink()
    seen = []
    results = run(jobs, make_cache(tmp_path), finished=seen.append)
    assert calls(tmp_path) == {0: 1, 1: 1, 2: 2, 3: 1, 4: 1}
    assert [done.cached for done in seen] == [True, True, False, False, False]
    assert results.values("number", "row").tolist() == [0, 1, 2, 3, 4]
    assert all(done.seconds >= 0 for done in results)
    run(jobs, make_cache(tmp_path))
    assert calls(tmp_path) == {0: 1, 1: 1, 2: 2, 3: 1, 4: 1}


def test_expensive_jobs_run_first(tmp_path, monkeypatch):
    jobs = make_jobs(tmp_path, monkeypatch)[::-1]
    seen = []
    results = run(jobs, make_cache(tmp_path), finished=seen.append)
    assert [done.result["number"] for done in seen] == [0, 1, 2, 3, 4]
    assert results.values("number", "row").tolist() == [4, 3, 2, 1, 0]


def test_cache_key(tmp_path, monkeypatch):
    """Arguments, experiment, version and release of okforest are part of the key."""
    jobs = make_jobs(tmp_path, monkeypatch)
    cache = make_cache(tmp_path)
    run(jobs[:1], cache)
    assert cache.load(jobs[0]).result == {"number": 0}
    assert cache.load(jobs[1]) is None
    assert make_cache(tmp_path, version="2").load(jobs[0]) is None
    assert Cache(tmp_path / "cache", "other", "1").load(jobs[0]) is None
    monkeypatch.setattr("okforest.__version__", "999")
    assert cache.load(jobs[0]) is None


def test_editing_code_keeps_results(tmp_path):
    """Results survive an edit of the function, such as of its docstring."""
    versions = []
    for docstring in ("Return 1.", "Return one."):
        namespace = {"__name__": "experiment"}
        exec(f'def work():\n    """{docstring}"""\n    return {{"one": 1}}', namespace)
        versions.append(Job("row", namespace["work"], {}))
    cache = make_cache(tmp_path)
    cache.store(versions[0], Outcome({"one": 1}, 0.5))
    assert cache.load(versions[1]) == Outcome({"one": 1}, 0.5)


def test_cache_depends_on_the_data(tmp_path, monkeypatch):
    """The contents of data files are part of the key, their folder is not."""
    jobs = make_jobs(tmp_path, monkeypatch)
    paths = [tmp_path / folder / "a.csv" for folder in ("one", "two", "three")]
    for path, text in zip(paths, ("same", "same", "different"), strict=True):
        path.parent.mkdir()
        path.write_text(text)
    one, two, three = (make_cache(tmp_path, files=[path]) for path in paths)
    run(jobs[:1], one)
    assert two.load(jobs[0]) is not None
    assert three.load(jobs[0]) is None


@pytest.mark.parametrize("content", [b"", b"{}", b"text", b"\x80\x04}."])
def test_other_contents_are_recomputed(tmp_path, monkeypatch, content):
    jobs = make_jobs(tmp_path, monkeypatch)
    run(jobs[:1], make_cache(tmp_path))
    cache_file(tmp_path).write_bytes(content)
    (done,) = run(jobs[:1], make_cache(tmp_path))
    assert not done.cached
    assert done.result == {"number": 0}
    assert calls(tmp_path) == {0: 2}


@pytest.mark.parametrize("result", [{}, None, {"number": 1}])
def test_an_edited_result_is_recomputed(tmp_path, monkeypatch, result):
    """A well-formed file of the right job whose result was emptied or changed is not used."""
    jobs = make_jobs(tmp_path, monkeypatch)
    cache = make_cache(tmp_path)
    run(jobs[:1], cache)
    path = cache_file(tmp_path)
    key, (_, seconds), checksum = joblib.load(path)
    joblib.dump((key, (result, seconds), checksum), path)
    assert cache.load(jobs[0]) is None


def test_damaged_files_are_recomputed(tmp_path, monkeypatch):
    """Truncated files, changed bytes and the file of another job give no wrong result."""
    jobs = make_jobs(tmp_path, monkeypatch)
    cache = make_cache(tmp_path)
    run(jobs[:2], cache)
    path, other = (cache._path(job) for job in jobs[:2])
    whole = path.read_bytes()
    stored = cache.load(jobs[0])
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert cache.load(jobs[0]) is None
    for position in range(len(whole)):
        changed = bytearray(whole)
        changed[position] ^= 0xFF
        path.write_bytes(changed)
        assert cache.load(jobs[0]) in (None, stored)
    shutil.copy(other, path)
    assert cache.load(jobs[0]) is None


def test_processes_give_the_same_results(tmp_path):
    """Results do not depend on the number of processes, nor does their order."""
    jobs = friedman.jobs(friedman.Size(trees=2, rounds=3, splits=(1, 2), samples=1))
    in_process = run(jobs, make_cache(tmp_path / "here"))
    in_workers = run(jobs, make_cache(tmp_path / "there"), workers=2)
    assert [done.result for done in in_process] == [done.result for done in in_workers]
    assert [done.job.row for done in in_workers] == list(friedman.ROWS)


def fail_after_another_job(cache_folder):
    """Wait for the result of another job, then fail."""
    while not list(Path(cache_folder).glob("test-*.pkl")):
        time.sleep(0.02)
    raise KeyError("no such method")


def test_errors_in_processes(tmp_path):
    """The error is raised here, and the results of other jobs are kept."""
    arguments = {"method": "single tree", "features": None, "sample": 0, "tests": 1, "trees": 1}
    good = Job("good", friedman.evaluate_trees, arguments)
    bad = Job("bad", fail_after_another_job, {"cache_folder": str(tmp_path / "cache")})
    with pytest.raises(KeyError, match="no such method"):
        run([bad, good], make_cache(tmp_path), workers=2)
    assert make_cache(tmp_path).load(good) is not None


def test_results():
    """Results are selected by row and arguments, in the order of jobs, or by seed and fold."""
    finished = [
        Finished(Job(row, dict, {"seed": s, "fold": f}), {"loss": 10 * s + f}, 1.0, False)
        for row in ("a", "b")
        for f in range(3)
        for s in range(2)
    ]
    results = Results(finished)
    assert len(results.select("a")) == 6
    assert results.values("loss", "a", fold=1).tolist() == [1.0, 11.0]
    assert results.by_seed("loss", "b").tolist() == [[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_signal_keeps_finished_jobs(tmp_path, number):
    """Only the jobs in progress, at most one for each process, run again."""
    (tmp_path / "work.py").write_text(WORK)
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, tmp_path / "script.py", tmp_path]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [*command, "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,  # so that the signal reaches the workers, as Ctrl-C does
    )
    while len(list(tmp_path.glob("cache/test-*.pkl"))) < 2:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    os.killpg(process.pid, number)
    _, errors = process.communicate(timeout=120)
    assert process.returncode != 0
    if number == signal.SIGINT:
        assert errors.rstrip().endswith("KeyboardInterrupt")
    assert len(list(tmp_path.glob("cache/test-*.pkl"))) < 8
    again = subprocess.run(
        [*command, "1"], env=environment, capture_output=True, text=True, check=True
    )
    assert again.stdout.strip() == str(list(range(8)))
    assert len(list(tmp_path.glob("*.ran"))) <= 8 + 2
