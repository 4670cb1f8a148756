"""Images from files: formats, thumbnails, names, unchanged files, damaged ones."""

import io
import os

import numpy as np
import pytest
from PIL import Image

from okforest.retrieval import PictureError, SubwindowIndex
from okforest.retrieval._pictures import Limits, read_picture
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
    quality = SubwindowIndex.build(tmp_path / "index", folder).evaluate(ks=(1,))
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
