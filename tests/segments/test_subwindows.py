"""Subwindows of images: their places, their pixels, and the way back to pixels."""

import colorsys
import warnings
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.ndimage import zoom

from okforest.engine import cut_subwindows, draw_squares
from okforest.segments import PixelClassifier, RandomSubwindows, SegmentClassifier
from okforest.segments.base import content_seed, uniforms
from okforest.segments.subwindows import spread_maps
from reference.segments import spread, subwindow, uniform

NONE = np.empty(0, np.float32), np.empty(0, bool)


def images(dtype=np.uint8, channels=1, n=3, seed=0):
    rng = np.random.default_rng(seed)
    shapes = [(rng.integers(2, 20), rng.integers(2, 20), channels) for _ in range(n)]
    return [(256 * rng.random(shape)).astype(dtype) for shape in shapes]


@given(st.integers(0, 1000), st.sampled_from([1, 2, 3]), st.sampled_from([1, 4, 7, 16]))
def test_bytes_equal_the_oracle(seed, channels, size):
    """Bytes are interpolated between the centres of pixels and rounded."""
    pixels = images(channels=channels, seed=seed)
    segmenter = RandomSubwindows(4, size=size, side_range=(0.01, 1.0))
    segments = segmenter.cut(pixels, seed)
    for k, i in enumerate(segments.owner):
        exact = subwindow(pixels[i], segments.places[k], size).ravel()
        error = np.abs(segments.values[k] - exact)
        assert error.max() <= 0.5 + 1e-4
        if size in (1, 4, 16):  # no weight is rounded
            np.testing.assert_array_equal(segments.values[k], np.floor(exact + 0.5))


@given(st.integers(0, 1000), st.booleans(), st.sampled_from([1, 3]))
def test_turned_and_mirrored_floats_equal_the_oracle(seed, mirror, channels):
    """A turned subwindow is the largest square at that angle within its square."""
    pixels = images(np.float32, channels, seed=seed)
    segmenter = RandomSubwindows(4, size=5, side_range=(0.3, 1.0), rotate=True, mirror=mirror)
    segments = segmenter.cut(pixels, seed)
    seeds = np.array([content_seed(seed, [image]) for image in pixels], np.uint64)
    turns = uniforms(~seeds, 4, 2).reshape(-1, 2)
    for k, i in enumerate(segments.owner):
        angle, mirrored = 2 * np.pi * turns[k, 0], mirror and turns[k, 1] < 0.5
        exact = subwindow(pixels[i], segments.places[k], 5, angle, mirrored)
        np.testing.assert_allclose(segments.values[k], exact.ravel(), atol=0.02)


@given(st.integers(0, 1000), st.sampled_from([1, 3]), st.sampled_from([3, 7, 16]), st.booleans())
def test_bytes_are_rounded_floats(seed, channels, size, turned):
    """Bytes are the nearest ones to the values of the same pixels as floats; halves go up."""
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 256, (12, 15, channels), dtype=np.uint8)
    image[:6] = rng.choice([0, 1, 254, 255], (6, 15, channels))
    squares = np.array([[0, 0, 12], [3, 2, 7], [1, 4, 2], [0, 1, 1]], np.int32)
    of_image, mirrored = np.zeros(4, np.int32), rng.random(4) < 0.5
    angles = rng.uniform(0, 7, 4).astype(np.float32) if turned else NONE[0]
    as_bytes = cut_subwindows([image], of_image, squares, angles, mirrored, size)
    floats = cut_subwindows([image.astype(np.float32)], of_image, squares, angles, mirrored, size)
    np.testing.assert_array_equal(as_bytes, np.floor(floats + np.float32(0.5)))


