"""Images whose pixels are not at hand; and what users pass by mistake."""

import numpy as np
import pytest

from okforest.retrieval import FederatedIndex, PictureError, SubwindowIndex
from reference.web import encoded


def test_evaluation_leaves_out_images_without_files(files):
    """Images that were added as arrays, or whose files have changed, are counted, and no query."""
    index, images = files
    before = index.evaluate()
    assert (before.n_queries + before.n_left_out, before.n_unreadable) == (8, 0)
    index.add(images[:1], names=["sent"], labels=["class 0"])
    assert index.evaluate().n_unreadable == 1
    (index.path.parent / "pictures" / "class 1" / "1.png").write_bytes(encoded(images[2]))
    done = []
    quality = index.evaluate(callback=done.append)
    assert (quality.n_queries + quality.n_left_out, quality.n_unreadable) == (7, 2)
    assert done[-1] == 9


def test_evaluation_without_any_file(build, images, labels):
    """If no image has a file, the error says what to pass."""
    with pytest.raises(ValueError, match="none of the 12 labelled images of the index can be read"):
        build().evaluate()
    assert build(name="second").evaluate(images, labels).n_unreadable == 0


def test_search_for_an_image_without_a_file(index_files, images, labels):
    """Its thumbnail is searched for; an explanation of it as a hit needs its pixels."""
    index = index_files(images[:8], labels[:8])
    index.add(images[8:9], names=["sent"])
    sent = index.row("sent")
    assert "sent" in [hit.name for hit in index.search(sent.id, 3)]
    with pytest.raises(PictureError, match="'sent' was not indexed from a file; pass its pixels"):
        index.explain(images[0], "sent")
    assert index.explain(images[8], "sent", hit_picture=images[8]).score > 0


def test_hits_and_bytes_as_queries(files):
    """A hit and the content of a file are queries, too; a hit can be removed."""
    index, images = files
    hit = index.search(encoded(images[1]))[0]
    assert hit == index.search(images[1])[0]
    assert index.search(hit) == index.search(hit.id)
    assert index.remove([hit]) == 1
    with pytest.raises(PictureError, match="the query is of type dict; expected an array of bytes"):
        index.search({})


def test_rows_are_short(files):
    """The representation of a row has no bytes of a thumbnail."""
    row = files[0].row("class 1/1.png")
    assert row.thumbnail
    assert len(repr(row)) < 200
    assert "class 1/1.png" in repr(row)


def test_arrays_of_the_wrong_type(build):
    """Adding them warns, and says which they are."""
    index = build()
    with pytest.warns(UserWarning, match=r"3 of 3 images were left out; the first: images\[0\]"):
        added = index.add(np.random.default_rng(0).random((3, 20, 20)))
    assert [one.name for one in added.skipped] == ["images[0]", "images[1]", "images[2]"]


def test_folder_with_other_files(tmp_path, images, monkeypatch):
    """It is refused before an image is read."""
    (tmp_path / "letter.txt").write_text("dear")
    monkeypatch.setattr("okforest.retrieval.index.as_sources", lambda *_: pytest.fail("too late"))
    for path, message in [
        (tmp_path, "has other files; choose an empty folder"),
        (tmp_path / "letter.txt", "is a file; choose a folder for the index"),
    ]:
        with pytest.raises(FileExistsError, match=message):
            SubwindowIndex.build(path, images)


def test_wrong_types_of_indexes(build):
    """Folders and addresses that were not opened, and single indexes, are refused by name."""
    index = build()
    web = pytest.importorskip("okforest.retrieval.web", reason="the extra serve is not installed")
    remote = web.RemoteIndex("http://127.0.0.1:9")
    for wrong, error, message in [
        (
            ["folder"],
            TypeError,
            r"'folder' is not an index; pass SubwindowIndex\(folder\) or Remote",
        ),
        (index, TypeError, "shards=<SubwindowIndex of 12 images .*; expected a list"),
    ]:
        with pytest.raises(error, match=message):
            FederatedIndex(wrong)
    for wrong, message in [
        (["folder"], "'folder' is not a SubwindowIndex, and only these can be merged"),
        ([remote], r"RemoteIndex\('http://127.0.0.1:9'\) is not a SubwindowIndex"),
        (index, "others=<SubwindowIndex of 12 images .*; expected a list"),
    ]:
        with pytest.raises(TypeError, match=message):
            index.merge(wrong)
