"""Segments in batches of bounded memory, and the array of training segments."""

import tracemalloc
import warnings

import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone

from okforest import OKExtraTrees, OKNeighbors
from okforest.datasets import make_textures
from okforest.segments import (
    KmerWindows,
    PixelClassifier,
    RandomSubseries,
    RandomSubwindows,
    SegmentAnnotator,
    SegmentClassifier,
    SegmentRegressor,
)
from okforest.segments.base import some_of_each

rng = np.random.default_rng(0)
SERIES = rng.normal(size=(40, 20)).cumsum(axis=1)
LABELS = np.array(["down", "up"])[(SERIES[:, -1] > SERIES[:, 0]).astype(int)]
CUT = RandomSubseries(6, n_points=5)

TEXTURES, MAPS = make_textures(24, size=20, seed=0)
WINDOWS = RandomSubwindows(30, side_range=(0.3, 0.5), size=6)
SMALL = OKExtraTrees(2, min_samples_leaf=5)
MODELS = {
    "classifier": (SegmentClassifier(WINDOWS, SMALL), np.arange(24) % 2),
    "regressor": (SegmentRegressor(WINDOWS, SMALL), TEXTURES.mean(axis=(1, 2))),
    "annotator": (SegmentAnnotator(WINDOWS, SMALL), [set(m.ravel().tolist()) for m in MAPS]),
    "pixels": (PixelClassifier(WINDOWS, SMALL, grid=4), MAPS),
}


@pytest.fixture(params=MODELS)
def fitted(request):
    """Return a function that fits one of the models to images, and one that predicts."""
    prototype, y = MODELS[request.param]

    def fit(n=24, **params):
        model = clone(prototype).set_params(random_state=0, **params)
        model.fit(TEXTURES[:n], y[:n])
        return getattr(model, "predict_proba", model.predict)(TEXTURES)

    return fit


def test_batches_are_bounded(monkeypatch, recorded):
    """No more than a batch of segments is ever made at once, in fit and in predict."""
    monkeypatch.setattr("okforest.segments.model.BATCH_BYTES", 2000)
    sizes = recorded(RandomSubseries, "cut", lambda _, cut: cut.values.nbytes)
    model = SegmentClassifier(CUT, random_state=0).fit(SERIES, LABELS)
    model.predict(SERIES)
    assert max(sizes) <= 2000
    assert np.median(sizes) > 1000  # batches are not much smaller than the limit


def test_batches_of_unequal_objects_are_bounded(monkeypatch, recorded):
    """A short object does not let long ones into its batch: every object counts by its size."""
    monkeypatch.setattr("okforest.segments.model.BATCH_BYTES", 20_000)
    sizes = recorded(KmerWindows, "cut", lambda _, cut: cut.values.nbytes)
    sequences = ["abb", *("ab" * 100, "aab" * 70) * 10]
    model = SegmentClassifier(KmerWindows(3, position=False), OKExtraTrees(2), random_state=0)
    model.fit(sequences, np.arange(21) % 2).predict(sequences)
    assert max(sizes) <= 20_000
    assert len(sizes) == 6  # the first object alone, 16 objects and 4, twice


def test_files_of_a_batch_are_bounded(monkeypatch, recorded, tmp_path):
    """Few files are in memory at a time, even if their segments are small."""
    monkeypatch.setattr("okforest.segments.model.BATCH_BYTES", 50_000)
    held = recorded(RandomSubwindows, "cut", lambda args, _: sum(i.nbytes for i in args["objects"]))
    paths = [tmp_path / f"{i}.png" for i in range(20)]
    for path in paths:
        Image.fromarray(rng.integers(0, 256, (100, 100)).astype(np.uint8)).save(path)
    model = SegmentClassifier(RandomSubwindows(2, size=4), OKExtraTrees(2), random_state=0)
    model.fit(paths, np.arange(20) % 2).predict_proba(paths)
    assert max(held) == 40_000


def test_deep_files_beside_bytes(recorded, tmp_path):
    """Files of 8 and 16 bits in one list: no pixel wraps around, whichever file is first."""
    seen = recorded(OKExtraTrees, "fit", lambda args, _: np.asarray(args["X"]))
    paths = [tmp_path / f"{i}.png" for i in range(6)]
    for i, path in enumerate(paths):
        pixels = rng.integers(0, 256, (8, 8))
        pixels = (200 * pixels).astype(np.uint16) if i % 2 else pixels.astype(np.uint8)
        Image.fromarray(pixels).save(path)
    for order in (slice(None), slice(None, None, -1)):
        segmenter = RandomSubwindows(10)
        SegmentClassifier(segmenter, random_state=0).fit(paths[order], [0, 1, 0, 1, 0, 1])
    first, reverse = seen
    assert first.max() > 10_000
    blocks = reverse.reshape(6, 10, -1)[::-1]
    np.testing.assert_array_equal(first.reshape(6, 10, -1), blocks)


