"""The command ``okforest index``: from a folder of pictures to hits, in tables and JSON."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from PIL import Image
from typer.testing import CliRunner

from okforest.cli._app import app
from okforest.retrieval import SubwindowIndex
from reference.retrieval import make_images

SMALL = ["--trees", "3", "--subwindows", "20", "--size", "8", "--jobs", "1"]


@pytest.fixture
def folder(tmp_path):
    """Write pictures in folders by class; return their folder."""
    images, labels = make_images(8)
    for i, (image, label) in enumerate(zip(images, labels, strict=True)):
        path = tmp_path / "pictures" / label / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    return tmp_path / "pictures"


def run(*arguments, code=0):
    """Run the command; return what it prints, on both streams."""
    result = CliRunner().invoke(app, ["index", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def index(folder):
    path = folder.parent / "index"
    run("build", path, folder, *SMALL)
    return path


def test_build_and_search(index, folder):
    """A built index finds a picture, and prints a table or JSON."""
    picture = folder / "class 1" / "5.png"
    printed = run("search", index, picture, "--top", 3).output
    assert "class 1/" in printed
    assert "hits in" in printed
    answer = json.loads(run("search", index, picture, "--top", 3, "--json").stdout)
    assert [hit["name"] for hit in answer["hits"]] == [
        hit.name for hit in SubwindowIndex(index).search(picture, 3)
    ]
    only = json.loads(run("search", index, picture, "--label", "class 2", "--json").stdout)
    assert {hit["label"] for hit in only["hits"]} <= {"class 2"}


def test_build_resumes(index, folder):
    """The same command again adds what is missing; unchanged files are not read again."""
    Image.fromarray(make_images(seed=3)[0][0]).save(folder / "class 0" / "new.png")
    (folder / "class 0" / "broken.png").write_bytes(b"nothing")
    printed = run("build", index, folder, *SMALL).output
    assert "exists: adding the images that it does not have yet" in printed
    assert "1 added, 0 replaced, 8 unchanged, 1 skipped" in printed
    assert "broken.png" in printed
    report = json.loads(run("add", index, folder, "--json").stdout)
    assert report["n_unchanged"] == 9
    assert "known format" in report["skipped"][0]["reason"]


def test_change_and_inspect(index, folder):
    """Images are removed by name; info, evaluate and compact report what there is."""
    run("remove", index, "class 0/0.png", "class 1/1.png")
    info = json.loads(run("info", index, "--json").stdout)
    assert (info["images"], info["removed"], info["trees"]) == (6, 2, 3)
    assert "bytes before" in run("compact", index).output
    assert "removed" in run("info", index).output
    quality = json.loads(run("evaluate", index, "--json", "--at", 2).stdout)
    assert quality["n_queries"] + quality["n_left_out"] == 6
    assert "2" in quality["precision"]
    assert "mean average precision" in run("evaluate", index, folder).output


def test_shared_vocabulary(index, folder, tmp_path):
    """An index on the trees of another; both are searched as one."""
    run("remove", index, "class 0/0.png")
    other = tmp_path / "other"
    run("build", other, folder / "class 0", "--vocabulary", index, "--jobs", 1)
    vocabularies = {SubwindowIndex(path).vocabulary.key for path in (index, other)}
    assert len(vocabularies) == 1
    picture = folder / "class 0" / "0.png"
    assert "index" in run("search", index, other, picture).output
    hits = json.loads(run("search", index, other, picture, "--json").stdout)["hits"]
    assert {(hit["name"], hit["shard"]) for hit in hits} >= {("0.png", 1), ("class 0/4.png", 0)}


def test_errors(index, folder, tmp_path):
    """Mistakes end with code 2 and a message, without a traceback."""
    for arguments, message in [
        (("search", tmp_path / "missing", folder / "class 0" / "0.png"), "has no index"),
        (("search", folder / "class 0" / "0.png"), "pass an index and a picture"),
        (("search", index, tmp_path / "missing.png"), "does not exist"),
        (("remove", index, "nothing"), "the index has no image 'nothing'"),
        (("build", tmp_path / "new", tmp_path / "missing"), "is not a folder"),
        (("add", index, tmp_path / "missing"), "is not a folder"),
        (("search", "http://127.0.0.1:9", folder / "class 0" / "0.png"), "cannot be reached"),
    ]:
        printed = " ".join(run(*arguments, code=2).output.split())
        assert message in printed
        assert "Traceback" not in printed
    (tmp_path / "empty").mkdir()
    assert "has no images" in run("build", tmp_path / "new", tmp_path / "empty", code=2).output


def wait_for(condition):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "it has not happened"
        time.sleep(0.1)


def names_of(index):
    return {row.name for row in SubwindowIndex(index).rows()}


def test_watch(index, folder):
    """New, changed and deleted files are followed until Ctrl-C."""
    command = [sys.executable, "-m", "okforest.cli", "index", "add", index, folder]
    process = subprocess.Popen([*map(str, command), "--watch", "0.2", "--jobs", "1"])
    try:
        Image.fromarray(make_images(seed=4)[0][0]).save(folder / "class 3" / "late.png")
        wait_for(lambda: "class 3/late.png" in names_of(index))
        (folder / "class 3" / "late.png").unlink()
        wait_for(lambda: "class 3/late.png" not in names_of(index))
        process.send_signal(signal.SIGINT)
        assert process.wait(30) != 0
    finally:
        process.kill()
        process.wait()


def test_serve(index, folder, tmp_path):
    """The server answers; without a token it is read-only, and Ctrl-C stops it."""
    pytest.importorskip("fastapi", reason="FastAPI is not installed")
    from okforest.retrieval import RemoteError, RemoteIndex

    port = 20_000 + os.getpid() % 20_000
    command = [sys.executable, "-m", "okforest.cli", "index", "serve", str(index)]
    process = subprocess.Popen([*command, "--port", str(port)])
    remote = RemoteIndex(f"http://127.0.0.1:{port}")

    def answers():
        try:
            return remote.info()["images"] == 8
        except RemoteError:
            assert process.poll() is None
            return False

    try:
        wait_for(answers)
        picture = (folder / "class 2" / "2.png").read_bytes()
        assert remote.search(picture, 1)[0].label == "class 2"
        with pytest.raises(RemoteError, match="read-only"):
            remote.add(picture, "x.png")
        process.send_signal(signal.SIGINT)
        process.wait(30)
    finally:
        process.kill()
        process.wait()
    (tmp_path / "token").write_text("\n")
    printed = run("serve", index, "--token-file", tmp_path / "token", code=2).output
    assert "is empty; write a secret to it" in " ".join(printed.split())
