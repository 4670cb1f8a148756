"""Segment and combine: weights over objects, their oracle, kernels, decoders, saving."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier
from sklearn.linear_model import LinearRegression, Perceptron
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB

import okforest
from okforest import (
    OKBagging,
    OKBoost,
    OKExtraTrees,
    OKNeighbors,
    OKRandomForest,
    OKRidge,
    OKTotallyRandomTrees,
    OKTree,
)
from okforest.engine import check_trees
from okforest.kernels import RBF, FromCallable, Precomputed
from okforest.metrics import kernel_r2
from okforest.segments import (
    RandomSubseries,
    RandomSubwindows,
    SegmentClassifier,
    SegmentModel,
    SegmentRegressor,
)
from reference.segments import object_weights

rng = np.random.default_rng(0)
SERIES = rng.normal(size=(40, 20)).cumsum(axis=1)
LABELS = np.array(["down", "up"])[(SERIES[:, -1] > SERIES[:, 0]).astype(int)]
CURVES = SERIES[:, ::7]
NEW = rng.normal(size=(9, 20)).cumsum(axis=1)
CUT = RandomSubseries(6, n_points=5)
MODELS = [
    OKTree(kernel="rbf"),
    OKExtraTrees(4, kernel="rbf"),
    OKRandomForest(4, kernel="rbf"),
    OKBagging(3, kernel=RBF(1.0), embedding="nystrom", max_samples=0.5),
    OKTotallyRandomTrees(4, kernel="rbf", min_samples_leaf=3),
    OKBoost(5, kernel="rbf"),
    OKNeighbors(3, kernel="rbf"),
    OKRidge(kernel="rbf"),
]


def segment_model(model):
    """Return a copy of the inner model, fitted to the segments as a user would fit it."""
    inner = clone(model.estimator).set_params(kernel="linear", decoder="mean")
    if "embedding" in inner.get_params():
        inner.set_params(embedding="auto")
    if "random_state" in inner.get_params():
        inner.set_params(random_state=model.seed_ % 2**32)
    objects = model.segmenter_.check(SERIES)
    segments = model.segmenter_.cut(objects, model.seed_)
    vectors = model.learner_._vectors(model.span_, np.ones(len(SERIES)), model.seed_)
    return inner.fit(segments.values, vectors[segments.owner]), segments


@pytest.mark.parametrize("estimator", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("combine", ["mean", "confidence"])
def test_weights_equal_the_oracle(estimator, combine):
    """Weights of objects are means over their segments of sums over a training object's."""
    model = SegmentModel(CUT, estimator, combine=combine, random_state=0).fit(SERIES, CURVES)
    inner, training = segment_model(model)
    segments = model.segmenter_.cut(model.segmenter_.check(NEW), model.seed_)
    W = inner.predict_weights(segments.values).toarray()
    shares = None
    if combine == "confidence":
        K = model.kernel_(CURVES)[np.ix_(training.owner, training.owner)]
        from_mean = W - 1 / W.shape[1]
        votes = np.einsum("ij,jk,ik->i", from_mean, K, from_mean)
        shares = votes / np.bincount(segments.owner, votes)[segments.owner]
    expected = object_weights(W, segments.owner, training.owner, shares)
    np.testing.assert_allclose(model.predict_weights(NEW).toarray(), expected, atol=1e-9)
    forms = model.weight_matrix(NEW)
    values = rng.normal(size=(40, 2))
    np.testing.assert_allclose(forms @ values, expected @ values, atol=1e-9)
    np.testing.assert_allclose(forms[2:5].tocsr().toarray(), expected[2:5], atol=1e-9)


@pytest.mark.parametrize("bytes_", [1, 10_000])
def test_batches_do_not_change_predictions(monkeypatch, bytes_):
    """Objects are cut a few at a time; predictions are the same."""
    for estimator in (OKExtraTrees(4, kernel="dirac"), OKNeighbors(kernel="dirac"), GaussianNB()):
        model = SegmentModel(CUT, estimator, random_state=0).fit(SERIES, LABELS)
        expected = model.predict_weights(NEW).toarray()
        with monkeypatch.context() as patch:
            patch.setattr("okforest.segments.model.BATCH_BYTES", bytes_)
            other = SegmentModel(CUT, estimator, random_state=0).fit(SERIES, LABELS)
            np.testing.assert_allclose(other.predict_weights(NEW).toarray(), expected)
        alone = [model.predict_weights(NEW[i : i + 1]).toarray()[0] for i in range(len(NEW))]
        np.testing.assert_allclose(alone, expected)


