"""Priors: their constraints hold at their points, and contradictions are named."""

import _thread
import sys
import threading

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from okforest import OKExtraTrees
from okforest.refit import (
    Bounds,
    CensoredForest,
    LinearRelation,
    Monotone,
    Order,
    SemiSupervisedForest,
    Symmetry,
)

pytest.importorskip("clarabel", reason="Clarabel is not installed")

rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, size=(60, 2))
Y = np.column_stack([X[:, 0] + 0.5, X[:, 1], X[:, 0] - X[:, 1]]) + rng.normal(0, 0.4, (60, 3))
FOREST = OKExtraTrees(10, min_samples_leaf=4, max_features=None, random_state=0)
SLACK = 1e-5


def refit(*priors, y=Y, **parameters):
    return SemiSupervisedForest(FOREST, laplacian=None, priors=priors, **parameters).fit(X, y)


def increments(model, feature, output=0, n_values=10):
    """Return the increments of a prediction as a feature goes through its quantiles."""
    values = np.quantile(X[:, feature], np.linspace(0, 1, n_values))
    curves = []
    for value in values:
        points = X.copy()
        points[:, feature] = value
        curves.append(model.predict(points).reshape(60, -1)[:, output])
    return np.diff(curves, axis=0)


def test_monotone():
    """Predictions increase or decrease with the feature; without the prior they do not."""
    assert increments(refit(), 1).min() < -SLACK
    assert increments(refit(Monotone(1)), 1).min() >= -SLACK
    assert increments(refit(Monotone(1, increasing=False)), 1).max() <= SLACK
    assert increments(refit(Monotone(0, output=2)), 0, output=2).min() >= -SLACK


def test_bounds():
    """Predictions stay within the bounds of their output, at given points, too."""
    points = rng.uniform(-1.0, 1.0, size=(30, 2))
    model = refit(Bounds(0.2, 0.6, output=1, points=points))
    predicted = model.predict(points)[:, 1]
    assert predicted.min() >= 0.2 - SLACK
    assert predicted.max() <= 0.6 + SLACK
    assert model.predict(points)[:, 0].max() > 0.6 + 0.1


def test_relations_between_outputs():
    """A linear equation, and an order, hold at the training rows."""
    predicted = refit(LinearRelation([1.0, -1.0, -1.0], lower=0.5, upper=0.5)).predict(X)
    np.testing.assert_allclose(predicted @ [1, -1, -1], 0.5, atol=SLACK)
    assert (refit().predict(X) @ [1, -1, 0]).min() < -0.1
    assert (refit(Order(1, 0)).predict(X) @ [1, -1, 0]).min() >= -SLACK


def test_symmetry():
    """Predictions of reflected points are equal."""
    model = refit(Symmetry(np.negative))
    np.testing.assert_allclose(model.predict(X), model.predict(-X), atol=SLACK)
    assert np.abs(refit().predict(X) - refit().predict(-X)).max() > 0.1


def test_satisfied_priors_change_nothing():
    """If the refit satisfies a prior already, the solution is the same, by both solvers."""
    plain = refit(leaf_penalty=0.01)
    with_prior = refit(Bounds(-100.0, 100.0), leaf_penalty=0.01)
    np.testing.assert_allclose(with_prior.predict(X), plain.predict(X), atol=1e-4)
    assert with_prior.objective_ == pytest.approx(plain.objective_, rel=1e-6)


def test_laplacian_and_unlabelled_rows():
    """Priors, a Laplacian and unlabelled rows are combined; objectives of both solvers agree."""
    y = Y.copy()
    y[::2] = np.nan
    parameters = {"laplacian": "knn", "laplacian_penalty": 0.5, "leaf_penalty": 0.01}
    plain = SemiSupervisedForest(FOREST, **parameters).fit(X, y)
    loose = SemiSupervisedForest(FOREST, priors=[Bounds(-100.0)], **parameters).fit(X, y)
    assert loose.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    tight = SemiSupervisedForest(FOREST, priors=[Bounds(0.3)], **parameters).fit(X, y)
    assert tight.predict(X)[:, 0].min() >= 0.3 - SLACK
    assert tight.objective_ > plain.objective_


@pytest.mark.parametrize("scale", ["km", "log", None])
def test_censored(scale):
    """Bounds are times, whatever the scale of the fit."""
    time = np.exp(1.0 + X[:, 0])
    y = np.rec.fromarrays([rng.random(60) < 0.7, time], names="event,time")
    model = CensoredForest(FOREST, scale=scale, priors=[Bounds(2.0, 5.0), Monotone(0)])
    predicted = model.fit(X, y).predict(X)
    # The Kaplan–Meier scale is a step function, and knows times of events only.
    below = time[y.event & (time <= 2.0)].max() if scale == "km" else 2.0
    assert predicted.min() >= below - 1e-3
    assert predicted.max() <= 5.0 + 1e-3
    assert increments(model, 0).min() >= -1e-3


