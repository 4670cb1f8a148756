"""Evidence: the support of segments, their map, and plots."""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression

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
    SegmentRegressor,
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


SERIES = rng.normal(size=(20, 15)).cumsum(axis=1)


@pytest.mark.parametrize("estimator", [None, LinearRegression()], ids=["trees", "linear"])
@pytest.mark.parametrize("combine", ["mean", "confidence"])
def test_numbers(estimator, combine):
    """Support is what each segment predicts, and its mean is the prediction."""
    model = SegmentRegressor(RandomSubseries(8), estimator, combine=combine, random_state=0)
    model.fit(SERIES, SERIES[:, 0])
    evidence = model.evidence(SERIES[3])
    np.testing.assert_allclose(evidence.total, model.predict(SERIES[3:4])[0])
    assert evidence.output == evidence.total
    segments = model.segmenter_.cut(model.segmenter_.check(SERIES[3:4]), model.seed_)
    if estimator is not None:
        inner = model.learner_.estimator_.predict(segments.values)
        np.testing.assert_allclose(evidence.support, inner, rtol=1e-6)
    assert evidence.plot().get_title() == f"prediction: {evidence.total:.3g}"
    with pytest.raises(ValueError, match=r"output=3.0, and this SegmentRegressor predicts a sing"):
        model.evidence(SERIES[3], 3.0)


def test_vectors():
    """One number of a vector is explained, at a position that must be passed."""
    model = SegmentRegressor(RandomSubseries(8), random_state=0).fit(SERIES, SERIES[:, :3])
    for k in range(3):
        evidence = model.evidence(SERIES[3], k)
        np.testing.assert_allclose(evidence.total, model.predict(SERIES[3:4])[0, k])
        assert f"prediction of output {k}" in evidence.plot().get_title()
    for bad in (None, 3, -1, 1.5, "x"):
        message = f"output={bad!r}; expected an integer from 0 to 2: .* predicts 3 numbers"
        with pytest.raises(ValueError, match=message):
            model.evidence(SERIES[3], bad)


@pytest.mark.parametrize("estimator", [None, RandomForestClassifier(3, random_state=0)])
def test_unknown_classes(estimator):
    """A class that no training object has is refused, whatever its type."""
    labels = np.array(["a", "b"])[np.arange(20) % 2]
    model = SegmentClassifier(RandomSubseries(8), estimator, random_state=0).fit(SERIES, labels)
    for bad in ("c", 0):
        with pytest.raises(ValueError, match=r"is not a class of the training objects.*'a', 'b'"):
            model.evidence(SERIES[0], output=bad)
    with pytest.raises(ValueError, match="is not one output of this model"):
        model.evidence(SERIES[0], output=["a", "b"])
    assert model.evidence(SERIES[0], output="b").output == "b"


def test_unfit_outputs():
    """Outputs of another shape or type are refused; unseen ones of the right shape are not."""
    forest = OKExtraTrees(4, kernel="rbf")
    model = SegmentModel(RandomSubseries(8), forest, random_state=0).fit(SERIES, SERIES[:, :3])
    model.evidence(SERIES[0], [9.0, 9.0, 9.0])
    with pytest.raises(
        ValueError, match=r"shape \(2,\) and the training outputs have shape \(3,\)"
    ):
        model.evidence(SERIES[0], [1.0, 2.0])
    with pytest.raises(ValueError, match="output='x' is not one output of this model: y holds"):
        model.evidence(SERIES[0], "x")


def test_label_sets_in_a_frame():
    """Without classes: the predicted label set is explained, also if y was a frame."""
    sets = pd.DataFrame(rng.integers(0, 2, (20, 3)), columns=["sea", "sand", "snow"])
    forest = OKExtraTrees(4, kernel="hamming")
    model = SegmentModel(RandomSubseries(8), forest, random_state=0).fit(SERIES, sets)
    evidence = model.evidence(SERIES[0])
    np.testing.assert_array_equal(evidence.output, model.predict(SERIES[:1]).to_numpy()[0])


def test_strongest_segments():
    """The strongest segments come first; their number is at least one."""
    labels = np.arange(20) % 2
    model = SegmentClassifier(RandomSubseries(8), random_state=0).fit(SERIES, labels)
    evidence = model.evidence(SERIES[0])
    assert evidence.support[evidence.top(1)[0]] == evidence.support.max()
    assert len(evidence.top(100)) == 8
    for bad in (0, -2, 1.5):
        with pytest.raises(ValueError, match=f"k={bad}; expected an integer of at least 1"):
            evidence.top(bad)


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
    bar = next(other for other in ax.figure.axes if other is not ax)
    assert "mean over segments" in (bar.get_xlabel(), bar.get_ylabel())


def test_letters_stand_out():
    """Letters are white on dark cells, and black on bright ones."""
    ax = plt.subplots()[1]
    KmerWindows(3).plot("abc", np.array([0.0, 1.0, np.nan]), ax)
    assert [text.get_color() for text in ax.texts] == ["black", "white", "black"]


def test_plot_of_labels():
    """Labels of pixels are drawn over the image."""
    pixels, maps = make_textures(3, size=24, seed=0)
    model = PixelClassifier(RandomSubwindows(20), random_state=0).fit(pixels, maps)
    assert len(model.plot(pixels[0]).images) == 2
    ax = model.plot(pixels[0], maps[0], plt.subplots()[1])
    assert len(ax.images) == 2
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert named == [str(label) for label in np.unique(maps[0])]


def test_order_of_strongest_segments():
    """Segments come in the order of their support."""
    model = SegmentClassifier(RandomSubseries(30), random_state=0).fit(SERIES, np.arange(20) % 2)
    evidence = model.evidence(rng.normal(size=15))
    support = evidence.support[evidence.top(30)]
    assert (np.diff(support) <= 0).all()
    assert support[0] > support[-1]
