"""Intervals of series: places, points, derivatives, and the way back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from okforest.segments import RandomSubseries, SegmentClassifier
from reference.segments import interval, spread


def make_series(seed, n_variables=1):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n_variables, rng.integers(1, 15))) for _ in range(4)]


@given(st.integers(0, 1000), st.sampled_from([1, 3]), st.sampled_from([2, 5]), st.booleans())
def test_points_equal_the_oracle(seed, n_variables, n_points, normalize):
    """Values and derivatives at equal steps, standardised or not; then come place and length."""
    series = make_series(seed, n_variables)
    segments = RandomSubseries(5, n_points=n_points, normalize=normalize).cut(series, seed)
    for k, i in enumerate(segments.owner):
        begin, length = segments.places[k]
        total = series[i].shape[1]
        slopes = np.gradient(series[i], axis=1) if total > 1 else np.zeros_like(series[i])
        points = np.array([interval(v, begin, length, n_points) for v in series[i]])
        slopes = np.array([interval(v, begin, length, n_points) for v in slopes])
        mean, deviation = points.mean(axis=1), points.std(axis=1)
        parts = [points, slopes]
        if normalize:
            constant = deviation < 1e-12  # up to rounding
            scale = np.where(constant, 1.0, deviation)[:, None]
            parts = [(points - mean[:, None]) / scale, slopes / scale, mean, deviation]
        expected = np.concatenate([part.ravel() for part in parts])
        expected = np.append(expected, [begin / total, length / total])
        np.testing.assert_allclose(segments.values[k], expected, rtol=1e-5, atol=1e-6)


@given(st.integers(0, 1000), st.floats(0.05, 1.0), st.floats(0.05, 1.0))
def test_intervals_are_within_range_and_series(seed, low, high):
    """Lengths are within the range, and at least two where the series has two points."""
    low, high = sorted((low, high))
    series = make_series(seed)
    segments = RandomSubseries(20, length_range=(low, high)).cut(series, seed)
    for k, i in enumerate(segments.owner):
        (begin, length), total = segments.places[k], series[i].shape[1]
        shortest = max(min(2, total), np.ceil(low * total - 1e-6))
        assert shortest <= length <= max(shortest, np.floor(high * total + 1e-6))
        assert 0 <= begin <= total - length


def test_intervals_begin_everywhere():
    """Intervals of every length begin at each position that leaves room for them, equally often."""
    segments = RandomSubseries(4000, length_range=(0.5, 0.8)).cut([np.arange(5.0)[None]], 1)
    begin, length = segments.places.T
    assert set(length) == {3, 4}
    for n_points, n_places in ((3, 3), (4, 2)):
        counts = np.bincount(begin[length == n_points])
        np.testing.assert_allclose(counts, counts.sum() / n_places, rtol=0.15)
        assert len(counts) == n_places


def test_segments_depend_on_the_series_alone():
    """Order and batch do not change the intervals of a series."""
    series = make_series(0, 2)
    segmenter = RandomSubseries(7)
    together = segmenter.cut(series[::-1], 3)
    for i, item in enumerate(series[::-1]):
        alone = segmenter.cut([item], 3)
        np.testing.assert_array_equal(alone.values, together.values[7 * i : 7 * (i + 1)])


def test_options():
    """Without derivatives and position, the features are the values."""
    item = np.arange(9.0)[None, :]
    options = {
        "normalize": False,
        "derivatives": False,
        "position": False,
        "length_range": (1.0, 1.0),
        "n_points": 9,
    }
    np.testing.assert_array_equal(RandomSubseries(1, **options).cut([item]).values, item)


@given(st.integers(0, 1000))
def test_spreading_equals_the_oracle(seed):
    """A time gets the mean of the intervals that cover it."""
    item = np.zeros((1, 12))
    segmenter = RandomSubseries(4, length_range=(0.1, 0.4))
    places = segmenter.cut([item], seed).places
    values = np.random.default_rng(seed).random((4, 1))
    steps = np.arange(12)
    covered = [(begin <= steps) & (steps < begin + length) for begin, length in places]
    expected = spread((12,), covered, values[:, 0])
    np.testing.assert_allclose(segmenter.spread(item, places, values)[:, 0], expected)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1.0, 2.0], []], "series 1 has length zero"),
        ([[1.0, np.nan]], "series 0 has NaN or infinite values; interpolate"),
        ([[1.0, np.inf]], "series 0 has NaN or infinite"),
        ([[1.0, 1e300]], "series 0 has values beyond the range of float32"),
        (["text"], "series 0 cannot be read as numbers"),
        ([np.zeros((2, 5)), np.zeros(5)], "series 1 has 1 variables and others have 2"),
        (np.zeros((2, 2, 2, 2)), "X has shape"),
        ([np.zeros((2, 0)), np.zeros((2, 5))], "series 0 has length zero"),
        (None, "X is of type NoneType; expected a list of series"),
        ([np.zeros((1, 1, 3))], r"series 0 has shape \(1, 1, 3\)"),
    ],
)
def test_bad_series(X, message):
    """Errors name the series, what is wrong and what to do."""
    with pytest.raises(ValueError, match=message):
        RandomSubseries().check(X)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_segments": True}, "'n_segments' parameter of RandomSubseries must be an int"),
        ({"n_points": 1}, r"'n_points' parameter .* in the range \[2, inf\)"),
        ({"length_range": (0.0, 1.0)}, "0 < low"),
    ],
)
def test_bad_parameters(params, message):
    """Errors name the parameter, its value and what is expected."""
    with pytest.raises(ValueError, match=message):
        RandomSubseries(**params).check([[1.0, 2.0]])


def test_ragged_variables():
    """Pairs of variables in tuples are series of any length, and other numbers are refused."""
    rng = np.random.default_rng(0)
    pairs = [(rng.normal(size=n), rng.normal(size=n)) for n in (9, 12, 10, 11)]
    model = SegmentClassifier(RandomSubseries(5), random_state=0).fit(pairs, [0, 1, 0, 1])
    assert model.segmenter_.n_variables_ == 2
    assert len(model.predict(pairs)) == 4
    with pytest.raises(ValueError, match="1 variables and the training series have 2"):
        model.predict([np.zeros(9)])


@pytest.mark.parametrize(("value", "n_points"), [(0.1, 3), (0.3, 10), (1e6 / 7, 10)])
def test_constant_series(value, n_points):
    """Standardised values of a constant series are zero, not rounding errors divided by others."""
    cut = RandomSubseries(4, n_points=n_points, position=False)
    values = cut.cut(cut.check([np.full(30, value)])).values[:, : 2 * n_points]
    np.testing.assert_allclose(values, 0.0, atol=1e-6)


def test_rounding_errors_are_not_standardised():
    """Points that are equal up to rounding are constant, at any place in a batch."""
    segmenter = RandomSubseries(1, length_range=(1.0, 1.0))
    for m in range(2, 40):
        series = np.where(np.arange(15 * m + 1) % m == 0, 0.0, (-1.0) ** np.arange(15 * m + 1))
        checked = segmenter.check([series[: 7 * m], series, 1e8 * series])
        together = segmenter.cut(checked).values
        alone = np.vstack([segmenter.cut([item]).values for item in checked])
        np.testing.assert_array_equal(together, alone)
        assert (together[1:, :16] == 0).all()  # values are zero at the points


def test_small_changes_on_a_large_offset_are_standardised():
    """Only rounding errors are constant: a wave of 1e-10 of its offset has its shape."""
    wave = np.sin(np.linspace(0, 6, 50))
    segmenter = RandomSubseries(5, derivatives=False, position=False)
    (one,), (other,) = segmenter.check([wave]), segmenter.check([wave + 1e10])
    segments = segmenter.cut([one, other])
    for k in range(10):
        begin, length = segments.places[k]
        x = np.interp(np.linspace(begin, begin + length - 1, 16), np.arange(50), wave)
        np.testing.assert_allclose(
            segments.values[k, :16], (x - x.mean()) / x.std(), rtol=0, atol=1e-3
        )
