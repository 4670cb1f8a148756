"""What turns predictions of estimators on segments into weights over objects."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor

from okforest import OKExtraTrees, OKNeighbors
from okforest.kernels import RBF, Linear
from okforest.segments import RandomSubseries, SegmentClassifier, SegmentModel, SegmentRegressor
from okforest.segments.learners import ValueLearner
from okforest.weights import Span

rng = np.random.default_rng(0)
SERIES = rng.normal(size=(40, 20)).cumsum(axis=1)
LABELS = np.array(["down", "up"])[(SERIES[:, -1] > SERIES[:, 0]).astype(int)]
CURVES = SERIES[:, ::7]
NEW = rng.normal(size=(9, 20)).cumsum(axis=1)
CUT = RandomSubseries(6, n_points=5)


@pytest.mark.parametrize("offset", [0.0, 1e8, -1e12])
@pytest.mark.parametrize("small", [1.0, 1e-8])
def test_offsets_and_scales_of_values(offset, small):
    """A prediction is the mean over segments of a regressor's values, on any scale of outputs."""
    Y = np.column_stack([CURVES[:, 0] + offset, small * CURVES[:, 1], np.full(40, 0.1)])
    for weight in (None, np.arange(40) % 3):
        model = SegmentRegressor(CUT, KNeighborsRegressor(3), random_state=0)
        if weight is not None:
            model.set_params(estimator=ExtraTreesRegressor(5, random_state=0))
        model.fit(SERIES, Y, sample_weight=weight)
        segments = model.segmenter_.cut(model.segmenter_.check(NEW), model.seed_)
        values = model.learner_.estimator_.predict(segments.values)
        expected = values.reshape(len(NEW), -1, 3).mean(axis=1)
        found = model.predict(NEW)
        np.testing.assert_allclose(found[:, 0], expected[:, 0], rtol=1e-15, atol=1e-12)
        np.testing.assert_allclose(found[:, 1], expected[:, 1], rtol=0, atol=1e-10 * small)
        np.testing.assert_allclose(found[:, 2], expected[:, 2], rtol=1e-12)


def test_values_outside_the_span_of_outputs():
    """With more numbers than objects, a prediction is the nearest combination of outputs."""
    Y = rng.normal(size=(10, 30))
    outside = LinearRegression().fit(np.zeros((2, 9)), np.ones((2, 30)))
    learner = ValueLearner(LinearRegression())
    learner.fit(np.zeros((10, 9)), np.arange(10), Span(Linear(), Y), np.ones(10), 0)
    learner.estimator_ = outside
    found = learner.weight_matrix(np.zeros((1, 9))) @ Y
    mean, deviation = Y.mean(axis=0), Y.std(axis=0)
    Z = (Y - mean) / deviation
    nearest = np.linalg.lstsq(Z.T, (1 - mean) / deviation, rcond=None)[0] @ Z
    np.testing.assert_allclose(found[0], mean + deviation * nearest, atol=1e-9)


def test_weights_within_a_class():
    """A classifier of scikit-learn: objects share their class's probability by their weights."""
    weight = rng.random(40) + 0.1
    model = SegmentClassifier(CUT, GaussianNB(), random_state=0)
    model.fit(SERIES, LABELS, sample_weight=weight)
    W, P = model.predict_weights(NEW).toarray(), model.predict_proba(NEW)
    for c, label in enumerate(model.classes_):
        in_class = label == LABELS
        expected = np.outer(P[:, c], weight[in_class] / weight[in_class].sum())
        np.testing.assert_allclose(W[:, in_class], expected, rtol=1e-9)


def test_search_rank_of_the_estimator(recorded):
    """Trees on segments search splits in as many dimensions as search_rank says."""
    forest = OKExtraTrees(3, kernel="rbf", search_rank=2)
    seen = recorded(OKExtraTrees, "fit", lambda args, _: np.shape(args["y"]))
    SegmentModel(CUT, forest, random_state=0).fit(SERIES, CURVES)
    assert seen == [(240, 2)]


@pytest.mark.parametrize("estimator", [OKNeighbors(3), GaussianNB()], ids=["okforest", "sklearn"])
def test_state_of_learners(estimator):
    """Learners of other numbers of objects are refused."""
    model = SegmentClassifier(CUT, estimator, random_state=0).fit(SERIES, LABELS)
    model.check_state()
    name = "shares_" if isinstance(estimator, GaussianNB) else "owner_"
    kept = getattr(model.learner_, name)
    bad = [kept[:, :-1], kept[0], kept.astype(int)] if name == "shares_" else []
    bad = bad or [kept[:-1], kept - 1, kept + 1, kept.astype(float), kept[:, None]]
    for value in bad:
        setattr(model.learner_, name, value)
        with pytest.raises(ValueError, match=name):
            model.check_state()


def test_memory_of_vectors_is_checked(monkeypatch):
    """Vectors that stand for outputs may be larger than the segments."""
    segment_bytes = 240 * 14 * 4
    monkeypatch.setattr("okforest._utils.resources.machine_memory", lambda: 4 * segment_bytes)
    with pytest.raises(MemoryError, match="Set search_rank=32 of the estimator"):
        SegmentModel(CUT, OKExtraTrees(3, kernel="rbf")).fit(SERIES, CURVES)


@pytest.mark.parametrize("rank", [None, 2])
def test_equal_outputs_are_equal_vectors(recorded, rank):
    """To the last bit, so that trees do not tell them apart."""
    seen = recorded(OKExtraTrees, "fit", lambda args, _: np.array(args["y"]))
    curves = CURVES[np.arange(len(CURVES)) % 7]
    forest = OKExtraTrees(3, kernel="rbf", search_rank=rank)
    SegmentModel(CUT, forest, random_state=0).fit(SERIES, curves)
    assert len(np.unique(seen[0], axis=0)) == 7


def test_outputs_are_embedded_once(monkeypatch):
    """A Gram matrix of the outputs is factored, not computed again for the factor."""
    y = rng.normal(size=(40, 20))
    sizes = []
    whole = RBF.__call__

    def count(kernel, a, b=None):
        sizes.append((len(a), len(a if b is None else b)))
        return whole(kernel, a, b)

    monkeypatch.setattr(RBF, "__call__", count)
    SegmentModel(CUT, OKExtraTrees(2, kernel=RBF(1.0)), random_state=0).fit(SERIES, y)
    assert sizes.count((40, 40)) == 1
