"""Which estimators learn from segments, and fits that fail."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from okforest import OKExtraTrees, OKNeighbors, OKRandomForest
from okforest.segments import (
    PixelClassifier,
    RandomSubseries,
    RandomSubwindows,
    SegmentAnnotator,
    SegmentClassifier,
    SegmentModel,
    SegmentRegressor,
)

rng = np.random.default_rng(0)
SERIES = rng.normal(size=(40, 20)).cumsum(axis=1)
LABELS = np.array(["down", "up"])[(SERIES[:, -1] > SERIES[:, 0]).astype(int)]
CURVES = SERIES[:, ::7]
NEW = rng.normal(size=(9, 20)).cumsum(axis=1)
CUT = RandomSubseries(6, n_points=5)


@pytest.mark.parametrize(
    ("make", "estimator", "message"),
    [
        (SegmentClassifier, RandomForestRegressor(), "SegmentClassifier is a regressor; expected"),
        (SegmentRegressor, GaussianNB(), "SegmentRegressor is a classifier; expected a model"),
        (SegmentAnnotator, GaussianNB(), "SegmentAnnotator is a classifier"),
        (SegmentModel, KMeans(2), "SegmentModel is neither a classifier nor a regressor"),
        (SegmentClassifier, StandardScaler(), "is neither a classifier nor a regressor; expected"),
        (SegmentModel, CUT, "estimator=RandomSubseries of SegmentModel is neither"),
    ],
)
def test_estimators_for_another_task(make, estimator, message):
    """An estimator that predicts something else is refused before anything is fitted."""
    y = [{"a"}, {"b"}] * 20 if make is SegmentAnnotator else LABELS
    with pytest.raises(ValueError, match=message):
        make(CUT, estimator).fit(SERIES, y)


def test_estimators_of_pixels():
    """Label maps need a regressor, or a model of okforest on vectors."""
    images, maps = np.zeros((3, 8, 8)), np.arange(3 * 64).reshape(3, 8, 8) % 2
    with pytest.raises(ValueError, match="PixelClassifier is a classifier; expected"):
        PixelClassifier(RandomSubwindows(5), GaussianNB()).fit(images, maps)
    with pytest.raises(ValueError, match="kernel='dirac' of the estimator; the outputs of Pixel"):
        PixelClassifier(RandomSubwindows(5), OKExtraTrees(3, kernel="dirac")).fit(images, maps)


def test_pipelines_and_searches_are_estimators():
    """What wraps a classifier or regressor is one."""
    model = SegmentClassifier(CUT, make_pipeline(StandardScaler(), GaussianNB()), random_state=0)
    assert model.fit(SERIES, LABELS).predict_proba(NEW).shape == (9, 2)
    search = GridSearchCV(LinearRegression(), {"fit_intercept": [True]})
    assert SegmentRegressor(CUT, search, random_state=0).fit(SERIES, CURVES).predict(NEW).shape


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(5, oob_score=True),
        make_pipeline(StandardScaler(), RandomForestClassifier(5, oob_score=True)),
        OKRandomForest(5, oob_score=True),
    ],
    ids=["scikit-learn", "pipeline", "okforest"],
)
def test_out_of_bag_scores_count_objects_not_segments(estimator):
    """Segments out of bag are of objects in the bag: such a score is refused."""
    with pytest.raises(ValueError, match=r"oob_score=True of .*use cross_val_score\(SegmentClass"):
        SegmentClassifier(CUT, estimator).fit(SERIES, LABELS)


def test_at_least_one_segment_of_each_object():
    """Fewer segments than objects are refused; as many are enough."""
    with pytest.raises(ValueError, match=r"max_segments=39 is less than the number of objects, 40"):
        SegmentClassifier(CUT, max_segments=39).fit(SERIES, LABELS)
    model = SegmentClassifier(CUT, OKNeighbors(1), max_segments=40, random_state=0)
    assert len(model.fit(SERIES, LABELS).learner_.owner_) == 40


@pytest.mark.parametrize(
    ("make", "y"),
    [
        (SegmentClassifier, LABELS),
        (SegmentRegressor, CURVES),
        (SegmentAnnotator, [{label} for label in LABELS]),
    ],
)
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_failed_fits_change_nothing(make, y, error, monkeypatch):
    """After a fit that fails at any stage, the model is as it was."""
    model, fresh = make(CUT, random_state=0).fit(SERIES, y), make(CUT, random_state=0)
    before, expected = dict(vars(model)), model.predict(NEW)
    shorter = SERIES[:, :15]
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model.fit(shorter, y[:3])
    with pytest.raises(ValueError, match="the target y is None"):
        model.fit(shorter, None)

    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(OKExtraTrees, "fit", fail)
    for other in (model, fresh):
        with pytest.raises(error):
            other.fit(list(shorter), y)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(model.predict(NEW), expected)
    with pytest.raises(NotFittedError):
        fresh.predict(NEW)


def test_failed_fits_of_pixels_change_nothing(monkeypatch):
    """The same for label maps."""
    images = rng.integers(0, 256, (3, 8, 8)).astype(np.uint8)
    model = PixelClassifier(RandomSubwindows(5), random_state=0).fit(images, images // 128)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="label map has shape"):
        model.fit(images, (images // 64)[:, :4])
    assert vars(model) == before