def test_frames():
    """Features of frames have names."""
    frame = pd.DataFrame(X, columns=["a", "b"])
    for feature in ("b", 1):
        model = SemiSupervisedForest(FOREST, laplacian=None, priors=[Monotone(feature)])
        model.fit(frame, Y[:, 0])
        points = [frame.assign(b=value) for value in np.quantile(X[:, 1], np.linspace(0, 1, 10))]
        assert np.diff([model.predict(p) for p in points], axis=0).min() >= -SLACK
    model = SemiSupervisedForest(FOREST, laplacian=None, priors=[Symmetry(lambda f: -f)])
    model.fit(frame, Y[:, 0])
    np.testing.assert_allclose(model.predict(frame), model.predict(-frame), atol=SLACK)


def test_contradictions_are_named():
    """Priors that cannot hold together are named; others are not."""
    with pytest.raises(ValueError, match="contradict each other") as raised:
        refit(Bounds(lower=1.0), Monotone(0), Bounds(upper=0.0))
    assert "Bounds(lower=1.0) and Bounds(upper=0.0)" in str(raised.value)
    assert "Monotone" not in str(raised.value)


ERRORS = {
    "kernel": (
        lambda: SemiSupervisedForest(
            clone(FOREST).set_params(kernel="dirac"), laplacian=None, priors=[Bounds(0.0)]
        ).fit(X, np.arange(60) % 2),
        ValueError,
        "priors are about numbers",
    ),
    "adjust": (lambda: refit(Bounds(0.0), adjust="outputs"), ValueError, "adjust='leaves'"),
    "output": (lambda: refit(Bounds(0.0, output=3)), ValueError, "positions go from 0 to 2"),
    "coefficients": (lambda: refit(LinearRelation([1.0])), ValueError, r"need \(3,\)"),
    "name": (lambda: refit(Monotone("a")), ValueError, "is a name, and X has none"),
    "transform": (lambda: refit(Symmetry(lambda X: X[:2])), ValueError, "returned 2 rows"),
    "column": (
        lambda: SemiSupervisedForest(FOREST, laplacian=None, priors=[Monotone("Dose")]).fit(
            pd.DataFrame(X, columns=["dose", "b"]), Y
        ),
        ValueError,
        r"not a column of X, which has \['dose', 'b'\]",
    ),
    "categories": (
        lambda: SemiSupervisedForest(FOREST, laplacian=None, priors=[Monotone("sex")]).fit(
            pd.DataFrame({"sex": ["m", "f"] * 30, "b": X[:, 1]}), Y
        ),
        ValueError,
        "Monotone needs a feature with numbers",
    ),
    "position": (lambda: refit(Monotone(7)), ValueError, "integer from 0 to 1: X has 2 features"),
    "values": (lambda: refit(Monotone(0, n_values=1)), ValueError, r"'n_values' .* \[2, inf\)"),
    "no bound": (lambda: refit(Bounds()), ValueError, "has no bound"),
    "NaN": (lambda: refit(Bounds(np.nan, 0.2)), ValueError, "allows no value"),
    "infinite": (lambda: refit(Bounds(np.inf)), ValueError, "allows no value"),
    "same": (lambda: refit(Order(0, 0)), ValueError, "compares a value with itself"),
    "names of values": (
        lambda: refit(Order("low", "high")),
        ValueError,
        "'smaller' parameter of Order",
    ),
    "function": (lambda: refit(Symmetry(3)), TypeError, "'transform' parameter .* callable"),
    "zeros": (lambda: refit(LinearRelation([0, 0, 0])), ValueError, "not all 0"),
    "unknown coefficient": (lambda: refit(LinearRelation([1, np.nan, 0])), ValueError, "finite"),
    "text": (lambda: refit(LinearRelation(["y", 1, 1])), ValueError, "coefficients that are numb"),
    "text as bound": (lambda: refit(Bounds("low")), ValueError, "'lower' parameter of Bounds"),
    "endless": (
        lambda: refit(LinearRelation([1, 0, 0], np.inf, np.inf)),
        ValueError,
        "allows no value",
    ),
    "no limit": (lambda: refit(LinearRelation([1, 0, 0], None, None)), ValueError, "has no bound"),
    "one point": (
        lambda: refit(Monotone(0, points=X[0])),
        ValueError,
        r"the points of Monotone have shape \(2,\); expected \(m, 2\)",
    ),
    "no point": (lambda: refit(Bounds(0.0, points=X[:0])), ValueError, r"have shape \(0, 2\)"),
    "features": (
        lambda: refit(Bounds(0.0, points=X[:3, :1].tolist())),
        ValueError,
        r"the points of Bounds have shape \(3, 1\)",
    ),
    "narrow transform": (
        lambda: refit(Symmetry(lambda points: points[:, :1])),
        ValueError,
        r"the transform of Symmetry returned points of shape \(60, 1\)",
    ),
    "no transform": (lambda: refit(Symmetry(lambda points: None)), ValueError, r"shape \(\)"),
    "type": (lambda: refit("monotone"), TypeError, "pass objects of okforest.refit"),
    "single": (
        lambda: SemiSupervisedForest(FOREST, laplacian=None, priors=Bounds(0.0)).fit(X, Y),
        TypeError,
        "pass a list of priors",
    ),
}


