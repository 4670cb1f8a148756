"""``okforest index``: which images there are, what they are named, and mistakes."""

import json
import os
import re
import socket
import subprocess
import sys
import warnings

import numpy as np
import pytest
from PIL import Image

from commands import SMALL, run
from okforest.retrieval import SubwindowIndex, Vocabulary
from reference.retrieval import make_images


def printed(*arguments, code=0):
    return " ".join(run(*arguments, code=code).output.split())


def test_list(index):
    """Names, labels and sizes, as a table or JSON; by label and by pattern."""
    assert "class 1/5.png class 1 20 × 24" in printed("list", index)
    rows = json.loads(run("list", index, "--json").stdout)
    assert [row["name"] for row in rows] == sorted(row.name for row in SubwindowIndex(index).rows())
    assert rows[0].keys() == {"id", "name", "label", "height", "width"}
    rows = json.loads(run("list", index, "--label", "class 1", "--match", "*/5.*", "--json").stdout)
    assert [row["name"] for row in rows] == ["class 1/5.png"]


def test_remove(index, folder, monkeypatch):
    """By name, by file, by label and by pattern; an unknown name comes with what to do."""
    monkeypatch.chdir(folder.parent)
    assert "1 image removed" in printed("remove", index, "class 0/0.png")
    assert "1 image removed" in printed("remove", index, "pictures/class 0/4.png")
    assert "2 images removed" in printed("remove", index, "--label", "class 1")
    assert "2 images removed" in printed("remove", index, "--match", "class 2/*")
    assert "okforest index list" in printed("remove", index, "nothing", code=2)
    assert "pass either names of images, or --label or --match" in printed("remove", index, code=2)
    assert len(SubwindowIndex(index)) == 2


def test_other_options_on_an_index(index, folder, tmp_path):
    """What an index cannot change is an error; the same options go on."""
    for options, message in [
        (["--trees", 5], "was built with --trees 3, which does not change; 5 needs another index"),
        (["--thumbnails", 10], "was built with --thumbnails 192"),
        (["--color", "hsv"], "was built with --color grey"),
    ]:
        assert message in printed("build", index, folder, *options, code=2)
    assert "8 unchanged" in printed("build", index, folder, "--color", "auto", "--seed", 0)
    assert "--sample has no effect" in printed("build", index, folder, "--sample", 30)
    other = tmp_path / "other"
    other.mkdir()
    Image.fromarray(make_images()[0][0]).save(other / "0.png")
    assert "was built from" in printed("build", index, other, code=2)
    Vocabulary.grow(make_images(seed=2)[0]).save(tmp_path / "words.okf")
    words = ["--vocabulary", tmp_path / "words.okf"]
    assert "was built on trees that differ from" in printed("build", index, folder, *words, code=2)
    new = tmp_path / "new"
    assert "--trees is for growing" in printed("build", new, folder, *words, "--trees", 5, code=2)


def test_mistakes(index, folder, tmp_path):
    """They are told in the words of the command line, before anything is read."""
    letter = tmp_path / "letter.txt"
    letter.write_text("dear")
    new = tmp_path / "new"
    for arguments, message in [
        (("build", folder, folder), "has other files; choose an empty folder"),
        (("build", new, folder, "--vocabulary", letter), "is not a file of trees; make one with"),
        (
            ("build", new, folder, "--vocabulary", new),
            "--vocabulary .* does not exist; pass a file",
        ),
        (("info", new), "has no index; build one first, or pass another folder"),
        (("serve", index, "--token-file", new), "--token-file .* cannot be read: No such file"),
        (("search", index, letter), "is not a picture in a known format"),
        (("search", index, folder / "class 0/0.png", "--label", "x"), "no image has the label 'x'"),
    ]:
        text = printed(*arguments, code=2)
        assert re.search(message, text)
        assert "reading images" not in text
        assert not re.search(r"SubwindowIndex|rows\(\)|vocabulary=|Errno|pickle", text)


def test_short_token(index, tmp_path):
    """A secret that can be guessed is used with a warning; a port in use is one error."""
    pytest.importorskip("fastapi", reason="FastAPI is not installed")
    (tmp_path / "token").write_text("abc")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        text = printed("serve", index, "--port", port, "--token-file", tmp_path / "token", code=2)
    assert "warning: the token has 3 characters and can be guessed" in text
    assert f"cannot listen on port {port} of 127.0.0.1: it is in use. Choose another" in text
    assert "http://" not in text


def test_sites(folder, tmp_path):
    """Trees are grown once, two indexes are built on them and merged."""
    words = tmp_path / "words.okf"
    assert "3 trees with" in printed("vocabulary", words, folder, *SMALL)
    assert "exists; choose another name" in printed("vocabulary", words, folder, *SMALL, code=2)
    one, two = tmp_path / "one", tmp_path / "two"
    run("build", one, folder / "class 0", "--vocabulary", words)
    run("build", two, folder / "class 1", "--vocabulary", words)
    assert "2 images added" in printed("merge", one, two)
    assert len(SubwindowIndex(one)) == 4


def test_explain(index, folder):
    """The pairs are the index's, with the column before the row."""
    picture = folder / "class 1" / "1.png"
    answer = json.loads(run("explain", index, picture, "class 1/5.png", "-k", 3, "--json").stdout)
    expected = SubwindowIndex(index).explain(picture, "class 1/5.png", 3)
    assert [pair["weight"] for pair in answer["pairs"]] == expected.weights.tolist()
    boxes = np.array([pair["hit"] for pair in answer["pairs"]])
    assert np.array_equal(boxes, expected.hit_boxes[:, [1, 0, 2]])
    assert "with its 3 largest pairs" in printed(
        "explain", index, picture, "class 1/5.png", "-k", 3
    )
    images = make_images(seed=5)[0]
    SubwindowIndex(index).add(images[:1], names=["sent"])
    assert "pass it as --original FILE" in printed("explain", index, picture, "sent", code=2)


def test_evaluation_of_images_without_files(index):
    """They are left out, with a line."""
    SubwindowIndex(index).add(make_images(seed=5)[0][:1], names=["sent"], labels=["class 1"])
    assert "1 image left out: not indexed from a file" in printed("evaluate", index)
    assert json.loads(run("evaluate", index, "--json").stdout)["n_unreadable"] == 1


def test_info_has_the_root(index, folder):
    """Names are relative to it."""
    info = json.loads(run("info", index, "--json").stdout)
    assert (info["root"], info["thumbnail_side"]) == (os.path.realpath(folder), 192)


def test_large_pictures(folder, tmp_path):
    """Pictures beyond the limit are skipped, without a warning of Pillow; progress ends."""
    Image.new("1", (10_000, 9_500)).save(folder / "large.png")
    with warnings.catch_warnings(record=True) as caught:
        text = printed("build", tmp_path / "new", folder, *SMALL)
    assert not caught
    assert "8 added, 0 replaced, 0 unchanged, 1 skipped" in text
    assert "9/9" in text


def test_module():
    """``python -m okforest`` is the command."""
    command = [sys.executable, "-m", "okforest", "--version"]
    assert subprocess.run(command, capture_output=True, text=True).stdout.startswith("okforest ")
