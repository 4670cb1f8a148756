"""Conformal intervals and bands: by definition, and their coverage."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold

from okforest import OKBoost, OKExtraTrees, OKRandomForest, OKRidge, OKTree
from okforest.kernels import Spectrum
from okforest.uncertainty import ConformalIntervals, intervals
from okforest.uncertainty.distributions import moments, predictions, spread_around
from reference import uncertainty as reference

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 2))
Y = X[:, 0] + rng.normal(scale=0.3 + (X[:, 1] > 0), size=80)
CURVES = Y[:, None] * np.linspace(0.5, 1.0, 5) + 0.1 * rng.normal(size=(80, 5))
EVERY_SCORE = ("normalized", "absolute", "quantiles")


def bounds(model, name, x, levels=(0.2, 0.8)):
    """Return lower and upper bounds and the unit, for one input."""
    w, y = model.predict_weights(x).toarray()[0], model.outputs_
    if name == "quantiles":
        return *(reference.quantile(y, w, level) for level in levels), 1.0
    mean = w @ y
    if name == "absolute":
        return mean, mean, 1.0
    return mean, mean, np.sqrt(w @ (y - mean) ** 2 + 0.01 * np.var(y))


def score(model, name, x, y):
    lower, upper, scale = bounds(model, name, x)
    return max(lower - y, y - upper) / scale


@pytest.mark.parametrize("name", EVERY_SCORE)
def test_intervals_by_definition(name, monkeypatch):
    """Of a fitted model, and of CV+, whatever the blocks of rows."""
    monkeypatch.setattr("okforest.uncertainty.conformal.MAX_ENTRIES", 50)
    tree = OKExtraTrees(3, min_samples_leaf=5, random_state=0)
    model = clone(tree).fit(X[:40], Y[:40])
    options = {"conformity_score": name, "levels": (0.2, 0.8)}
    conformal = ConformalIntervals(model, method="prefit", **options).fit(X[40:70], Y[40:70])
    known = np.sort([score(model, name, X[[i]], Y[i]) for i in range(40, 70)])
    q = known[int(np.ceil(0.8 * 31)) - 1]
    folds = KFold(4)
    cross = ConformalIntervals(tree, method="cross", cv=folds, **options).fit(X[:40], Y[:40])
    found = conformal.predict_interval(X[70:74], 0.8)
    crossed = cross.predict_interval(X[70:74], 0.8)
    for i, x in enumerate(X[70:74, None]):
        lower, upper, scale = bounds(model, name, x)
        np.testing.assert_allclose(found[i], [lower - q * scale, upper + q * scale])
        lowers, uppers = [], []
        for fitted, (_, left) in zip(cross.estimators_, folds.split(X[:40]), strict=True):
            lower, upper, scale = bounds(fitted, name, x)
            for j in left:
                strangeness = score(fitted, name, X[[j]], Y[j])
                lowers.append(lower - strangeness * scale)
                uppers.append(upper + strangeness * scale)
        np.testing.assert_allclose(crossed[i], reference.cv_plus(lowers, uppers, 0.8))


@pytest.mark.parametrize("name", EVERY_SCORE)
def test_coverage_of_split(name):
    """Over many calibrations of one model, the mean coverage lies in the proven range."""
    n, draws, coverage = 49, 60, 0.8
    rng = np.random.default_rng(3)

    def draw(n):
        X = rng.normal(size=(n, 2))
        return X, X[:, 0] + rng.normal(scale=0.2 + np.abs(X[:, 1]), size=n)

    model = OKExtraTrees(20, min_samples_leaf=5, random_state=0).fit(*draw(200))
    reached = []
    for _ in range(draws):
        conformal = ConformalIntervals(model, method="prefit", conformity_score=name).fit(*draw(n))
        new, y = draw(100)
        lower, upper = conformal.predict_interval(new, coverage).T
        reached.append(((lower <= y) & (y <= upper)).mean())
    error = 4 * np.std(reached) / np.sqrt(draws)
    assert coverage - error < np.mean(reached) < coverage + 1 / (n + 1) + error


@pytest.mark.parametrize("method", ["split", "cross", "oob"])
@pytest.mark.parametrize("name", EVERY_SCORE)
def test_bands_contain_whole_curves(method, name):
    """Curves lie inside at all places, in about the share of cases that was asked for."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 2))
    curves = X[:, :1] * np.linspace(0, 1, 6) + rng.normal(size=(300, 6)).cumsum(axis=1) / 3
    forest = OKRandomForest(40, min_samples_leaf=5, random_state=0)
    model = ConformalIntervals(forest, method=method, conformity_score=name, random_state=0)
    found = model.fit(X[:180], curves[:180]).predict_interval(X[180:], 0.8)
    assert found.shape == (120, 6, 2)
    inside = (found[..., 0] <= curves[180:]) & (curves[180:] <= found[..., 1])
    assert 0.68 < inside.all(axis=1).mean() < 0.95
    assert model.predict(X[:2]).shape == (2, 6)


