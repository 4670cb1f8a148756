"""Images from files: formats, thumbnails, names, unchanged files, damaged ones."""

import io
import os

import numpy as np
import pytest
from PIL import Image

from okforest.retrieval import PictureError, SubwindowIndex, pictures
from okforest.retrieval.pictures import Limits, content_hash, list_pictures, read_picture
from reference.retrieval import make_images


@pytest.fixture
def folder(tmp_path):
    """Write grey and colour pictures in several formats; return their folder."""
    images = make_images(4, channels=3)[0]
    root = tmp_path / "pictures"
    (root / "a").mkdir(parents=True)
    for i, kind in enumerate(("png", "jpg", "webp", "tiff")):
        Image.fromarray(images[i]).save(root / "a" / f"{i}.{kind}")
    Image.fromarray(images[0][:, :, 0]).save(root / "grey.gif")
    (root / "letter.txt").write_text("dear")
    return root


def test_folder(folder, tmp_path):
    """Files are named relative to the folder and labelled by its folders; others are ignored."""
    (folder / "a" / "broken.png").write_bytes(b"\x89PNG")
    with pytest.warns(UserWarning, match=r"1 of 6 images were left out; the first: .*broken.png"):
        index = SubwindowIndex.build(tmp_path / "index", folder, thumbnail_side=16)
    rows = {row.name: row for row in index.rows()}
    assert set(rows) == {"a/0.png", "a/1.jpg", "a/2.webp", "a/3.tiff", "grey.gif"}
    assert rows["a/0.png"].label == "a"
    assert rows["grey.gif"].label == ""
    assert index.labels == ["a"]
    assert rows["a/0.png"].file_bytes == (folder / "a" / "0.png").stat().st_size
    with Image.open(io.BytesIO(rows["a/0.png"].thumbnail)) as small:
        assert max(small.size) == 16
    assert index.vocabulary.segmenter.color == "rgb"
    assert index.search(folder / "a" / "1.jpg", 1)[0].name == "a/1.jpg"
    assert index.search(rows["a/1.jpg"].id, 1)[0].name == "a/1.jpg"
    explanation = index.explain(folder / "a" / "1.jpg", "a/1.jpg")
    assert explanation.score > 0
    assert "broken.png" in index.add(folder).skipped[0].name


def test_changed_files(folder, tmp_path):
    """A file is read again if its size or time has changed, and replaced if its pixels have."""
    index = SubwindowIndex.build(tmp_path / "index", folder)
    os.utime(folder / "grey.gif", (1, 1))
    assert index.add(folder)[:3] == (0, 0, 5)
    Image.fromarray(make_images(seed=8)[0][0]).save(folder / "grey.gif")
    assert index.add(folder)[:3] == (0, 1, 4)
    assert len(index) == 5
    Image.fromarray(make_images(seed=9)[0][0]).save(folder / "grey.gif")
    with pytest.raises(ValueError, match=r"the file of image 'grey.gif' has changed; add it again"):
        index.picture("grey.gif")
    (folder / "grey.gif").unlink()
    with pytest.raises(PictureError, match="does not exist"):
        index.picture("grey.gif")


def test_leave_one_out(folder, tmp_path):
    """Without queries, the labelled files are searched for among the others."""
    quality = SubwindowIndex.build(tmp_path / "index", folder).evaluate(k=(1,))
    assert quality.n_queries == 4
    assert 0 < quality.mean_average_precision <= 1


def test_modes(tmp_path):
    """Deep pixels keep their upper bits; turned photographs are read upright."""
    deep = (np.arange(20 * 30).reshape(20, 30) * 100).astype(np.uint16)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    assert np.array_equal(read_picture(tmp_path / "deep.png")[:, :, 0], deep >> 8)
    photo = Image.new("RGB", (30, 20))
    exif = photo.getexif()
    exif[0x0112] = 6  # the camera was turned
    photo.save(tmp_path / "turned.jpg", exif=exif)
    assert read_picture(tmp_path / "turned.jpg").shape == (30, 20, 3)
    Image.fromarray(np.zeros((9, 9), np.float32)).save(tmp_path / "floats.tiff")
    with pytest.raises(PictureError, match="floating-point pixels; convert it"):
        read_picture(tmp_path / "floats.tiff")
    Image.new("P", (9, 9)).save(tmp_path / "palette.png")
    assert read_picture(tmp_path / "palette.png").shape == (9, 9, 3)


def test_limits(tmp_path):
    """Bytes, pixels and formats are checked before a picture is decoded."""
    path = tmp_path / "one.png"
    Image.new("L", (50, 40)).save(path)
    assert read_picture(path).shape == (40, 50, 1)
    with pytest.raises(PictureError, match="50 × 40 pixels; at most 1999 are read"):
        read_picture(path, Limits(max_pixels=1999))
    with pytest.raises(PictureError, match="bytes; at most 10 are read"):
        read_picture(path.read_bytes(), Limits(max_bytes=10))
    with pytest.raises(PictureError, match=r"not a picture in a known format \(JPEG\)"):
        read_picture(path, Limits(formats=("JPEG",)))


def test_unchanged_files_are_not_read(folder, tmp_path, vocabulary, monkeypatch):
    """A file with the same size and time is skipped before it is decoded."""
    index = SubwindowIndex.build(tmp_path / "index", folder, vocabulary=vocabulary)

    def fail(*arguments):
        raise AssertionError("a file was read")

    monkeypatch.setattr(pictures, "read_picture", fail)
    assert index.add(folder)[:3] == (0, 0, 5)