@pytest.mark.parametrize(("call", "error", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(call, error, message):
    """Each misuse has its own error."""
    with pytest.raises(error, match=message):
        call()


def test_interrupt(monkeypatch):
    """Ctrl-C ends the fit while the solver is still at work."""
    done = threading.Event()

    class SlowSolver:
        def __init__(self, *args):
            pass

        def solve(self):
            _thread.interrupt_main()
            done.wait(60)

    monkeypatch.setattr("clarabel.DefaultSolver", SlowSolver)
    try:
        with pytest.raises(KeyboardInterrupt):
            refit(Bounds(0.0))
    finally:
        done.set()


def test_errors_of_the_solver(monkeypatch):
    """An error in the solver's thread is raised by fit."""

    class BrokenSolver:
        def __init__(self, *args):
            pass

        def solve(self):
            raise RuntimeError("no memory")

    monkeypatch.setattr("clarabel.DefaultSolver", BrokenSolver)
    with pytest.raises(RuntimeError, match="no memory"):
        refit(Bounds(0.0))


def test_missing_solver(monkeypatch):
    """Without Clarabel, the error names the extra to install."""
    monkeypatch.setitem(sys.modules, "clarabel", None)
    with pytest.raises(ImportError, match=r"pip install 'okforest\[convex\]'"):
        refit(Bounds(0.0))


@pytest.mark.parametrize("unit", [1e-6, 1e5, 1e9])
def test_the_unit_of_outputs_does_not_matter(unit):
    """Refits of rescaled outputs are rescaled: the solver works in a unit of its own."""
    expected = refit(Monotone(1), Bounds(-0.5, 1.0), y=Y[:, 0]).predict(X)
    priors = [Monotone(1), Bounds(-0.5 * unit, 1.0 * unit)]
    model = refit(*priors, y=Y[:, 0] * unit)
    np.testing.assert_allclose(model.predict(X) / unit, expected, atol=1e-5)
    for parameters in ({"norm": "l1"}, {"priors": [Bounds(0.0)]}):
        intervals = np.column_stack([Y[:, 0], np.where(X[:, 1] > 0, np.inf, Y[:, 0])])
        model = CensoredForest(FOREST, scale=None, **parameters)
        expected_l1 = model.fit(X, intervals).predict(X)
        found = clone(model).fit(X, intervals * unit)
        assert found.duality_gap_ <= 1e-6
        np.testing.assert_allclose(found.predict(X) / unit, expected_l1, atol=1e-4)


def test_contradictory_equations():
    """Equations that cannot hold together are refused; opposite inequalities make an equation."""
    with pytest.raises(ValueError, match="contradict each other"):
        refit(LinearRelation([1, -1, -1]), LinearRelation([1, -1, -1], 1.0, 1.0))
    with pytest.raises(ValueError, match="10 points"):
        refit(Bounds(0.0, 0.1, points=X[:10]), Bounds(0.2, 0.3))
    priors = [Bounds(0.1), Bounds(upper=0.1)]
    np.testing.assert_allclose(refit(*priors, y=Y[:, 0]).predict(X), 0.1, atol=1e-5)


def test_default_penalty():
    """With priors, leaves change as far as they must: the fit beats the forest on noisy outputs."""
    inputs, new = rng.uniform(size=(150, 1)), rng.uniform(size=(500, 1))
    y = inputs[:, 0] + rng.normal(0.0, 0.3, size=150)
    forest = OKExtraTrees(20, min_samples_leaf=3, random_state=0)
    model = SemiSupervisedForest(forest, laplacian=None, priors=[Monotone(0), Bounds(0.0, 1.0)])
    model.fit(inputs, y)
    error, plain = (
        np.sqrt(np.mean((m.predict(new) - new[:, 0]) ** 2)) for m in (model, model.estimator_)
    )
    assert error < plain


@pytest.mark.parametrize("scale", ["km", "log", None])
def test_bounds_of_times(scale):
    """Bounds are in the unit of y on every scale, and hold at all training rows."""
    inputs = rng.uniform(size=(150, 2))
    time = np.exp(2 * inputs[:, 0] + rng.normal(0.0, 0.3, size=150))
    y = np.rec.fromarrays([rng.random(150) < 0.7, time], names="event,time")
    model = CensoredForest(scale=scale)
    predicted = model.fit(inputs, y).predict(inputs)
    low, high = np.quantile(predicted, [0.2, 0.8])
    for prior in (Bounds(low, high), LinearRelation([-2.0], -2.0 * high, -2.0 * low)):
        bounded = clone(model).set_params(priors=[prior]).fit(inputs, y).predict(inputs)
        assert bounded.min() >= low - 1e-4
        assert bounded.max() <= high + 1e-4
    if scale == "km":
        with pytest.raises(ValueError, match="cannot hold"):
            clone(model).set_params(priors=[Bounds(lower=100.0)]).fit(inputs, y)
    if scale is not None:
        with pytest.raises(ValueError, match="cannot hold"):
            clone(model).set_params(priors=[Bounds(upper=-1.0)]).fit(inputs, y)


def test_inputs_of_all_kinds():
    """Frames with integer names, polars and sparse inputs have points, too."""
    expected = refit(Monotone(1), y=Y[:, 0]).predict(X)
    polars = pytest.importorskip("polars")
    for inputs in (
        pd.DataFrame(X),
        polars.DataFrame(X, schema=["a", "b"]),
        sp.csr_array(X),
        pd.DataFrame(X, columns=["a", "b"]),
    ):
        for prior in (Monotone(1), Monotone(1, points=X[:30]), Symmetry(lambda Z: Z)):
            model = SemiSupervisedForest(FOREST, laplacian=None, priors=[prior])
            if prior.points is not None and hasattr(inputs, "columns"):
                prior.points = inputs[:30]
            model.fit(inputs, Y[:, 0])
            if isinstance(prior, Monotone) and prior.points is None:
                np.testing.assert_allclose(model.predict(inputs), expected, atol=1e-4)
    frame = pd.DataFrame(X, columns=["a", "b"])
    flipped = Symmetry(lambda points: -np.asarray(points))
    model = SemiSupervisedForest(FOREST, laplacian=None, priors=[flipped]).fit(frame, Y[:, 0])
    np.testing.assert_allclose(model.predict(frame), model.predict(-frame), atol=SLACK)


def test_three_contradictions():
    """If no single prior is to blame, all are named."""
    priors = [Bounds(lower=1.0), Bounds(lower=1.5), Bounds(upper=0.0), Bounds(upper=0.5)]
    names = r"Bounds\(lower=1.0\) and Bounds\(lower=1.5\) and Bounds\(upper=0.0\) and"
    with pytest.raises(ValueError, match=names):
        refit(*priors)


def test_monotone_with_missing_values():
    """Missing values of the feature do not count among its quantiles."""
    inputs = X[:40].copy()
    inputs[::7, 1] = np.nan
    model = SemiSupervisedForest(FOREST, laplacian=None, priors=[Monotone(1)])
    model.fit(inputs, inputs[:, 0])
    assert np.isfinite(model.predict(inputs)).all()
    found = Monotone(1).constraints(inputs, 1, np.asarray)
    assert found.matrix.shape[0] == 40 * 9


def test_order_at_given_points():
    """Points may be given."""
    points = np.random.default_rng(3).uniform(size=(7, 2))
    assert len(Order(0, 1, points=points).constraints(X, 2, np.asarray).lower) == 7


def test_default_relation_is_an_equation():
    """Without bounds, a relation is an equation with 0."""
    found = LinearRelation([1.0, -1.0]).constraints(X, 2, np.asarray)
    assert (found.lower == 0).all()
    assert (found.upper == 0).all()


def test_default_points():
    """Bounds are at all training rows; priors that make points use at most a hundred rows."""
    many = rng.uniform(size=(150, 2))
    bounds = Bounds(0.0).constraints(many, 1, np.asarray)
    assert bounds.points is None
    assert bounds.matrix.shape == (150, 150)
    assert Monotone(0, n_values=2).constraints(many, 1, np.asarray).points.shape == (200, 2)


def test_negative_positions_of_outputs():
    """Positions do not count from the end."""
    with pytest.raises(ValueError, match="positions go from 0 to 1"):
        Bounds(0.0, output=-1).constraints(X, 2, np.asarray)


def test_relation_without_one_bound():
    """None is no bound, on either side."""
    pytest.importorskip("clarabel", reason="Clarabel is not installed")
    model = refit(LinearRelation([1.0, 0.0, 0.0], lower=None, upper=0.1))
    assert model.predict(X)[:, 0].max() <= 0.1 + 1e-6
    same = refit(LinearRelation([1.0, 0.0, 0.0], lower=-np.inf, upper=0.1))
    np.testing.assert_allclose(model.predict(X), same.predict(X), atol=1e-9)