@given(st.integers(0, 1000))
def test_order_of_objects_does_not_matter(seed):
    """Objects in another order get the same weights, for the same training objects."""
    model = SegmentModel(CUT, OKExtraTrees(4, kernel="rbf"), random_state=0).fit(SERIES, CURVES)
    order = np.random.default_rng(seed).permutation(len(NEW))
    one, other = model.predict_weights(NEW).toarray(), model.predict_weights(NEW[order]).toarray()
    np.testing.assert_array_equal(one[order], other)


def test_whole_objects_are_the_model_itself():
    """With one segment, the whole object, the model is the one on objects."""
    whole = RandomSubseries(
        1, length_range=(1.0, 1.0), n_points=20, normalize=False, derivatives=False, position=False
    )
    model = SegmentModel(whole, OKExtraTrees(5, kernel="rbf", random_state=3)).fit(SERIES, CURVES)
    plain = OKExtraTrees(5, kernel="rbf", random_state=3).fit(SERIES.astype("f4"), CURVES)
    np.testing.assert_allclose(
        model.predict_weights(NEW).toarray(), plain.predict_weights(NEW.astype("f4")).toarray()
    )
    np.testing.assert_array_equal(model.predict(NEW), plain.predict(NEW.astype("f4")))


def test_probabilities_are_means_of_segments():
    """A classifier of scikit-learn: probabilities are means over segments."""
    forest = RandomForestClassifier(5, random_state=0)
    model = SegmentClassifier(CUT, forest, random_state=0).fit(SERIES, LABELS)
    segments = model.segmenter_.cut(model.segmenter_.check(NEW), model.seed_)
    inner = model.learner_.estimator_.predict_proba(segments.values)
    expected = inner.reshape(len(NEW), 6, 2).mean(axis=1)
    np.testing.assert_allclose(model.predict_proba(NEW), expected)
    np.testing.assert_array_equal(model.predict(NEW), model.classes_[expected.argmax(axis=1)])
    np.testing.assert_allclose(model.predict_weights(NEW).sum(axis=1), 1.0)