def test_relabelled_files(folder, tmp_path, vocabulary):
    """A file that did not change gets a new label."""
    files = list_pictures(folder)
    labels = ["old"] * len(files)
    index = SubwindowIndex.build(tmp_path / "index", files, labels=labels, vocabulary=vocabulary)
    added = index.add(files, labels=["new", *labels[1:]])
    assert added[:3] == (0, 1, 4)
    assert index.labels == ["new", "old"]


def test_given_names_of_files_are_kept(folder, tmp_path, vocabulary):
    """Names that are given win over paths relative to the root folder."""
    files = list_pictures(folder)[:2]
    index = SubwindowIndex.build(tmp_path / "index", vocabulary=vocabulary, root=folder)
    index.add(files, names=["x", "y"])
    assert [row.name for row in index.rows()] == ["x", "y"]


def test_hash_has_the_shape():
    """Pictures with the same bytes in another shape are different."""
    flat = np.arange(24, dtype=np.uint8)
    assert content_hash(flat.reshape(4, 6, 1)) != content_hash(flat.reshape(6, 4, 1))


def test_more_modes(tmp_path):
    """Grey pictures with transparency stay grey."""
    Image.new("LA", (9, 8)).save(tmp_path / "transparent.png")
    assert read_picture(tmp_path / "transparent.png").shape == (8, 9, 1)


def test_listed_files(tmp_path):
    """Endings in capitals count; hidden files and folders do not."""
    (tmp_path / ".hidden").mkdir()
    for name in ("a.PNG", "b.Jpg", ".c.png", "._d.jpg", ".hidden/e.png"):
        (tmp_path / name).touch()
    assert [path.name for path in list_pictures(tmp_path)] == ["a.PNG", "b.Jpg"]


def test_labels_of_parts_of_the_root_folder(folder, tmp_path, vocabulary):
    """A folder or a file within the root folder has the same label as before."""
    index = SubwindowIndex.build(tmp_path / "index", folder, vocabulary=vocabulary)
    before = [*index.rows()]
    assert index.add(folder / "a")[:3] == (0, 0, 4)
    assert index.add([folder / "a" / "0.png", folder / "grey.gif"])[:3] == (0, 0, 2)
    assert [*index.rows()] == before
    Image.fromarray(make_images(seed=8)[0][0]).save(folder / "a" / "new.png")
    index.add([folder / "a" / "new.png"])
    assert index.row("a/new.png").label == "a"


def test_labels_that_are_not_given(folder, tmp_path, vocabulary):
    """Files and arrays that are added again without labels keep theirs."""
    files = list_pictures(folder)
    index = SubwindowIndex.build(
        tmp_path / "index", files, labels=["x"] * 5, vocabulary=vocabulary, root=folder
    )
    assert index.add(files)[:3] == (0, 0, 5)
    images = make_images()[0]
    index.add(images[:1], names=["array"], labels=["y"])
    assert index.add(images[1:2], names=["array"]).n_replaced == 1
    assert index.labels == ["x", "y"]


def test_links_to_folders(folder, tmp_path, vocabulary):
    """The same folder under another name has the same images."""
    index = SubwindowIndex.build(tmp_path / "index", folder, vocabulary=vocabulary)
    (tmp_path / "link").symlink_to(folder)
    assert index.add(tmp_path / "link")[:3] == (0, 0, 5)
    assert index.add([tmp_path / "link" / "grey.gif"])[:3] == (0, 0, 1)


def test_names_that_are_not_text(folder, tmp_path, vocabulary):
    """A file whose name is not UTF-8 is left out; the others are indexed."""
    name = os.fsencode(folder) + b"/\xe9.png"
    try:
        with open(name, "wb") as file:
            file.write((folder / "a" / "0.png").read_bytes())
    except OSError:
        pytest.skip("the file system has no such names")
    with pytest.warns(UserWarning, match="1 of 6 images were left out; .* is not UTF-8; rename it"):
        index = SubwindowIndex.build(tmp_path / "index", folder, vocabulary=vocabulary)
    assert len(index) == 5
    assert index.add(folder).skipped[0].name == "\N{REPLACEMENT CHARACTER}.png"
    with pytest.raises(ValueError, match="one of the names, is not valid Unicode"):
        index.add(make_images()[0][:1], names=["\udce9"])


def test_files_that_change_while_they_are_read(folder, tmp_path, vocabulary, monkeypatch):
    """The time of a file is that before it was read; one that vanishes is left out."""
    index = SubwindowIndex.build(tmp_path / "index", vocabulary=vocabulary, root=folder)
    read = pictures.read_picture

    def slow(path):
        picture = read(path)
        if path.name == "grey.gif":
            Image.fromarray(make_images(seed=8)[0][0]).save(path)
        return picture

    (folder / "a" / "0.png").rename(folder / "gone.png")
    sources = pictures.as_sources(folder)
    (folder / "gone.png").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(pictures, "read_picture", slow)
        added = index.add(sources)
    assert (added.n_added, [one.name for one in added.skipped]) == (4, ["gone.png"])
    assert index.add(folder)[:3] == (0, 1, 3)
    assert index.picture("grey.gif").shape[:2] == (24, 20)
