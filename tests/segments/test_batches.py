"""Segments in batches of bounded memory, and the array of training segments."""

import numpy as np
import pytest
from PIL import Image

from okforest import OKExtraTrees, OKNeighbors
from okforest.segments import KmerWindows, RandomSubseries, RandomSubwindows, SegmentClassifier
from okforest.segments._base import some_of_each

rng = np.random.default_rng(0)
SERIES = rng.normal(size=(40, 20)).cumsum(axis=1)
LABELS = np.array(["down", "up"])[(SERIES[:, -1] > SERIES[:, 0]).astype(int)]
CUT = RandomSubseries(6, n_points=5)


def test_batches_are_bounded(monkeypatch, recorded):
    """No more than a batch of segments is ever made at once, in fit and in predict."""
    monkeypatch.setattr("okforest.segments._batches.BATCH_BYTES", 2000)
    sizes = recorded(RandomSubseries, "cut", lambda _, cut: cut.values.nbytes)
    model = SegmentClassifier(CUT, random_state=0).fit(SERIES, LABELS)
    model.predict(SERIES)
    assert max(sizes) <= 2000
    assert np.median(sizes) > 1000  # and batches are not much smaller than they may be


def test_batches_of_unequal_objects_are_bounded(monkeypatch, recorded):
    """A short object does not let long ones into its batch: sizes are those of the objects."""
    monkeypatch.setattr("okforest.segments._batches.BATCH_BYTES", 20_000)
    sizes = recorded(KmerWindows, "cut", lambda _, cut: cut.values.nbytes)
    sequences = ["abb", *("ab" * 100, "aab" * 70) * 10]
    model = SegmentClassifier(KmerWindows(3, position=False), OKExtraTrees(2), random_state=0)
    model.fit(sequences, np.arange(21) % 2).predict(sequences)
    assert max(sizes) <= 20_000
    assert len(sizes) == 6  # the first object alone, 16 objects and 4, twice


def test_files_of_a_batch_are_bounded(monkeypatch, recorded, tmp_path):
    """Few files are in memory at a time, even if their segments are small."""
    monkeypatch.setattr("okforest.segments._batches.BATCH_BYTES", 50_000)
    held = recorded(
        RandomSubwindows, "cut", lambda given, _: sum(i.nbytes for i in given["objects"])
    )
    paths = [tmp_path / f"{i}.png" for i in range(20)]
    for path in paths:
        Image.fromarray(rng.integers(0, 256, (100, 100)).astype(np.uint8)).save(path)
    model = SegmentClassifier(RandomSubwindows(2, size=4), OKExtraTrees(2), random_state=0)
    model.fit(paths, np.arange(20) % 2).predict_proba(paths)
    assert max(held) == 40_000


def test_deep_files_beside_bytes(recorded, tmp_path):
    """Files of 8 and 16 bits in one list: no pixel wraps around, whichever file is first."""
    seen = recorded(OKExtraTrees, "fit", lambda given, _: np.asarray(given["X"]))
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
    seen = recorded(OKExtraTrees, "fit", lambda given, _: given["X"].dtype)
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