@pytest.mark.parametrize("y", [CURVES, CURVES[:, 0]], ids=["vectors", "numbers"])
@pytest.mark.parametrize("weight", [None, rng.integers(0, 3, 40) + 0.5])
def test_values_are_means_of_segments(y, weight):
    """A regressor of scikit-learn: the weights stand for its predictions exactly."""
    for inner in (ExtraTreesRegressor(5, random_state=0), LinearRegression()):
        model = SegmentRegressor(CUT, inner, random_state=0).fit(SERIES, y, sample_weight=weight)
        segments = model.segmenter_.cut(model.segmenter_.check(NEW), model.seed_)
        values = model.learner_.estimator_.predict(segments.values)
        expected = values.reshape(len(NEW), 6, -1).mean(axis=1).reshape(len(NEW), *y.shape[1:])
        np.testing.assert_allclose(model.predict(NEW), expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(model.predict_weights(NEW).sum(axis=1), 1.0)


def test_the_whole_contract():
    """Kernels of any outputs, decoders, candidates, scores, kernels between objects."""
    words = ["".join("ab"[int(v > 0)] for v in curve) for curve in CURVES]
    shared = FromCallable(
        lambda a, b: sum(x == y for x, y in zip(a, b, strict=True)), elementwise=True
    )
    model = SegmentModel(CUT, OKExtraTrees(5, kernel=shared), random_state=0).fit(SERIES, words)
    assert set(model.predict(NEW)) <= set(words)
    assert model.predict(NEW, candidates=["aaa", "bbb"]).tolist()[0] in ("aaa", "bbb")
    outputs, losses = model.predict_top(NEW, k=2)
    assert outputs.shape == losses.shape == (9, 2)
    K = model.predict_kernel(NEW)
    W = model.predict_weights(NEW).toarray()
    np.testing.assert_allclose(K, W @ model.kernel_(model.outputs_) @ W.T)
    assert model.score(SERIES, words) == kernel_r2(model, SERIES, words) > 0.5


def test_precomputed_kernels_and_compact():
    """Positions in a Gram matrix are outputs; a compact copy predicts the same."""
    K = RBF(1.0)(np.vstack([CURVES, CURVES[::-1] + 1]))
    model = SegmentModel(CUT, OKExtraTrees(5, kernel=Precomputed(K)), random_state=0)
    model.fit(SERIES, np.arange(40))
    small = model.compact()
    assert small.kernel_.gram.shape == (40, 40)
    np.testing.assert_array_equal(
        small.predict_weights(NEW).toarray(), model.predict_weights(NEW).toarray()
    )
    np.testing.assert_array_equal(model.predict(NEW), small.predict(NEW))


@pytest.mark.parametrize("estimator", [*MODELS, GaussianNB(), LinearRegression()], ids=repr)
def test_saving(estimator, tmp_path):
    """Saved, loaded and pickled models predict the same."""
    y = LABELS if isinstance(estimator, GaussianNB) else CURVES
    model = SegmentModel(CUT, estimator, random_state=0).fit(SERIES, y)
    okforest.save(model, tmp_path / "model")
    for other in (okforest.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(NEW), model.predict(NEW))
        np.testing.assert_array_equal(
            other.predict_weights(NEW).toarray(), model.predict_weights(NEW).toarray()
        )


def test_state_is_checked():
    """Attributes that do not fit each other are refused."""
    model = SegmentClassifier(CUT, OKExtraTrees(3), random_state=0).fit(SERIES, LABELS)
    model.check_state()
    for name, value in {
        "segmenter_": None,
        "learner_": None,
        "classes_": np.array(["up"]),
        "outputs_": LABELS[:-1],
    }.items():
        kept = getattr(model, name)
        setattr(model, name, value)
        with pytest.raises(ValueError, match=r"_|trees"):
            model.check_state()
        setattr(model, name, kept)


def test_searches():
    """Parameters of both parts can be searched; lists of objects can be cross-validated."""
    model = SegmentClassifier(CUT, OKExtraTrees(3), random_state=0)
    grid = {"segmenter__n_points": [3, 5], "estimator__max_features": [1, None]}
    search = GridSearchCV(model, grid, cv=3).fit(SERIES, LABELS)
    assert set(search.best_params_) == set(grid)
    ragged = [series[: 12 + i % 8] for i, series in enumerate(SERIES)]
    assert cross_val_score(model, ragged, LABELS, cv=3).mean() > 0.6


def test_lists_may_have_any_length():
    """A model of an array takes lists of longer series; an array must have the same columns."""
    model = SegmentClassifier(CUT, OKExtraTrees(3), random_state=0).fit(SERIES, LABELS)
    assert model.n_features_in_ == 20
    longer = [np.arange(30.0), np.arange(7.0)]
    assert model.predict(longer).tolist() == ["up", "up"]
    with pytest.raises(ValueError, match="expecting 20 features"):
        model.predict(np.zeros((2, 30)))


def test_images():
    """Images of one size, of several, and in rows are classified alike."""
    images = rng.integers(0, 100, (30, 8, 8)).astype(np.uint8)
    labels = np.arange(30) % 2
    images[labels == 1, 2:5, 3:6] += 100
    model = SegmentClassifier(RandomSubwindows(30), random_state=0).fit(images, labels)
    assert model.score(images, labels) == 1.0
    as_list = SegmentClassifier(RandomSubwindows(30), random_state=0).fit(list(images), labels)
    in_rows = SegmentClassifier(RandomSubwindows(30, image_shape=(8, 8)), random_state=0)
    in_rows.fit(images.reshape(30, -1), labels)
    expected = model.predict_proba(images)
    np.testing.assert_array_equal(as_list.predict_proba(list(images)), expected)
    np.testing.assert_array_equal(in_rows.predict_proba(images.reshape(30, -1)), expected)
    assert in_rows.n_features_in_ == 64
    larger = [np.kron(image, np.ones((2, 2), np.uint8)) for image in images]
    assert model.score(larger, labels) > 0.8


def test_errors():
    """Estimators that cannot be used, and too few objects."""
    with pytest.raises(ValueError, match="Perceptron has no predict_proba"):
        SegmentClassifier(CUT, Perceptron()).fit(SERIES, LABELS)
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        SegmentClassifier(CUT).fit([SERIES[0]], LABELS[:1])
    with pytest.raises(ValueError, match="Found input variables with inconsistent numbers"):
        SegmentClassifier(CUT).fit(list(SERIES), LABELS[:3])
    with pytest.raises(ValueError, match="X has 0 sample"):
        SegmentClassifier(CUT).fit(list(SERIES), LABELS).predict([])


def test_memory_is_checked(monkeypatch):
    """A training set of segments that cannot fit raises an error with advice."""
    monkeypatch.setattr("okforest._utils.resources.machine_memory", lambda: 10_000)
    with pytest.raises(MemoryError, match="Set max_segments, or use fewer"):
        SegmentClassifier(CUT).fit(SERIES, LABELS)


@pytest.mark.parametrize("segmenter", [CUT, RandomSubseries(9, n_points=4)])
@pytest.mark.parametrize("weight", [None, rng.integers(0, 3, 40) + (np.arange(40) < 9)])
def test_leaves_filled_with_all_segments(segmenter, weight):
    """Trees grown on some of the segments have in their leaves all segments that reach them."""
    forest = OKExtraTrees(3, kernel="rbf")
    model = SegmentModel(segmenter, forest, max_segments=90, random_state=0)
    model.fit(SERIES, CURVES, sample_weight=weight)
    trees = model.learner_.estimator_.trees_
    check_trees(trees, trees.n_categories.size)
    training = model.segmenter_.cut(model.segmenter_.check(SERIES), model.seed_)
    segments = model.segmenter_.cut(model.segmenter_.check(NEW), model.seed_)
    inner = model.learner_.estimator_
    known_leaves, other = inner.apply(training.values), inner.apply(segments.values)
    weight = np.ones(40) if weight is None else weight
    W = np.zeros((len(other), len(known_leaves)))
    for t in range(3):
        same = (other[:, t, None] == known_leaves[:, t]) * weight[training.owner]
        W += same / same.sum(axis=1, keepdims=True) / 3
    expected = object_weights(W, segments.owner, training.owner)
    np.testing.assert_allclose(model.predict_weights(NEW).toarray(), expected, atol=1e-12)


def test_fewer_segments_for_other_estimators():
    """Estimators that cannot be filled are fitted to some of the segments."""
    model = SegmentClassifier(CUT, OKNeighbors(3), max_segments=85, random_state=0)
    model.fit(SERIES, LABELS)
    assert len(model.learner_.owner_) == 80
    assert np.bincount(model.learner_.owner_).tolist() == [2] * 40
    same = SegmentClassifier(CUT, OKNeighbors(3), max_segments=10**6, random_state=0)
    assert len(same.fit(SERIES, LABELS).learner_.owner_) == 240


def test_progress(capsys):
    """There is a bar for the objects and one for the trees."""
    SegmentClassifier(CUT, verbose=1).fit(SERIES, LABELS)
    shown = capsys.readouterr().err
    assert "cutting objects" in shown
    assert "40/40" in shown
    assert "growing trees" in shown


def test_weighted_scores():
    """Scores count objects by their weights."""
    noisy, weight = LABELS[rng.permutation(40)], rng.random(40)
    model = SegmentClassifier(CUT, random_state=0).fit(SERIES, LABELS)
    expected = accuracy_score(noisy, model.predict(SERIES), sample_weight=weight)
    assert model.score(SERIES, noisy, sample_weight=weight) == expected
    assert expected != model.score(SERIES, noisy)
    model = SegmentRegressor(CUT, random_state=0).fit(SERIES, CURVES)
    expected = r2_score(CURVES, model.predict(SERIES), sample_weight=weight)
    assert model.score(SERIES, CURVES, sample_weight=weight) == expected
    assert expected != model.score(SERIES, CURVES)


def test_columns_are_forgotten():
    """A model that is fitted again to a list has no number of columns."""
    model = SegmentClassifier(CUT, random_state=0).fit(SERIES, LABELS)
    model.fit([series[: 12 + i % 8] for i, series in enumerate(SERIES)], LABELS)
    assert not hasattr(model, "n_features_in_")


def test_compact_copies_have_a_small_kernel():
    """A compact copy holds the Gram matrix of the training outputs only, everywhere."""
    K = RBF(1.0)(np.vstack([CURVES, CURVES + 1]))
    forest = OKExtraTrees(3, kernel=Precomputed(K))
    model = SegmentModel(CUT, forest, random_state=0).fit(SERIES, np.arange(40))
    assert model.compact().estimator.kernel.gram.shape == (40, 40)
    assert forest.kernel.gram.shape == model.estimator.kernel.gram.shape == (80, 80)
