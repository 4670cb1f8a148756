"""The command ``okforest index``: from a folder of pictures to hits, in tables and JSON."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

from commands import SMALL, run
from okforest.cli import console
from okforest.cli.index_build import Watcher
from okforest.retrieval import SubwindowIndex, Vocabulary
from reference.retrieval import make_images


def test_build_and_search(index, folder):
    """A built index finds a picture, and prints a table or JSON."""
    picture = folder / "class 1" / "5.png"
    printed = run("search", index, picture, "-k", 3).output
    assert "class 1/" in printed
    assert "hits in" in printed
    answer = json.loads(run("search", index, picture, "-k", 3, "--json").stdout)
    assert [hit["name"] for hit in answer["hits"]] == [
        hit.name for hit in SubwindowIndex(index).search(picture, 3)
    ]
    only = json.loads(run("search", index, picture, "--label", "class 2", "--json").stdout)
    assert {hit["label"] for hit in only["hits"]} <= {"class 2"}


def test_several_pictures(index, folder, tmp_path):
    """Each picture is searched for; a folder or an address before them is one more index."""
    pictures = [folder / "class 1" / "5.png", folder / "class 2" / "2.png"]
    answers = json.loads(run("search", index, *pictures, "-k", 3, "--json").stdout)
    assert [one["query"] for one in answers] == [str(picture) for picture in pictures]
    for one, picture in zip(answers, pictures, strict=True):
        alone = json.loads(run("search", index, picture, "-k", 3, "--json").stdout)
        assert one["hits"] == alone["hits"]
    printed = run("search", index, *pictures, "-k", 3).output
    assert "query" in printed
    assert all(printed.count(str(picture)) == 3 for picture in pictures)
    assert "6 hits in" in printed
    missing = run("search", index, pictures[0], tmp_path / "missing.png", code=2)
    assert missing.stdout == ""
    assert "missing.png" in missing.output
    assert "pass an index and a picture" in " ".join(run("search", index, code=2).output.split())


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
    quality = json.loads(run("evaluate", index, "--json", "-k", 2).stdout)
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
    until = time.monotonic() + 180
    while not condition():
        assert time.monotonic() < until, "it has not happened"
        time.sleep(0.1)


def names_of(index):
    return {row.name for row in SubwindowIndex(index).rows()}


def test_watch(index, folder):
    """New, changed and deleted files are followed until Ctrl-C."""
    command = [sys.executable, "-m", "okforest", "index", "add", index, folder]
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
    from okforest.retrieval.web import RemoteError, RemoteIndex

    port = 20_000 + os.getpid() % 20_000
    command = [sys.executable, "-m", "okforest", "index", "serve", str(index)]
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


def test_options_of_build(folder, tmp_path):
    """Each option of build has its effect."""
    options = ["--smallest", 0.6, "--color", "hsv", "--min-split", 30, "--thumbnails", 0]
    run("build", tmp_path / "one", folder, *SMALL, *options, "--seed", 5, "--commit-every", 3)
    made = SubwindowIndex(tmp_path / "one")
    segmenter = made.vocabulary.segmenter
    assert segmenter.side_range == (0.6, 1.0)
    assert (segmenter.n_segments, segmenter.size, segmenter.color) == (20, 8, "hsv")
    assert made.vocabulary.seed == 5
    assert made.info()["thumbnail_bytes"] == 0
    assert len(made.snapshot.segments) == 3
    run("build", tmp_path / "two", folder, *SMALL, "--color", "hsv", "--thumbnails", 10)
    fine = SubwindowIndex(tmp_path / "two")
    assert fine.info()["leaves"] > 2 * made.info()["leaves"]
    assert fine.info()["thumbnail_bytes"] > 0
    run("build", tmp_path / "three", folder, *SMALL, "--sample", 30)
    assert SubwindowIndex(tmp_path / "three").info()["leaves"] <= 90
    made.vocabulary.save(tmp_path / "words.okf")
    run("build", tmp_path / "four", folder, "--vocabulary", tmp_path / "words.okf", "--jobs", 1)
    assert SubwindowIndex(tmp_path / "four").vocabulary.key == made.vocabulary.key
    assert Vocabulary.load(tmp_path / "words.okf").key == made.vocabulary.key


def test_options_of_search(index, folder):
    """Subwindows and the seed of a search are those that are passed."""
    picture = folder / "class 1" / "5.png"
    answer = json.loads(run("search", index, picture, "--subwindows", 90, "--json").stdout)
    expected = SubwindowIndex(index).search(picture, n_subwindows=90)
    assert [hit["score"] for hit in answer["hits"]] == [hit.score for hit in expected]
    copies = folder.parent / "copies"
    copies.mkdir()
    for name in "abcdef":
        (copies / f"{name}.png").write_bytes(picture.read_bytes())
    run("add", index, copies)
    orders = set()
    for seed in range(12):
        hits = json.loads(run("search", index, picture, "--seed", seed, "--json").stdout)["hits"]
        orders.add(tuple(hit["name"] for hit in hits))
    assert len(orders) > 3


def test_brackets_in_names(tmp_path):
    """Names in square brackets are printed as they are."""
    folder = tmp_path / "pictures" / "[bold]"
    folder.mkdir(parents=True)
    image = make_images()[0][0]
    Image.fromarray(image).save(folder / "[red]x.png")
    run("build", tmp_path / "index", tmp_path / "pictures", *SMALL)
    printed = run("search", tmp_path / "index", folder / "[red]x.png").output
    assert "[bold]/[red]x.png" in "".join(printed.split())


def served(monkeypatch, *arguments, **options):
    """Return the arguments with which the command would serve."""
    from okforest.retrieval import web

    calls = []

    def serve(*values):
        *arguments, ready = values
        calls.append(arguments)
        ready()

    monkeypatch.setattr(web, "serve", serve)
    printed = run("serve", *arguments, **options).output
    ((_, host, port, settings),) = calls
    return host, port, settings, " ".join(printed.split())


def test_settings_of_serve(index, tmp_path, monkeypatch):
    """The token, the limits and the hosts get to the server; the token is not printed."""
    pytest.importorskip("fastapi", reason="FastAPI is not installed")
    monkeypatch.delenv("OKFOREST_TOKEN", raising=False)
    host, port, settings, printed = served(monkeypatch, index)
    assert (host, port, settings.token) == ("127.0.0.1", 8000, None)
    assert set(settings.hosts) == {"127.0.0.1", "localhost", "::1"}
    assert "read-only" in printed
    (tmp_path / "token").write_text("s3cret\n")
    options = ["--token-file", tmp_path / "token", "--max-megabytes", 0.5, "--host", "0.0.0.0"]
    host, _, settings, printed = served(monkeypatch, index, *options, "--workers", 3, "--queue", 7)
    assert (settings.token, settings.max_bytes, settings.hosts) == ("s3cret", 2**19, ())
    assert (settings.workers, settings.queue, host) == (3, 7, "0.0.0.0")
    assert "need the token" in printed
    assert "s3cret" not in printed
    monkeypatch.setenv("OKFOREST_TOKEN", "other")
    assert served(monkeypatch, index)[2].token == "other"


def test_follow(index, folder, tmp_path, capsys):
    """Files that are gone from the folder are removed; others, and images from elsewhere, stay."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    images = make_images(3, seed=4)[0]
    Image.fromarray(images[0]).save(elsewhere / "gone.png")
    opened = SubwindowIndex(index)
    opened.add(elsewhere)
    opened.add(images[1:2], names=["uploaded"])
    Image.fromarray(images[1]).save(folder / "picture.data", "PNG")  # no ending of a picture
    opened.add([folder / "picture.data"])
    (elsewhere / "gone.png").unlink()
    (folder / "class 0" / "0.png").unlink()
    Image.fromarray(images[2]).save(folder / "class 0" / "4.png")
    changed = opened.row("class 0/4.png").hash
    Watcher(opened, folder).follow()
    names = {row.name for row in opened.rows()}
    assert "class 0/0.png" not in names
    stay = {"uploaded", str(elsewhere / "gone.png"), "picture.data", "class 0/4.png"}
    assert stay <= names
    assert len(names) == 10
    assert opened.row("class 0/4.png").hash != changed
    printed = capsys.readouterr().err
    assert "1 removed" in printed
    assert "0 added, 1 replaced, 6 unchanged, 0 skipped" in printed