def test_known_subwindows():
    """A window of its own size is a copy; a mirrored one is reversed; halving averages pairs."""
    image = np.arange(64, dtype=np.uint8).reshape(8, 8, 1)
    square, first = np.array([[0, 0, 8]], np.int32), np.zeros(1, np.int32)
    same = cut_subwindows([image], first, square, *NONE, 8)
    np.testing.assert_array_equal(same[0], image.ravel())
    turned = cut_subwindows([image], first, square, NONE[0], np.array([True]), 8)
    np.testing.assert_array_equal(turned[0], image[:, ::-1].ravel())
    quarter = cut_subwindows([image], first, square, np.full(1, np.pi / 2, "f4"), NONE[1], 8)
    np.testing.assert_array_equal(quarter[0], np.rot90(image[:, :, 0]).ravel())
    half = cut_subwindows([image.astype(np.float32)], first, square, *NONE, 4)
    np.testing.assert_array_equal(half[0], image.reshape(4, 2, 4, 2).mean((1, 3)).ravel())


def test_equals_scipy():
    """SciPy's linear zoom on a grid of pixels gives the same values."""
    image = np.random.default_rng(0).random((9, 9, 1)).astype(np.float32)
    square, first = np.array([[0, 0, 9]], np.int32), np.zeros(1, np.int32)
    ours = cut_subwindows([image], first, square, *NONE, 16)[0].reshape(16, 16)
    theirs = zoom(image[:, :, 0], 16 / 9, order=1, grid_mode=True, mode="nearest")
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


@given(st.integers(0, 2**64 - 1))
def test_random_numbers_equal_the_oracle(seed):
    """The numbers of an object come from the core's generator."""
    drawn = uniforms(np.array([seed], np.uint64), 3, 2).ravel()
    assert drawn.tolist() == [uniform(seed, k) for k in range(6)]


def test_segments_depend_on_the_object_alone():
    """Order, batch and threads do not change the subwindows of an image; the seed does."""
    pixels = images(n=6)
    segmenter = RandomSubwindows(300, rotate=True, mirror=True)
    all_at_once = segmenter.cut(pixels, 5)
    for i, image in enumerate(pixels):
        alone = segmenter.cut([image], 5, n_threads=3)
        rows = slice(300 * i, 300 * (i + 1))
        np.testing.assert_array_equal(alone.values, all_at_once.values[rows])
        np.testing.assert_array_equal(alone.places, all_at_once.places[rows])
    assert not np.array_equal(segmenter.cut(pixels, 6).places, all_at_once.places)
    fewer = RandomSubwindows(10).cut(pixels[:1], 5)
    np.testing.assert_array_equal(fewer.places, all_at_once.places[:10])


@given(st.integers(0, 1000), st.floats(0.05, 1.0), st.floats(0.05, 1.0))
def test_squares_are_within_range_and_image(seed, low, high):
    """Sides are within the range, rounded inwards if there is such a pixel; squares fit."""
    low, high = sorted((low, high))
    pixels = images(seed=seed)
    segments = RandomSubwindows(50, side_range=(low, high)).cut(pixels, seed)
    for k, i in enumerate(segments.owner):
        (row, col, side), (height, width, _) = segments.places[k], pixels[i].shape
        smaller = min(height, width)
        assert 0 <= row <= height - side
        assert 0 <= col <= width - side
        assert side >= min(smaller, np.ceil(low * smaller - 1e-6))
        assert side <= max(np.floor(high * smaller + 1e-6), np.ceil(low * smaller - 1e-6), 1)


@given(seed=st.integers(0, 2**64 - 1), height=st.integers(2, 50), width=st.integers(2, 50))
def test_squares_are_those_of_the_formula(seed, height, width):
    """Side, row and column are the integer parts of uniform numbers times their ranges."""
    segmenter = RandomSubwindows(5, side_range=(0.3, 0.9))
    image = np.zeros((height, width, 1), np.uint8)
    squares = segmenter._squares([image, image], np.array([7, seed], np.uint64))[5:]
    smaller = min(height, width)
    least = max(1, ceil(0.3 * smaller - 1e-9))
    n_sides = max(least, floor(0.9 * smaller + 1e-9)) - least + 1
    for k, (row, col, side) in enumerate(squares.tolist()):
        u = [uniform(seed, 3 * k + draw) for draw in range(3)]
        assert side == least + int(u[0] * n_sides)
        assert row == int(u[1] * (height - side + 1))
        assert col == int(u[2] * (width - side + 1))


