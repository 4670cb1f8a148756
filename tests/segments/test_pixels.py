"""Segmentation: targets of subwindows, votes of pixels, metrics, forms of images and labels."""

import pickle

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

import okforest
from okforest import OKExtraTrees
from okforest.datasets import make_textures
from okforest.metrics import intersection_over_union
from okforest.segments import PixelClassifier, RandomSubwindows
from okforest.segments.pixels import _cells, _filled
from reference.segments import spread, subwindow

IMAGES, MAPS = make_textures(10, size=40, seed=0)
CUT = RandomSubwindows(80, side_range=(0.3, 0.4), size=12)


@pytest.mark.parametrize("rotate", [False, True])
def test_cells_are_subwindows_of_the_label_map(rotate):
    """The label of a cell is the label of the pixel at its centre."""
    segmenter = RandomSubwindows(30, side_range=(0.2, 0.9), rotate=rotate, mirror=rotate)
    labels = np.arange(40 * 40).reshape(40, 40)
    squares = segmenter.cut([IMAGES[0][:, :, None]], 3).places
    angles, mirrored = segmenter.turns([IMAGES[0][:, :, None]], 3)
    cells = _cells(labels, squares, angles, mirrored, 4)
    positions = np.stack(np.mgrid[:40, :40], axis=2).astype(float)
    for k, square in enumerate(squares):
        angle = angles[k] if rotate else None
        centre = subwindow(positions, square, 4, angle, mirrored[k])  # interpolated positions
        places = np.stack([cells[k] // 40, cells[k] % 40], axis=2)
        assert np.abs(places - centre).max() <= 0.5 + 1e-4


@pytest.mark.parametrize("target", ["map", "center"])
def test_votes_equal_the_oracle(target):
    """A pixel's probabilities are the means of the cells that it lies in."""
    model = PixelClassifier(CUT, OKExtraTrees(3), target=target, grid=3, random_state=0)
    model.fit(IMAGES[:4], MAPS[:4])
    P = model.predict_proba(IMAGES[4:5])[0]
    assert P.shape == (40, 40, 4)
    np.testing.assert_allclose(P.sum(axis=2), 1.0)
    segmenter = model._upright(IMAGES[4][:, :, None])
    assert (segmenter.side_range, segmenter.size) == ((0.3, 0.4), 12)
    segments = segmenter.cut([IMAGES[4][:, :, None]], model.seed_)
    n = len(segments.values)
    assert n >= 10 * 40 * 40 / 14**2
    grid = 3 if target == "map" else 1
    votes = model.estimator_.predict(segments.values).reshape(n, grid, grid, 4)
    row, col = 17, 23
    covered, values = [], []
    for (top, left, side), votes_of_square in zip(segments.places, votes, strict=True):
        inside = top <= row < top + side and left <= col < left + side
        covered.append(np.array([inside]))
        i, j = (row - top) * grid // side, (col - left) * grid // side
        values.append(votes_of_square[i, j, 0] if inside else 0.0)
    np.testing.assert_allclose(P[row, col, 0], spread((1,), covered, values)[0])


def test_textures_are_segmented():
    """Label maps are better than labels of centres here, and both than chance."""
    scores = {}
    for target in ("map", "center"):
        model = PixelClassifier(CUT, target=target, random_state=0).fit(IMAGES[:8], MAPS[:8])
        scores[target] = model.score(IMAGES[8:], MAPS[8:])
    assert scores["map"] > 0.5
    assert scores["center"] > 0.3


def test_forms(tmp_path):
    """Lists of images of different sizes, labels of text, scikit-learn's regressors, saving."""
    images = [image[: 30 + i, :35] for i, image in enumerate(IMAGES)]
    names = np.array(["h", "v", "d", "c"])
    maps = [names[labels[: 30 + i, :35]] for i, labels in enumerate(MAPS)]
    for estimator in (OKExtraTrees(3), ExtraTreesRegressor(3)):
        model = PixelClassifier(CUT, estimator, grid=4, random_state=0).fit(images[:6], maps[:6])
        predicted = model.predict(images[6:])
        assert [m.shape for m in predicted] == [m.shape for m in maps[6:]]
        assert set(np.unique(predicted[0])) <= set(names)
        assert model.score(images[6:], maps[6:]) > 0.3
        same = pickle.loads(pickle.dumps(model)).predict(images[6:7])
        np.testing.assert_array_equal(same[0], predicted[0])
    model = PixelClassifier(CUT, OKExtraTrees(3), random_state=0).fit(images[:6], maps[:6])
    okforest.save(model, tmp_path / "model")
    loaded = okforest.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(images[6:7])[0], model.predict(images[6:7])[0])


def test_turned_in_training_only():
    """Subwindows of images to label are upright, of the size that the turned ones had."""
    bright = (IMAGES // 4 + 120 * (MAPS == 3)).astype(np.uint8)
    turning = RandomSubwindows(80, side_range=(0.1, 0.3), size=8, rotate=True, mirror=True)
    model = PixelClassifier(turning, random_state=0).fit(bright[:8], MAPS[:8] == 3)
    upright = model._upright(bright[8][:, :, None])
    assert not upright.rotate
    assert not upright.mirror
    angles = np.linspace(0, 2 * np.pi, 100_001)
    shrunk = np.mean(1 / (np.abs(np.cos(angles)) + np.abs(np.sin(angles))))
    np.testing.assert_allclose(upright.side_range, [0.1 * shrunk, 0.3 * shrunk], rtol=1e-4)
    assert intersection_over_union(MAPS[8:] == 3, model.predict(bright[8:])) > 0.7


def test_pixels_without_votes():
    """A pixel that no subwindow covers takes the values of the nearest that one does."""
    means = np.full((1, 5, 1), np.nan)
    means[0, 1], means[0, 4] = 1.0, 2.0
    assert _filled(means).ravel().tolist() == [1, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (MAPS[:3], "X has 4 images and y has 3 label maps"),
        (MAPS[:4, :, :30], "image 0 has 40 × 40 pixels and its label map has shape"),
        (MAPS[:4, 0], "label map 0 has shape"),
        (np.zeros((4, 40, 40), int), "single label 0; pixels need at least 2"),
        (np.full((4, 40, 40), np.nan), "label map 0 has NaN or infinite values"),
        (None, "requires y to be passed, but the target y is None"),
    ],
)
def test_bad_maps(y, message):
    """Errors name the map and what is wrong."""
    with pytest.raises(ValueError, match=message):
        PixelClassifier(CUT).fit(IMAGES[:4], y)


def test_no_images():
    """At least one image is needed."""
    with pytest.raises(ValueError, match="X has no images; pass at least one"):
        PixelClassifier(CUT).fit([], [])


def test_label_maps_turn_with_subwindows(recorded):
    """Targets of turned and mirrored subwindows are turned and mirrored as their pixels are."""
    seen = recorded(OKExtraTrees, "fit", lambda args, _: (args["X"], np.asarray(args["y"])))
    image = np.zeros((40, 40), np.uint8)
    image[5:22, 9:31] = 255
    cut = RandomSubwindows(100, side_range=(0.3, 0.9), size=5, rotate=True, mirror=True)
    PixelClassifier(cut, grid=5, random_state=3).fit([image], [image > 0])
    ((values, targets),) = seen
    inside = targets.reshape(100, 25, 2)[:, :, 1]
    sure = (values == 0) | (values == 255)
    assert sure.mean() > 0.5
    assert np.mean(inside[sure] == values[sure] / 255) > 0.99


def test_as_many_subwindows_as_in_training():
    """Images are labelled by at least n_segments subwindows, however few votes are asked for."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (3, 12, 12)).astype(np.uint8)
    model = PixelClassifier(RandomSubwindows(70), n_votes=1, random_state=0)
    assert model.fit(images, images // 128)._upright(images[0][:, :, None]).n_segments == 70


@pytest.mark.parametrize("n_votes", [5, 40])
def test_votes_of_a_pixel(n_votes):
    """A pixel is covered by n_votes subwindows on average, whatever the size of the image."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (3, 12, 12)).astype(np.uint8)
    segmenter = RandomSubwindows(2, side_range=(0.2, 0.4))
    model = PixelClassifier(segmenter, n_votes=n_votes, random_state=0).fit(images, images // 128)
    large = rng.integers(0, 256, (40, 90, 1)).astype(np.uint8)
    sides = model._upright(large).cut([large], 0).places[:, 2]
    assert (sides.astype(float) ** 2).sum() / (40 * 90) == pytest.approx(n_votes, rel=0.2)


def test_memory_of_label_maps_is_checked(monkeypatch):
    """Label maps may take more memory than subwindows; the error names what helps."""
    monkeypatch.setattr("okforest._utils.resources.machine_memory", lambda: 2**20)
    with pytest.raises(MemoryError, match="Set a smaller grid, target='center', or fewer"):
        PixelClassifier(CUT).fit(IMAGES, MAPS)
    model = PixelClassifier(CUT, target="center", random_state=0).fit(IMAGES, MAPS)
    assert model.predict(IMAGES[:1]).shape == (1, 40, 40)