def test_time_left(monkeypatch, capsys):
    """In a pipe, a line a minute at most, with the time that is left."""
    now = iter([0.0, 30.0, 60.0, 90.0, 130.0])
    monkeypatch.setattr(console, "perf_counter", lambda: next(now))
    with console.progress("indexing", 200) as update:
        for done in (25, 40, 45, 52):
            update(done)
    assert capsys.readouterr().err.splitlines() == [
        "indexing: 40/200, 60 s, 4 min left",
        "indexing: 52/200, 2 min, 6 min left",
    ]


def test_evaluation_table(index, folder):
    """The table has the measures of the index."""
    quality = SubwindowIndex(index).evaluate(k=(1, 3))
    printed = run("evaluate", index, "-k", 1, "-k", 3).output
    assert f"{quality.top_1:.2%}" in printed
    assert f"{quality.mean_average_precision:.4f}" in printed
    assert np.isclose(quality.precision[1], quality.top_1)


def test_watched_folder_that_vanishes(index, folder, capsys):
    """A folder that is moved away, or is empty as a disk that is not mounted, removes nothing."""
    watcher = Watcher(SubwindowIndex(index), folder)
    away = folder.with_name("away")
    folder.rename(away)
    for _ in range(2):
        watcher.follow()
    folder.mkdir()
    watcher.follow()
    assert len(SubwindowIndex(index)) == 8
    printed = capsys.readouterr().err
    assert printed.count("is missing or has no pictures; nothing is removed meanwhile") == 1
    folder.rmdir()
    away.rename(folder)
    (folder / "class 0" / "0.png").unlink()
    watcher.follow()
    assert len(SubwindowIndex(index)) == 7


def test_watching_after_a_merge(index, folder, tmp_path):
    """Images of another folder stay."""
    other = tmp_path / "other"
    other.mkdir()
    for i, image in enumerate(make_images(3, seed=4)[0]):
        Image.fromarray(image).save(other / f"{i}.png")
    opened = SubwindowIndex(index)
    opened.merge([SubwindowIndex.build(tmp_path / "b", other, vocabulary=opened.vocabulary)])
    watcher = Watcher(opened, folder)
    watcher.follow()
    assert len(opened) == 11
    with opened._store.lock():
        (folder / "class 0" / "0.png").unlink()
        watcher.follow()  # another process writes: later
    watcher.follow()
    assert len(opened) == 10


def test_long_names(folder, tmp_path):
    """In a pipe, names are not cut off."""
    long = folder / ("x" * 120 + ".png")
    (folder / "class 0" / "0.png").rename(long)
    run("build", tmp_path / "long", folder, *SMALL)
    assert long.name in run("search", tmp_path / "long", long).output