def test_squares_out_of_range():
    """The core refuses ranges that do not fit an image."""
    seeds = np.zeros(1, np.uint64)
    for places in ([0, 1, 9, 9], [1, 0, 9, 9], [5, 5, 9, 12], [1, 1, 9, 2**31]):
        with pytest.raises(ValueError, match="an image has no such squares"):
            draw_squares(seeds, np.array([places]), 3)
    with pytest.raises(ValueError, match="four numbers for each seed"):
        draw_squares(seeds, np.ones((2, 4), np.int64), 3)


def test_squares_are_uniform():
    """Sides and positions are equally likely."""
    image = np.zeros((6, 7, 1), np.uint8)
    places = RandomSubwindows(40_000, side_range=(0.5, 0.7)).cut([image]).places
    sides, counts = np.unique(places[:, 2], return_counts=True)
    assert sides.tolist() == [3, 4]
    assert abs(counts / 40_000 - 0.5).max() < 0.02
    _, counts = np.unique(places[places[:, 2] == 3, :2], axis=0, return_counts=True)
    assert len(counts) == 4 * 5
    assert abs(counts / counts.sum() - 1 / 20).max() < 0.01


@given(st.integers(0, 1000), st.sampled_from([1, 2, 5]))
def test_spreading_equals_the_oracle(seed, grid):
    """A pixel gets the mean of the cells that it lies in, NaN outside all squares."""
    rng = np.random.default_rng(seed)
    squares = RandomSubwindows(6, side_range=(0.2, 0.8)).cut([np.zeros((9, 12, 1), "u1")]).places
    maps = rng.random((6, grid, grid, 2))
    means = spread_maps((9, 12), squares, maps)
    for v in range(2):
        covered, values = [], []
        for (row, col, side), label_map in zip(squares, maps, strict=True):
            for i in range(side):
                for j in range(side):
                    covered.append(np.zeros((9, 12), bool))
                    covered[-1][row + i, col + j] = True
                    values.append(label_map[i * grid // side, j * grid // side, v])
        np.testing.assert_allclose(means[:, :, v], spread((9, 12), covered, values))


def test_colors_equal_the_standard_library():
    """HSV agrees with colorsys, grey levels are the luma, and grey images become RGB."""
    import colorsys

    rgb = np.random.default_rng(0).integers(0, 256, (5, 5, 3)).astype(np.uint8)
    whole = {"side_range": (1.0, 1.0), "size": 5}
    hsv = RandomSubwindows(1, color="hsv", **whole).cut([rgb]).values.reshape(-1, 3)
    for ours, pixel in zip(hsv, rgb.reshape(-1, 3) / 255, strict=True):
        np.testing.assert_allclose(ours, 255 * np.array(colorsys.rgb_to_hsv(*pixel)), atol=0.51)
    grey = RandomSubwindows(1, color="grey", **whole).cut([rgb]).values
    np.testing.assert_allclose(grey[0], (rgb @ [0.299, 0.587, 0.114]).ravel(), atol=0.51)
    three = RandomSubwindows(1, color="rgb", **whole).cut([rgb[:, :, :1]]).values
    np.testing.assert_array_equal(three[0], np.repeat(rgb[:, :, 0].ravel(), 3))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((2, 5)), "Set image_shape="),
        (np.zeros((2, 1, 5)), "smaller than any window"),
        ([np.zeros((5, 5)), np.zeros((0, 5))], "image 1 has 0 × 5 pixels"),
        ([np.zeros((5, 5)), np.full((5, 5), np.nan)], "image 1 has NaN or infinite pixels"),
        ([np.full((5, 5), 1e300)], "beyond the range of float32"),
        ([np.zeros((5, 5)), np.zeros((5, 5, 3))], "image 1 has 3 channels and others have 1"),
        ([np.zeros((3, 40, 40))], "has 40 channels"),
        ([np.zeros((5, 5), complex)], "image 0 has type complex128"),
        ([np.zeros(5)], r"image 0 has shape \(5,\)"),
        (["a.png", np.zeros((5, 5))], "mixes files and arrays: 'a.png' is a path"),
        (np.array([np.zeros((5, 5)), np.full((5, 5), np.inf)]), "image 1 has NaN or infinite"),
        (None, "X is of type NoneType; expected a list of images"),
        ("folder", "X is a single path"),
        (["no such file.png"], "do not exist"),
    ],
)
def test_bad_images(X, message):
    """Errors name the image, what is wrong and what to do."""
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        RandomSubwindows().check(X)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"n_segments": 0},
            r"'n_segments' parameter of RandomSubwindows .* in the range \[1, inf\)",
        ),
        ({"size": 2.5}, "'size' parameter .* Got 2.5"),
        ({"side_range": (0.5, 0.2)}, "0 < low <= high <= 1"),
        ({"side_range": 0.5}, "expected two numbers"),
        ({"color": "cmyk"}, r"'color' parameter of RandomSubwindows must be a str among .*'cmyk'"),
        ({"image_shape": 5}, "image_shape=5"),
    ],
)
def test_bad_parameters(params, message):
    """Errors name the parameter, its value and what is expected."""
    with pytest.raises(ValueError, match=message):
        RandomSubwindows(**params).check(np.zeros((2, 5, 5)))


