"""Parts of the refit to intervals: growth, scales, objectives, and damaged models."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

from okforest import OKExtraTrees, OKRandomForest
from okforest.refit import (
    Bounds,
    CensoredForest,
    ForestKernel,
    SemiSupervisedForest,
    knn_laplacian,
)
from okforest.refit.intervals import Scale, _conditional_means, _targets
from okforest.refit.leaves import Adjustments, LeafExpansion

INF = np.inf
FOREST = OKExtraTrees(8, min_samples_leaf=4, max_features="sqrt", random_state=0)
rng = np.random.default_rng(0)
X = rng.uniform(size=(150, 3))
TIME = np.exp(2.0 * X[:, 0] + rng.normal(0.0, 0.3, size=150))
LIMIT = np.where(rng.random(150) < 0.4, rng.uniform(0.3, 1.0, 150), 2.0) * TIME
Y = np.rec.fromarrays([TIME <= LIMIT, np.minimum(TIME, LIMIT)], names="event,time")
WEIGHT = np.random.default_rng(1).uniform(0.2, 3.0, 150)


def censored_objective(model, weight=None):
    """Return the objective of a fit with adjusted leaves, by definition (norm l2, l1)."""
    expansion = LeafExpansion(model.estimator_.trees_)
    rows = expansion.rows(model.training_leaves_)
    change = model.leaf_values_ - expansion.means @ model.estimator_.outputs_.reshape(-1)
    f = rows @ model.leaf_values_
    scale = Scale(model.scale, model.scale_times_, model.scale_survival_)
    lower, upper = scale.forward(model.outputs_).T
    d = np.maximum(np.maximum(lower - f, f - upper), 0.0)
    c = np.where(Y.event, model.exact_penalty, model.censored_penalty) * (
        1.0 if weight is None else weight
    )
    C2 = model.leaf_penalty / len(model.estimator_.trees_)
    if model.norm == "l1":
        return C2 * np.abs(change).sum() + c @ d
    total = C2 * (change**2).sum() + c @ d**2
    if model.laplacian is not None:
        start = rows @ (expansion.means @ model.estimator_.outputs_.reshape(-1))
        away = f - start.mean()
        total += model.laplacian_penalty * away @ (knn_laplacian(X, 7) @ away)
    return total


PROGRAMMES = {
    "weights of kinds": ({"exact_penalty": 0.5, "censored_penalty": 2.0}, None),
    "laplacian": ({"laplacian": "knn", "laplacian_penalty": 0.3}, None),
    "weights of rows": ({}, WEIGHT),
    "l1": ({"norm": "l1", "leaf_penalty": 0.3}, None),
    "l1 and weights": ({"norm": "l1", "leaf_penalty": 0.3}, WEIGHT),
    "priors": ({"priors": [Bounds(-100.0)], "exact_penalty": 0.5, "laplacian": "knn"}, WEIGHT),
}


@pytest.mark.parametrize(("parameters", "weight"), PROGRAMMES.values(), ids=PROGRAMMES)
def test_objective_by_definition(parameters, weight):
    """The objective of a fit equals the objective of its parameters, by every solver."""
    if "l1" in parameters.values() or "priors" in parameters:
        pytest.importorskip("clarabel", reason="Clarabel is not installed")
    model = CensoredForest(FOREST, scale=None, **parameters).fit(X, Y, weight)
    assert model.objective_ == pytest.approx(censored_objective(model, weight), rel=1e-4)


def test_trees_are_grown_with_weights():
    """Weights of rows count in growth."""
    model = CensoredForest(FOREST).fit(X, Y, WEIGHT)
    exact = model.estimator_.outputs_
    plain = clone(FOREST).fit(X[Y.event], exact, WEIGHT[Y.event])
    np.testing.assert_array_equal(model.estimator_.predict(X), plain.predict(X))


@pytest.mark.parametrize("bootstrap", [False, True])
def test_expansion_with_weights(bootstrap):
    """The expansion is the forest with weights of rows, too."""
    forest = OKRandomForest(10, bootstrap=bootstrap, min_samples_leaf=3, random_state=0)
    forest.fit(X, Y.time, WEIGHT)
    expansion = LeafExpansion(forest.trees_)
    L = expansion.rows(forest.apply(X))
    np.testing.assert_allclose(L @ (expansion.means @ Y.time), forest.predict(X), atol=1e-10)


@pytest.mark.parametrize("bootstrap", [False, True])
def test_training_leaves(bootstrap):
    """The leaves of training rows are those that the forest finds."""
    forest = OKRandomForest(10, bootstrap=bootstrap, min_samples_leaf=3, random_state=0)
    model = CensoredForest(forest).fit(X, Y)
    np.testing.assert_array_equal(model.training_leaves_, model.estimator_.apply(X))


def test_root_penalties():
    """The norm of the scaled adjustments is the norm of the changes times their penalties."""
    forest = clone(FOREST).fit(X, Y.time)
    expansion = LeafExpansion(forest.trees_)
    B = Adjustments.create(expansion.rows(forest.apply(X)), expansion.means, "both", 2.0, 0.1)
    v = np.random.default_rng(0).normal(size=B.size)
    leaves = B.leaf_values(v) - expansion.means @ B.outputs(v)
    expected = 0.1 * np.abs(B.outputs(v)).sum() + 2.0 / 8 * np.abs(leaves).sum()
    assert B.root_penalties() @ np.abs(v) == pytest.approx(expected)


def test_targets_of_all_kinds():
    """Structure "all" takes the middle of an interval, or its bound."""
    y = [[1.0, 1.0], [3.0, 3.0], [1.0, 3.0], [2.0, INF], [-INF, 2.0], [3.5, 4.0], [-INF, INF]]
    y = np.array(y)
    scale = Scale.learn(None, y)
    rows, targets = _targets(y, scale, "all", np.ones(7, dtype=bool))
    assert rows.tolist() == [True] * 6 + [False]
    assert targets[:6].tolist() == [1.0, 3.0, 2.0, 2.0, 2.0, 3.75]


def test_conditional_means_at_ties():
    """The mean is over times after the lower bound, up to the upper one."""
    y = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [2.0, INF], [1.0, 2.0], [2.2, 2.4]])
    exact = y[:3]
    found = _conditional_means(y[3:], exact, Scale.learn(None, exact))
    np.testing.assert_allclose(found, [3.0, 2.0, 2.3])


def test_infinite_outputs_stay_infinite():
    """Bounds that are missing are missing on every scale."""
    for name in ("km", "log", None):
        scale = Scale.learn(name, np.array([[1.0, 1.0], [2.0, 2.0], [0.0, 3.0]]))
        assert scale.forward(np.array([-INF, INF])).tolist() == [-INF, INF]


def test_log_scale_of_a_lower_bound_of_zero():
    """A lower bound of zero is none."""
    scale = Scale.learn("log", np.array([[0.0, 2.0], [1.0, 1.0]]))
    assert scale.forward(np.array([0.0, 1.0])).tolist() == [-INF, 0.0]


def test_inverse_of_the_scale():
    """Between times of the curve, the inverse is linear."""
    scale = Scale.learn("km", np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [4.0, 4.0]]))
    levels = np.array([0.0, 0.125, 0.25, 0.5, 0.9])
    np.testing.assert_allclose(scale.inverse(levels), [0, 0.5, 1, 2, 3.6])
    np.testing.assert_allclose(scale.place(scale.inverse(levels)), levels)
    assert scale.inverse(np.array(2.0)) == 4.0


def test_refit_again():
    """A second fit leaves nothing of the first one."""
    model = CensoredForest(FOREST, adjust="outputs").fit(X, Y)
    model.predict_survival_function(X[:3], return_array=True)
    size = len(pickle.dumps(model))
    assert size == len(pickle.dumps(CensoredForest(FOREST, adjust="outputs").fit(X, Y)))
    model.set_params(adjust="leaves").fit(X[:100], Y[:100])
    assert not hasattr(model, "refitted_outputs_")
    fresh = CensoredForest(FOREST).fit(X[:100], Y[:100])
    np.testing.assert_array_equal(
        model.predict_survival_function(X[:3], return_array=True),
        fresh.predict_survival_function(X[:3], return_array=True),
    )
    assert fresh.score(X, Y.time) > 0.5


def damage_leaves(kind, model):
    """Return the leaves of a model with one kind of damage."""
    leaves = model.training_leaves_.copy()
    if kind == "negative":
        leaves[0, 0] = -1
    elif kind == "inner":
        leaves[0, 0] = 0
    elif kind == "next":
        leaves[0, 0] = np.diff(model.estimator_.trees_.node_offsets)[0]
    elif kind == "last":
        leaves[0, -1] = np.diff(model.estimator_.trees_.node_offsets)[-1]
    elif kind == "floats":
        leaves = leaves.astype(float)
    elif kind == "columns":
        leaves = leaves[:, :-1]
    elif kind == "rows":
        leaves = leaves[:-1]
    return leaves


@pytest.mark.parametrize("kind", ["negative", "inner", "next", "last", "floats", "columns", "rows"])
def test_damaged_leaves(kind):
    """Damaged leaves are found when a model is read."""
    model = CensoredForest(FOREST).fit(X, Y)
    model.training_leaves_ = damage_leaves(kind, model)
    with pytest.raises(ValueError, match="training_leaves_"):
        model.check_state()


def test_damaged_forest_within():
    """A damaged forest is found when a model is read."""
    inputs, labels = load_iris(return_X_y=True)
    classes = OKExtraTrees(5, kernel="dirac", min_samples_leaf=2, random_state=0)
    for model in (
        CensoredForest(FOREST).fit(X, Y),
        SemiSupervisedForest(classes).fit(inputs, np.where(np.arange(150) % 3, -1, labels)),
        ForestKernel(classes).fit(inputs, labels),
    ):
        model.estimator_.trees_ = None
        with pytest.raises(ValueError, match="trees_"):
            model.check_state()


@pytest.mark.parametrize("adjust", ["leaves", "outputs", "both"])
def test_objective_of_a_linear_programme(adjust):
    """Far from the origin, and where nothing moves, the objective is the sum of distances."""
    pytest.importorskip("clarabel", reason="Clarabel is not installed")
    rng = np.random.default_rng(71)
    X = rng.normal(size=(60, 4))
    time = np.exp(X[:, 0] + 0.3 * rng.normal(size=60)) + 1e4
    y = np.column_stack([time, np.where(np.arange(60) % 3, time, np.inf)])
    forest = OKRandomForest(10, min_samples_leaf=5, random_state=1)
    parameters = {"adjust": adjust, "norm": "l1", "scale": None}
    model = CensoredForest(forest, leaf_penalty=1e4, output_penalty=100.0, **parameters).fit(X, y)
    f = model.estimator_.predict(X)
    distances = np.abs(f - np.clip(f, *y.T)).sum()
    assert model.objective_ == pytest.approx(distances, rel=1e-9)
    assert model.duality_gap_ <= 1e-6
    np.testing.assert_allclose(model.predict(X), f, atol=1e-6)
