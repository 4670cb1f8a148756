"""Annotation: sets of labels of objects, thresholds, and where labels are seen."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold, cross_val_predict

import okforest
from okforest.datasets import make_textures
from okforest.segments import (
    KmerWindows,
    RandomSubseries,
    RandomSubwindows,
    SegmentAnnotator,
    SegmentRegressor,
)
from okforest.segments.annotator import _best_threshold

IMAGES, MAPS = make_textures(60, size=40, seed=0)
SETS = [set(labels.ravel().tolist()) for labels in MAPS]
MATRIX = np.array([[int(c in labels) for c in range(4)] for labels in SETS])
CUT = RandomSubwindows(60, side_range=(0.3, 0.4), size=12)


@pytest.fixture(scope="module")
def model():
    return SegmentAnnotator(CUT, random_state=0).fit(IMAGES[:45], SETS[:45])


def test_labels_of_images(model, tmp_path):
    """Present labels rank above absent ones; sets and matrices are the same problem."""
    predicted = model.predict(IMAGES[45:])
    assert all(isinstance(labels, set) for labels in predicted)
    indicator = np.array([[int(c in labels) for c in range(4)] for labels in predicted])
    assert roc_auc_score(MATRIX[45:], model.predict_proba(IMAGES[45:])) > 0.75
    other = SegmentAnnotator(CUT, random_state=0).fit(IMAGES[:45], MATRIX[:45])
    np.testing.assert_array_equal(other.predict(IMAGES[45:]), indicator)
    okforest.save(model, tmp_path / "model")
    loaded = okforest.load(tmp_path / "model")
    assert loaded.predict(IMAGES[45:]).tolist() == predicted.tolist()


def test_maps_point_at_labels(model):
    """A label learnt from whole images is higher where its texture is."""
    inside, outside = [], []
    for image, labels in zip(IMAGES[45:], MAPS[45:], strict=True):
        maps = model.label_map(image)
        assert maps.shape == (40, 40, 4)
        for c in set(labels.ravel().tolist()):
            if (labels != c).any():
                inside.append(np.nanmean(maps[:, :, c][labels == c]))
                outside.append(np.nanmean(maps[:, :, c][labels != c]))
    assert np.mean(np.array(inside) > np.array(outside)) > 0.8


def test_sequences_are_annotated():
    """Any objects can be annotated, with labels of text and a fixed threshold."""
    sequences = ["aaaabbbb", "aaaaaaaa", "bbbbbbbb", "bbbbaaaa"] * 5
    labels = [{letter.upper() for letter in sequence} for sequence in sequences]
    model = SegmentAnnotator(KmerWindows(2), threshold=0.7, random_state=0)
    model.fit(sequences, labels)
    assert model.thresholds_.tolist() == [0.7, 0.7]
    assert model.predict(["aaaaaaaaaa"]).tolist() == [{"A"}]
    assert model.label_map("aaaabbbb").shape == (8, 2)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=12))
def test_thresholds_have_the_highest_f1(pairs):
    """No other threshold has a higher F1 score."""
    present = np.array([pair[0] for pair in pairs])
    scores = np.array([float(pair[1]) for pair in pairs])

    def f1(threshold):
        chosen = scores >= threshold
        return 2 * np.sum(present & chosen) / max(1, present.sum() + chosen.sum())

    assert f1(_best_threshold(present, scores)) == max(f1(t) for t in scores)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([{"a"}, "b"], "y mixes sets with other types"),
        (["a", "b"], "the first entry 'a'; it is neither a list of sets of labels"),
        ([[0, 2], [1, 0]], "neither a list of sets of labels"),
        ([{"a", 1}, {"b"}], "y has both text and numbers as labels"),
        ([set(), set()], "y has empty sets only"),
        ([{"a"}, {"b"}], "cv=3 is more than the 2 objects; set a smaller cv"),
        ([{("a", 1)}, {("b", 2)}], r"such as \('[ab]', [12]\); pass text, integers"),
        ([{None, 1}, {1}], "such as None; pass text, integers"),
        ([{2**53 + 1, 0.5}, {2**53}], "labels that an array cannot hold unchanged"),
        (None, "requires y to be passed, but the target y is None"),
    ],
)
def test_bad_labels(y, message):
    """Errors say what y must be."""
    with pytest.raises(ValueError, match=message):
        SegmentAnnotator(CUT).fit(IMAGES[:2], y)


def test_thresholds_are_cross_validated():
    """Thresholds come from objects that the model was not fitted to."""
    rng = np.random.default_rng(0)
    series, indicator = rng.normal(size=(40, 20)), rng.integers(0, 2, (40, 3))
    cut = RandomSubseries(6, n_points=5)
    model = SegmentAnnotator(cut, combine="confidence", random_state=0).fit(series, indicator)
    assert model.model_.combine == "confidence"
    inner = SegmentRegressor(cut, combine="confidence", random_state=0)
    folds = KFold(3, shuffle=True, random_state=0)
    scores = cross_val_predict(inner, series, indicator.astype(float), cv=folds)
    expected = [_best_threshold(indicator[:, c] > 0, scores[:, c]) for c in range(3)]
    np.testing.assert_allclose(model.thresholds_, expected)


def test_thresholds_are_in_the_middle():
    """A threshold is in the middle between two scores."""
    assert _best_threshold(np.array([True, False, True]), np.array([3.0, 1.0, 2.0])) == 1.5


def test_folds_depend_on_the_seed(monkeypatch):
    """random_state is the seed of the folds too."""
    seeds = []

    class Folds(KFold):
        def __init__(self, n_splits, *, shuffle, random_state):
            seeds.append(random_state)
            super().__init__(n_splits, shuffle=shuffle, random_state=random_state)

    monkeypatch.setattr("okforest.segments.annotator.KFold", Folds)
    for seed in (0, 5):
        SegmentAnnotator(KmerWindows(2), random_state=seed).fit(["ab", "bb", "ba"], [{1}, {2}, {1}])
    assert seeds == [0, 5]


def test_single_label_of_a_scikit_learn_forest(recwarn):
    """A matrix of one column causes no warning of scikit-learn."""
    forest = ExtraTreesRegressor(3, random_state=0)
    model = SegmentAnnotator(KmerWindows(2), forest, random_state=0)
    model.fit(["aab", "bbb", "aba", "bbb"], [{1}, set(), {1}, set()])
    assert model.predict(["aaa", "bbb"]).tolist() == [{1}, set()]
    assert [str(warning.message) for warning in recwarn] == []


def test_scores_that_reach_thresholds():
    """A label whose mean equals its threshold is predicted."""
    sequences = ["aab", "bba", "abb"]
    model = SegmentAnnotator(KmerWindows(2), threshold=1.0, random_state=0)
    model.fit(sequences, np.ones((3, 1)))
    assert model.predict(sequences).tolist() == [[1]] * 3