def test_bad_rows():
    """Rows that are not images of the given shape."""
    with pytest.raises(ValueError, match=r"12 features, which are not images of shape \(2, 2, 4\)"):
        RandomSubwindows(image_shape=(2, 2, 4)).check(np.zeros((3, 12)))
    with pytest.raises(ValueError, match=r"5 features, which are not images of shape \(2, 2\)"):
        RandomSubwindows(image_shape=(2, 2)).check([np.zeros(5)])


BYTES = np.random.default_rng(0).integers(1, 256, (12, 8, 8)).astype(np.uint8)
LABELS = np.arange(12) % 2


@pytest.mark.parametrize("X", [BYTES, BYTES.astype(float)], ids=["uint8", "float"])
def test_other_scale_of_pixels(X):
    """Images from 0 to 1 for a model of 0 to 255, and the reverse, cause a warning."""
    model = SegmentClassifier(RandomSubwindows(5), random_state=0).fit(X, LABELS)
    with pytest.warns(UserWarning, match="up to 1, and pixels of the training images up to 255"):
        model.predict(BYTES / 255)
    with pytest.warns(UserWarning, match="Multiply these images by what they were divided by"):
        model.evidence(BYTES[0] / 255)
    model.predict(BYTES)
    for dark in (BYTES[0] // 128, np.zeros((8, 8))):  # dark images are no sign of another scale
        model.predict([dark])
    model.fit(X / 255, LABELS).predict([BYTES[0] / 250])
    with pytest.warns(UserWarning, match="Divide these images by what the training images"):
        model.predict(X)


def test_scale_of_pixels_in_label_maps():
    """Segmentation warns too."""
    model = PixelClassifier(RandomSubwindows(5), random_state=0).fit(BYTES, BYTES // 128)
    with pytest.warns(UserWarning, match="pixels of the training images up to 255"):
        model.predict(BYTES[:2] / 255)


def test_mixed_scales_of_pixels():
    """Bytes beside floats from 0 to 1 in one list cause a warning."""
    with pytest.warns(UserWarning, match="predictions need images on the same scale"):
        RandomSubwindows().check([BYTES[0], BYTES[1] / 255])
    RandomSubwindows().check([BYTES[0], BYTES[1].astype(float)])


def test_hostile_arrays_are_refused():
    """The core checks that squares are within images and arrays have the same length."""
    image = np.zeros((5, 5, 1), np.uint8)
    first = np.zeros(1, np.int32)
    for square in ([0, 0, 6], [-1, 0, 2], [0, 4, 2], [0, 0, 0], [2**31 - 1, 0, 1]):
        with pytest.raises(ValueError, match="not within its image"):
            cut_subwindows([image], first, np.array([square], np.int32), *NONE, 4)
        with pytest.raises(ValueError, match="not within its image"):
            spread_maps((5, 5), np.array([square], np.int32), np.zeros((1, 1, 1, 1)))
    valid = np.array([[0, 0, 5]], np.int32)
    with pytest.raises(ValueError, match="belongs to no image"):
        cut_subwindows([image], first + 1, valid, *NONE, 4)
    with pytest.raises(ValueError, match="inconsistent"):
        cut_subwindows([image], np.zeros(2, np.int32), valid, *NONE, 4)
    with pytest.raises(ValueError, match="different numbers of channels"):
        cut_subwindows([image, np.zeros((5, 5, 3), np.uint8)], first, valid, *NONE, 4)


def test_hsv_of_floats():
    """Floats from 0 to 1 become hue, saturation and value from 0 to 1; others are refused."""
    rgb = np.random.default_rng(0).random((5, 5, 3)).astype(np.float32)
    cut = RandomSubwindows(1, color="hsv", side_range=(1.0, 1.0), size=5)
    expected = [colorsys.rgb_to_hsv(*map(float, pixel)) for pixel in rgb.reshape(-1, 3)]
    np.testing.assert_allclose(cut.cut([rgb]).values.reshape(-1, 3), expected, atol=1e-5)
    for other in (200 * rgb, rgb - 1):
        with pytest.raises(ValueError, match="color='hsv' needs uint8 images, or floats from 0"):
            cut.cut([other])


def test_dark_first_image():
    """The scale of the pixels is learnt from all training images, not from a black first one."""
    images = BYTES[:4].astype(float)
    images[0] = 0.0
    model = SegmentClassifier(RandomSubwindows(3), random_state=0).fit(images, [0, 1, 0, 1])
    assert model.segmenter_.largest_ == images.max()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(images[1:])


def test_subwindows_depend_on_pixels_alone():
    """Images of bytes have the same subwindows beside floats; types do not change squares."""
    segmenter = RandomSubwindows(6, rotate=True, mirror=True)
    bytes_, floats = BYTES[0][:, :, None], (BYTES[1] / 2).astype(np.float32)[:, :, None]
    alone = segmenter.cut(segmenter.check([bytes_]))
    beside = segmenter.cut(segmenter.check([floats, bytes_]))
    np.testing.assert_array_equal(beside.values[6:], alone.values)
    np.testing.assert_array_equal(beside.places[6:], alone.places)
    np.testing.assert_array_equal(beside.values[:6], segmenter.cut([floats]).values)
    for dtype in (int, float, np.float32):
        other = segmenter.cut(segmenter.check([bytes_.astype(dtype)]))
        np.testing.assert_array_equal(other.places, alone.places)
        assert np.abs(other.values - alone.values.astype(float)).max() <= 0.5


def test_standardised_images_are_on_no_scale(recwarn):
    """No warning about the scale of standardised images, in fit or for a dull image."""
    images = np.random.default_rng(0).normal(size=(12, 8, 8))
    images[0] = np.clip(images[0], -3, 0.9)
    model = SegmentClassifier(RandomSubwindows(5), random_state=0).fit(images, LABELS)
    model.predict(images)
    model.predict(images[:1])
    assert [str(warning.message) for warning in recwarn] == []


@pytest.mark.parametrize("rotate", [1e308, float("nan"), float("inf")])
def test_angles_out_of_range(rotate):
    """Such a rotation is refused; cutting with it stays within the image."""
    images = np.zeros((1, 20, 20), np.uint8)
    segmenter = RandomSubwindows(50, rotate=rotate)
    with pytest.raises(
        ValueError, match="'rotate' parameter of RandomSubwindows must be an instance of 'bool'"
    ):
        segmenter.check(images)
    with np.errstate(all="ignore"):
        assert not segmenter.cut([images[0][:, :, None]]).values.any()
