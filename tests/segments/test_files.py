"""Image files: reading, folders, damaged files."""

from zlib import crc32

import numpy as np
import pytest
from PIL import Image

import okforest
from okforest.segments import RandomSubwindows, SegmentClassifier, list_images

rng = np.random.default_rng(0)


@pytest.fixture
def folder(tmp_path):
    """Return a folder of small images in two classes, dark and bright."""
    for name, low in (("bright", 128), ("dark", 0)):
        (tmp_path / name).mkdir()
        for i in range(6):
            pixels = (low + rng.integers(0, 120, (10 + i, 12, 3))).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / name / f"{i}.png")
    (tmp_path / "notes.txt").write_text("not an image")
    return tmp_path


def test_classes_from_folders(folder, tmp_path):
    """Files are found and labelled by folder; models take paths, and read a few at a time."""
    images = list_images(folder)
    assert len(images.paths) == 12
    assert images.skipped == []
    assert images.target.tolist() == ["bright"] * 6 + ["dark"] * 6
    model = SegmentClassifier(RandomSubwindows(10), random_state=0).fit(images.paths, images.target)
    assert model.score(images.paths, images.target) == 1.0
    arrays = [np.asarray(Image.open(path)) for path in images.paths]
    np.testing.assert_array_equal(model.predict_proba(arrays), model.predict_proba(images.paths))
    assert model.evidence(images.paths[0]).map.shape == (10, 12)
    okforest.save(model, tmp_path / "model")
    assert okforest.load(tmp_path / "model").score(images.paths, images.target) == 1.0


def test_modes(tmp_path):
    """Grey, palette, alpha and 16-bit images are read; grey beside colour needs a conversion."""
    pixels = rng.integers(0, 256, (8, 8, 4)).astype(np.uint8)
    whole = {"side_range": (1.0, 1.0), "size": 8}
    forms = {
        "L": pixels[:, :, 0],
        "RGB": pixels[:, :, :3],
        "RGBA": pixels,
        "I;16": pixels[:, :, 0].astype(np.uint16) * 200,
    }
    paths = []
    for name, array in forms.items():
        paths.append(tmp_path / f"{name[0]}{len(paths)}.png")
        Image.fromarray(array).save(paths[-1])
    read = [RandomSubwindows(1, **whole).cut([image]).values[0] for image in
            RandomSubwindows().check(paths)]  # fmt: skip
    np.testing.assert_array_equal(read[0], forms["L"].ravel())
    np.testing.assert_array_equal(read[1], forms["RGB"].ravel())
    np.testing.assert_array_equal(read[2], forms["RGBA"][:, :, :3].ravel())
    np.testing.assert_array_equal(read[3], forms["I;16"].ravel())
    with pytest.raises(ValueError, match="set color='grey' or color='rgb'"):
        SegmentClassifier(RandomSubwindows(2)).fit(paths, [0, 1, 0, 1])
    SegmentClassifier(RandomSubwindows(2, color="grey")).fit(paths, [0, 1, 0, 1])


@pytest.mark.parametrize("damage", ["truncated", "text"])
def test_damaged_files(folder, damage):
    """A damaged file raises an error that names it, or is left out and listed."""
    path = folder / "dark" / "2.png"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2] if damage == "truncated" else b"hello")
    with pytest.raises(ValueError, match=r"2.png cannot be read as an image"):
        list_images(folder)
    images = list_images(folder, damaged="skip")
    assert len(images.paths) == len(images.target) == 11
    ((skipped, reason),) = images.skipped
    assert skipped == str(path)
    assert reason
    with pytest.raises(ValueError, match="list_images"):
        SegmentClassifier(RandomSubwindows(2)).fit([images.paths[0], path], [0, 1])


def test_bad_folders(tmp_path):
    """Folders that do not exist or have no images, and unknown options."""
    with pytest.raises(NotADirectoryError, match="is not a folder"):
        list_images(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="has no image files"):
        list_images(tmp_path)
    with pytest.raises(ValueError, match="use 'raise' or 'skip'"):
        list_images(tmp_path, damaged="ignore")


def test_pillow_is_optional(monkeypatch, tmp_path):
    """Without Pillow, the error names the extra to install."""
    monkeypatch.setitem(__import__("sys").modules, "PIL.Image", None)
    (tmp_path / "a.png").write_bytes(b"")
    with pytest.raises(ImportError, match=r"pip install 'okforest\[images\]'"):
        RandomSubwindows().check([tmp_path / "a.png"])[0]


def test_endings_and_files_outside_folders(tmp_path):
    """Endings in capitals are endings; files directly in the folder have an empty label."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    for path in ("one.PNG", "a/two.Png", "a/b/three.png"):
        Image.new("L", (5, 5)).save(tmp_path / path, format="png")
    images = list_images(tmp_path)
    assert sorted(images.target.tolist()) == ["", "a", "a/b"]


def test_grey_modes(tmp_path):
    """Files of black and white, and of grey with alpha, have one channel."""
    pixels = rng.integers(0, 2, (6, 6)).astype(np.uint8) * 255
    for mode in ("1", "L", "LA"):
        path = tmp_path / f"{mode}.png"
        Image.fromarray(pixels).convert(mode).save(path)
        (image,) = RandomSubwindows().check([path])[:1]
        np.testing.assert_array_equal(image, pixels[:, :, None])


def test_channels_of_files_in_prediction(tmp_path):
    """A colour file is refused by a model of grey images."""
    images = rng.integers(0, 256, (4, 8, 8)).astype(np.uint8)
    model = SegmentClassifier(RandomSubwindows(3), random_state=0).fit(images, [0, 1, 0, 1])
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    with pytest.raises(ValueError, match="an image has 3 channels and the training images have 1"):
        model.predict([tmp_path / "a.png"])


def test_damaged_header(folder):
    """A header of a huge image is damaged too, though Pillow has an error of its own for it."""
    path = folder / "dark" / "2.png"
    content = bytearray(path.read_bytes())
    content[16:24] = (60_000).to_bytes(4, "big") * 2  # width and height
    content[29:33] = crc32(content[12:29]).to_bytes(4, "big")
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"2.png cannot be read as an image \(DecompressionBomb"):
        list_images(folder)
    images = list_images(folder, damaged="skip")
    assert len(images.paths) == 11
    assert images.skipped[0][0] == str(path)