@pytest.mark.parametrize("most", [None, 60])
def test_bytes_stay_bytes(recorded, most):
    """Subwindows of uint8 images reach the estimator as uint8, a byte a value."""
    seen = recorded(OKExtraTrees, "fit", lambda args, _: args["X"].dtype)
    images = rng.integers(0, 256, (10, 8, 8)).astype(np.uint8)
    model = SegmentClassifier(RandomSubwindows(20), max_segments=most, random_state=0)
    model.fit(images, np.arange(10) % 2)
    assert seen == [np.uint8]


def test_some_segments_are_spread_evenly():
    """max_segments takes windows from all of a sequence, not from its beginning."""
    owner = np.repeat([0, 1, 2], [10, 1, 4])
    assert some_of_each(owner, 4).tolist() == [0, 3, 6, 9, 10, 11, 12, 13, 14]
    sequences = ["aaabbbbbbb", "aaaccccccc"]  # the first two windows are the same
    model = SegmentClassifier(KmerWindows(2), OKNeighbors(1), max_segments=4).fit(sequences, [0, 1])
    assert model.predict(sequences).tolist() == [0, 1]


def test_fit_is_bounded_by_default(fitted, monkeypatch, recorded):
    """The estimator of any model gets no more segments than the default bound, with a warning."""
    monkeypatch.setattr("okforest.segments.model.AUTO_SEGMENTS", 100)
    sizes = recorded(OKExtraTrees, "fit", lambda args, _: len(args["X"]))
    for n in (12, 24):
        with pytest.warns(UserWarning, match=r"Set max_segments=100 to .*, or max_segments=None"):
            fitted(n)
        assert sizes[-1] == 96  # 8 of 12 images, 4 of 24
    assert max(sizes) <= 100  # this holds in the folds of the annotator, too


def test_a_bound_of_the_user_causes_no_warning(fitted, recorded):
    """The number is kept, and the same seed gives the same model."""
    sizes = recorded(OKExtraTrees, "fit", lambda args, _: len(args["X"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, again = fitted(max_segments=100), fitted(max_segments=100)
    assert sizes[-1] == 96
    np.testing.assert_array_equal(again, first)
    assert not np.array_equal(fitted(max_segments=None), first)


def test_a_bound_that_is_not_reached_changes_nothing(fitted, monkeypatch):
    """With as many segments as the bound, a model is that without a bound."""
    expected = fitted(max_segments=None)
    monkeypatch.setattr("okforest.segments.model.AUTO_SEGMENTS", 24 * 30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(fitted(), expected)
        np.testing.assert_array_equal(fitted(max_segments=24 * 30), expected)


def test_more_objects_than_the_default_bound(fitted, monkeypatch, recorded):
    """The default bound never refuses objects: there is one segment of each."""
    monkeypatch.setattr("okforest.segments.model.AUTO_SEGMENTS", 5)
    sizes = recorded(OKExtraTrees, "fit", lambda args, _: len(args["X"]))
    with pytest.warns(UserWarning, match="fitted to at most 1 of each"):
        fitted()
    assert sizes[-1] == 24


def test_too_low_a_bound_is_refused(fitted):
    """Every object needs a segment, in every model."""
    with pytest.raises(ValueError, match="max_segments=23 is less than the number of objects, 24"):
        fitted(max_segments=23)


def peak_memory(function):
    """Return the largest number of bytes that a call holds at a time."""
    tracemalloc.start()
    function()
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return held


def test_labels_are_predicted_image_by_image():
    """The probabilities of pixels of all images are never held."""
    model = PixelClassifier(WINDOWS, SMALL, grid=4, random_state=0).fit(TEXTURES, MAPS)
    images = np.concatenate([TEXTURES] * 10)
    P = model.predict_proba(images)
    assert peak_memory(lambda: model.predict(images)) < P.nbytes
    np.testing.assert_array_equal(model.predict(images), P.argmax(axis=3))


@pytest.mark.parametrize("name", ["classifier", "pixels"])
def test_peak_memory_is_bounded(name, monkeypatch):
    """Eight times as many subwindows take less than twice the memory, and much less than all."""
    monkeypatch.setattr("okforest.segments.model.BATCH_BYTES", 50_000)
    prototype, y = MODELS[name]
    model = clone(prototype).set_params(random_state=0)

    def peak(n_segments, most):
        model.set_params(segmenter__n_segments=n_segments, max_segments=most)
        return peak_memory(lambda: model.fit(TEXTURES, y))

    few, many, everything = peak(400, 1200), peak(3200, 1200), peak(3200, None)
    assert many < 2 * few
    assert many < everything / 4


def test_label_maps_belong_to_the_chosen_subwindows(recorded):
    """Bounded or not, a subwindow and its label map stay together."""
    seen = recorded(OKExtraTrees, "fit", lambda args, _: (args["X"], np.asarray(args["y"])))
    turning = RandomSubwindows(30, size=6, rotate=True, mirror=True)
    for most in (None, 100):
        PixelClassifier(turning, max_segments=most, random_state=0).fit(TEXTURES, MAPS)
    (S, targets), (segments, labels) = seen
    rows = some_of_each(np.repeat(np.arange(24), 30), 4)
    np.testing.assert_array_equal(segments, S[rows])
    np.testing.assert_array_equal(labels, targets[rows])
