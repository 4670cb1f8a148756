"""Evidence: the support of segments, their map, and plots."""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pytest

from okforest import OKExtraTrees
from okforest.datasets import make_textures
from okforest.segments import (
    KmerWindows,
    Neighborhoods,
    PixelClassifier,
    RandomSubseries,
    RandomSubwindows,
    SegmentClassifier,
    SegmentModel,
)

rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def images():
    """Return noise, with a bright square at the upper left in half of the images."""
    pixels, labels = rng.integers(0, 100, (40, 20, 24)).astype(np.uint8), np.arange(40) % 2
    pixels[labels == 1, 2:8, 3:9] += 150
    return pixels, labels


def test_classes_of_images():
    """Support is the probability of the class; the map is highest where the square is."""
    pixels, labels = images()
    segmenter = RandomSubwindows(200, side_range=(0.2, 0.4))
    model = SegmentClassifier(segmenter, random_state=0).fit(pixels[:30], labels[:30])
    evidence = model.evidence(pixels[31])
    assert evidence.output == 1
    np.testing.assert_allclose(evidence.total, model.predict_proba(pixels[31:32])[0, 1])
    assert evidence.map.shape == (20, 24)
    assert np.nanmean(evidence.map[2:8, 3:9]) > np.nanmean(evidence.map[12:, 12:]) + 0.1
    row, col, side = evidence.places[evidence.top(1)[0]]
    assert row <= 8 and col <= 9 and row + side >= 2  # noqa: PT018
    other = model.evidence(pixels[31], 0)
    np.testing.assert_allclose(evidence.support + other.support, 1.0)
    assert "200 segments for" in repr(evidence)
    ax = evidence.plot()
    assert len(ax.images) == 2
    assert "evidence for 1" in ax.get_title()


def test_any_kernel():
    """Support is the inner product of predictions and the output in feature space."""
    series = rng.normal(size=(20, 15))
    segmenter = RandomSubseries(8)
    model = SegmentModel(segmenter, OKExtraTrees(4, kernel="rbf"), random_state=0)
    model.fit(series, series[:, :3])
    evidence = model.evidence(series[0], series[0, :3])
    W = model.predict_weights(series[:1]).toarray()
    expected = W @ model.kernel_(model.outputs_, series[:1, :3])
    np.testing.assert_allclose(evidence.total, expected[0, 0])


@pytest.mark.parametrize(
    ("segmenter", "objects", "size"),
    [
        (RandomSubseries(9), [rng.normal(size=20) for _ in range(6)], (20,)),
        (KmerWindows(3), ["".join(rng.choice(list("ab"), 70)) for _ in range(6)], (70,)),
        (Neighborhoods(5), [nx.path_graph(9) for _ in range(6)], (9,)),
    ],
    ids=["series", "sequences", "graphs"],
)
def test_plots(segmenter, objects, size):
    """Series, sequences and graphs have maps and plots."""
    model = SegmentClassifier(segmenter, random_state=0).fit(objects, [0, 1] * 3)
    evidence = model.evidence(objects[0])
    assert evidence.map.shape == size
    ax = evidence.plot(plt.subplots()[1])
    assert ax.images or ax.collections


def test_plot_of_labels():
    """Labels of pixels are drawn over the image."""
    pixels, maps = make_textures(3, size=24, seed=0)
    model = PixelClassifier(RandomSubwindows(20), random_state=0).fit(pixels, maps)
    assert len(model.plot(pixels[0]).images) == 2
    assert len(model.plot(pixels[0], maps[0], plt.subplots()[1]).images) == 2