def test_widths_follow_the_noise():
    """Normalised intervals and quantiles are wider where outputs are noisier; absolute are not."""
    rng = np.random.default_rng(6)
    X = rng.uniform(size=(600, 1))
    y = rng.normal(scale=np.where(X[:, 0] > 0.5, 2.0, 0.2))
    forest = OKRandomForest(20, min_samples_leaf=20, random_state=0)
    for name in EVERY_SCORE:
        model = ConformalIntervals(forest, method="oob", conformity_score=name).fit(X, y)
        widths = np.diff(model.predict_interval([[0.2], [0.8]]), axis=1).ravel()
        if name == "absolute":
            np.testing.assert_allclose(widths[0], widths[1])
        else:
            assert widths[1] > 3 * widths[0]


def test_narrowed_quantiles_do_not_cross():
    """Bounds that would cross meet between them."""
    tree = OKExtraTrees(5, min_samples_leaf=20, random_state=0).fit(X, Y)
    model = ConformalIntervals(
        tree, method="prefit", conformity_score="quantiles", levels=(0.01, 0.99)
    )
    found = model.fit(X, Y).predict_interval(X, 0.02)
    assert (found[:, 0] <= found[:, 1]).all()


def test_signed_weights():
    """Boosting has intervals, too."""
    model = ConformalIntervals(OKBoost(20, random_state=0), random_state=0).fit(X, Y)
    lower, upper = model.predict_interval(X, 0.8).T
    assert (lower < upper).all()


@pytest.mark.parametrize("name", ["absolute", "normalized"])
def test_weights_that_do_not_sum_to_one(name):
    """Intervals are around the predictions."""
    ridge = OKRidge(10.0, fit_intercept=False)
    model = ConformalIntervals(ridge, conformity_score=name, random_state=0).fit(X, Y + 100)
    np.testing.assert_allclose(model.predict_interval(X).mean(axis=1), model.predict(X))


def test_few_calibration_rows():
    """A coverage that needs more rows warns; intervals are then infinite."""
    model = ConformalIntervals(OKTree(max_depth=2), random_state=0).fit(X[:20], Y[:20])
    with pytest.warns(UserWarning, match="needs at least 9 calibration rows, and there are 5"):
        found = model.predict_interval(X[:2], 0.9)
    assert found.tolist() == [[-np.inf, np.inf]] * 2


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"conformity_score": "cqr"},
            r"'conformity_score' parameter of ConformalIntervals .* 'cqr'",
        ),
        ({"levels": (0.9, 0.1)}, "two ascending numbers between 0 and 1"),
        ({"method": "loo"}, "'method' parameter of ConformalIntervals .* 'loo'"),
    ],
)
def test_errors(parameters, message):
    """Parameters that cannot work are named."""
    with pytest.raises(ValueError, match=message):
        ConformalIntervals(OKTree(), **parameters).fit(X, Y)


def test_other_outputs_are_refused():
    """Classes have sets, not intervals."""
    with pytest.raises(ValueError, match="For other outputs, use ConformalSets"):
        ConformalIntervals(OKTree(kernel="dirac")).fit(X, Y > 0)


def test_a_coordinate_that_never_varies():
    """Curves that all begin at one value have a band of finite width there."""
    curves = CURVES.copy()
    curves[:, 0] = 2.0
    model = ConformalIntervals(OKTree(min_samples_leaf=5), random_state=0).fit(X, curves)
    found = model.predict_interval(X[:5], 0.8)
    assert np.isfinite(found).all()
    assert ((found[:, 0, 0] <= 2.0) & (found[:, 0, 1] >= 2.0)).all()


@pytest.mark.parametrize("model", [OKRidge("loo", input_kernel="rbf"), OKBoost(50, random_state=0)])
def test_negative_weights_do_not_widen_normalized_bands(model):
    """Nor do places where all curves are alike, as where they begin: bands were 4 × wider."""
    rng, points = np.random.default_rng(0), np.linspace(0, 1, 30)
    X = rng.uniform(1, 3, size=(240, 2))
    curves = np.sin(2 * np.pi * X[:, :1] * points) * np.exp(-X[:, 1:] * points)
    curves += 0.05 * rng.normal(size=curves.shape)
    width = {}
    for score in ("absolute", "normalized"):
        conformal = ConformalIntervals(model, conformity_score=score, random_state=0)
        bounds = conformal.fit(X[:160], curves[:160]).predict_interval(X[160:])
        width[score] = (bounds[..., 1] - bounds[..., 0]).mean()
    assert width["normalized"] < 1.3 * width["absolute"]


def test_the_scale_of_weights_that_are_not_negative_is_the_variance():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), 1e3 + rng.normal(size=(60, 3))
    predicted = predictions(OKRandomForest(10, random_state=0).fit(X, y), X[:7])
    means, variances = moments(predicted.W, predicted.vectors())
    np.testing.assert_allclose(spread_around(means, predicted), variances, atol=1e-12)


def test_the_remedy_for_few_rows_is_another_method_than_the_one_in_use():
    forest = OKRandomForest(30, random_state=0)
    for method, remedy in (("split", "method='cross' or 'oob'"), ("oob", "Use more rows, or a")):
        model = ConformalIntervals(forest, method=method, random_state=0).fit(X, Y)
        with pytest.warns(UserWarning, match=remedy):
            model.predict_interval(X[:2], 0.99)


def test_errors_do_not_list_all_parameters_of_a_kernel():
    words = ["".join(word) for word in np.random.default_rng(0).choice(list("abcd"), (80, 9))]
    tree = OKTree(kernel=Spectrum(3)).fit(X, words)
    with pytest.raises(ValueError, match=r"the kernel is of type Spectrum\. For other"):
        intervals(tree, X)
