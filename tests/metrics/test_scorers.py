"""Scorers in a fixed space: by definition, in scikit-learn's tools, and in a search of sigma."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from okforest import OKExtraTrees, OKTree
from okforest.kernels import RBF, FromCallable, Linear, Precomputed
from okforest.metrics import (
    kernel_loss,
    kernel_loss_scorer,
    kernel_r2,
    kernel_r2_scorer,
    make_kernel_scorer,
    make_output_scorer,
    output_loss,
    output_loss_scorer,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 4))
Y = np.c_[X[:, 0] + rng.normal(size=80), X[:, 1] ** 2]
WEIGHT = rng.uniform(size=40)
TEST = X[40:], Y[40:]
FOREST = OKExtraTrees(10, kernel=RBF(0.5), random_state=0)


def squared_distance(true, predicted):
    return ((true - predicted) ** 2).sum()


def same_sign(true, predicted):
    return bool(np.sign(true[0]) == np.sign(predicted[0]))


@pytest.fixture
def forest():
    return clone(FOREST).fit(X[:40], Y[:40])


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighted"])
def test_losses_in_the_space_of_another_kernel(forest, weight):
    """‖φ(y) − Σ wᵢ φ(yᵢ)‖², computed from Gram matrices of the reference kernel."""
    reference = RBF(2.0)
    w = forest.predict_weights(X[40:]).toarray()
    K, cross, test = reference(Y[:40]), reference(Y[:40], Y[40:]), reference(Y[40:])
    losses = 1 - 2 * np.diag(w @ cross) + np.diag(w @ K @ w.T)
    expected = np.average(losses, weights=weight)
    score = make_kernel_scorer(reference, "loss")(forest, *TEST, sample_weight=weight)
    assert score == pytest.approx(-expected)
    assert kernel_loss(forest, *TEST, weight, kernel=reference) == pytest.approx(expected)
    p = np.full(40, 1 / 40) if weight is None else weight / weight.sum()
    r2 = 1 - (p @ losses) / (1 - p @ test @ p)
    assert make_kernel_scorer(reference)(forest, *TEST, weight) == pytest.approx(r2)
    assert kernel_r2(forest, *TEST, weight, kernel=reference) == pytest.approx(r2)
    loss = output_loss(reference, Y[40:], forest.predict(X[40:]), weight)
    score = make_kernel_scorer(reference, metric="output_loss")(forest, *TEST, weight)
    assert score == pytest.approx(-loss)


def test_linear_reference_is_the_mean_of_outputs(forest):
    """In the space of the linear kernel a prediction is the weighted mean of training outputs."""
    means = forest.predict_weights(X[40:]) @ Y[:40]
    expected = r2_score(Y[40:], means, multioutput="variance_weighted")
    assert make_kernel_scorer("linear")(forest, *TEST) == pytest.approx(expected)


def test_own_kernel_as_reference_gives_the_own_scores(forest):
    """With the kernel of a model, the scorers measure in its own space."""
    for metric, scorer in (
        ("r2", kernel_r2_scorer),
        ("loss", kernel_loss_scorer),
        ("output_loss", output_loss_scorer),
    ):
        expected = scorer(forest, *TEST)
        assert make_kernel_scorer(RBF(0.5), metric)(forest, *TEST) == pytest.approx(expected)


def test_learnt_parameters_come_from_the_training_outputs(forest):
    """sigma="median" is the same for all candidates, whatever their kernels and the scored rows."""
    sigma = RBF().resolve(Y[:40]).sigma
    other = OKTree(kernel="linear", random_state=0).fit(X[:40], Y[:40])
    for metric in ("r2", "loss", "output_loss"):
        for model in (forest, other):
            fixed = make_kernel_scorer(RBF(sigma), metric)(model, X[40:50], Y[40:50])
            assert make_kernel_scorer(RBF(), metric)(model, X[40:50], Y[40:50]) == fixed


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighted"])
def test_mean_losses_of_outputs(forest, weight):
    """The mean of a user's loss, with a minus sign, or of a similarity, without."""
    predicted = forest.predict(X[40:])
    expected = 2 * mean_squared_error(Y[40:], predicted, sample_weight=weight)
    score = make_output_scorer(squared_distance)(forest, *TEST, sample_weight=weight)
    assert score == pytest.approx(-expected)
    share = np.average(np.sign(predicted[:, 0]) == np.sign(Y[40:, 0]), weights=weight)
    score = make_output_scorer(same_sign, greater_is_better=True)(forest, *TEST, weight)
    assert score == pytest.approx(share)


def test_outputs_reach_the_loss_in_the_form_of_predictions():
    """Frames become rows, lists stay objects, numbers are numbers."""
    seen = []

    def loss(true, predicted):
        seen.append((type(true), type(predicted)))
        return 0.0

    scorer = make_output_scorer(loss)
    assert scorer(OKTree().fit(X, pd.DataFrame(Y)), X[:1], pd.DataFrame(Y[:1])) == 0.0
    assert scorer(OKTree().fit(X, Y[:, 0]), X[:1], Y[:1, 0].tolist()) == 0.0
    words = FromCallable(lambda a, b: len(set(a) & set(b)), elementwise=True)
    assert scorer(OKTree(kernel=words).fit(X[:3], ["a", "b", "ab"]), X[:1], ["c"]) == 0.0
    assert seen == [(np.ndarray, np.ndarray), (np.float64, np.float64), (str, str)]


@pytest.mark.parametrize(
    "scorer",
    [
        make_kernel_scorer("linear"),
        make_kernel_scorer(RBF(), "loss"),
        make_kernel_scorer(RBF(1.0), "output_loss"),
        make_output_scorer(squared_distance),
    ],
    ids=repr,
)
def test_scikit_learns_tools(scorer, forest):
    """Pickles, clones, pipelines, cross-validation and parallel searches."""
    expected = scorer(forest, *TEST)
    for other in (pickle.loads(pickle.dumps(scorer)), clone(scorer, safe=False)):
        assert other(forest, *TEST) == expected
        assert repr(other) == repr(scorer)
    pipeline = make_pipeline(StandardScaler(), clone(FOREST))
    inside = clone(pipeline).fit(X[:40], Y[:40])
    alone = clone(FOREST).fit(inside[0].transform(X[:40]), Y[:40])
    assert scorer(inside, *TEST) == scorer(alone, inside[0].transform(X[40:]), Y[40:])
    results = cross_validate(pipeline, X, Y, cv=3, scoring={"mine": scorer, "r2": "r2"})
    np.testing.assert_array_equal(
        results["test_mine"], cross_val_score(pipeline, X, Y, cv=3, scoring=scorer)
    )
    grid = {"okextratrees__kernel__sigma": [0.1, 1.0]}
    searches = [
        clone(GridSearchCV(pipeline, grid, cv=3, scoring=scorer, n_jobs=n)).fit(X, Y)
        for n in (1, 2)
    ]
    first, second = (search.cv_results_["mean_test_score"] for search in searches)
    np.testing.assert_array_equal(first, second)
    assert np.isfinite(first).all()


def test_a_fitted_search_is_scored_by_its_best_model():
    """Scorers take a search, alone, in a pipeline or around one, and score its best model."""
    scorer = make_output_scorer(squared_distance)
    grid = {"min_samples_leaf": [1, 20]}
    search = GridSearchCV(FOREST, grid, scoring=scorer, cv=3).fit(X[:40], Y[:40])
    expected = scorer(search.best_estimator_, *TEST)
    assert scorer(search, *TEST) == expected
    assert make_kernel_scorer("linear")(search, *TEST) == pytest.approx(
        kernel_r2(search.best_estimator_, *TEST, kernel="linear")
    )
    scaled = make_pipeline(StandardScaler(), GridSearchCV(FOREST, grid, scoring=scorer, cv=3))
    scaled.fit(X[:40], Y[:40])
    best = scaled[-1].best_estimator_
    assert scorer(scaled, *TEST) == scorer(best, scaled[:-1].transform(TEST[0]), TEST[1])
    around = GridSearchCV(
        make_pipeline(StandardScaler(), FOREST), {"okextratrees__max_depth": [1, 5]}, cv=3
    )
    around.fit(X[:40], Y[:40])
    assert scorer(around, *TEST) == scorer(around.best_estimator_, *TEST)


@pytest.mark.parametrize("scorer", [make_kernel_scorer("linear"), make_output_scorer(same_sign)])
@pytest.mark.parametrize("several", [False, True])
def test_sample_weights_in_searches(scorer, several):
    """Rows of weight zero do not count in the scores of a search, with one scorer or several."""
    weight = np.r_[np.ones(60), np.zeros(20)]
    tree = OKTree(kernel=RBF(1.0), max_depth=3, random_state=0)
    folds = [(np.arange(40), np.arange(40, 80))]
    search = GridSearchCV(
        tree,
        {"max_depth": [2, 3]},
        scoring={"score": scorer} if several else scorer,
        refit="score" if several else True,
        cv=folds,
    ).fit(X, Y, sample_weight=weight)
    expected = [
        scorer(clone(tree).set_params(max_depth=depth).fit(X[:40], Y[:40]), X[40:60], Y[40:60])
        for depth in (2, 3)
    ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected)


def test_metadata_routing():
    """With routing enabled, a scorer gets the weights that it has requested."""
    weight = rng.uniform(size=80)
    tree = OKTree(random_state=0)
    folds = [(np.arange(40), np.arange(40, 80))]
    with sklearn.config_context(enable_metadata_routing=True):
        tree.set_fit_request(sample_weight=True)
        scores = {
            wanted: cross_val_score(
                tree,
                X,
                Y,
                cv=folds,
                scoring=make_kernel_scorer("linear").set_score_request(sample_weight=wanted),
                params={"sample_weight": weight},
            )[0]
            for wanted in (True, False)
        }
    fitted = OKTree(random_state=0).fit(X[:40], Y[:40], weight[:40])
    assert scores[True] == pytest.approx(kernel_r2(fitted, *TEST, weight[40:]))
    assert scores[False] == pytest.approx(kernel_r2(fitted, *TEST))


def test_clones_share_large_matrices():
    """A search that is cloned does not copy the reference kernel's Gram matrix."""
    K = Y @ Y.T
    scorer = make_kernel_scorer(Precomputed(K))
    assert clone(GridSearchCV(OKTree(), {}, scoring=scorer)).scoring.kernel.gram is K


def test_representations():
    """A scorer is shown as the call that makes it."""
    assert repr(make_kernel_scorer("linear")) == "make_kernel_scorer(Linear(), metric='r2')"
    assert repr(make_output_scorer(same_sign)) == "make_output_scorer(same_sign)"
    expected = "make_output_scorer(same_sign, greater_is_better=True)"
    assert repr(make_output_scorer(same_sign, greater_is_better=True)) == expected


def test_bad_scorers(forest):
    with pytest.raises(ValueError, match=r"'metric' parameter of make_kernel_scorer .* Got 'mse'"):
        make_kernel_scorer("linear", "mse")
    with pytest.raises(ValueError, match="kernel='gauss' is not known"):
        make_kernel_scorer("gauss")
    with pytest.raises(ValueError, match="loss='mse' is not a function; pass a function of a true"):
        make_output_scorer("mse")
    with pytest.raises(ValueError, match=r"returned array\(\[.*it must return a number"):
        make_output_scorer(lambda a, b: a - b)(forest, *TEST)
    with pytest.raises(ValueError, match="returned None for two outputs"):
        make_output_scorer(lambda a, b: None)(forest, *TEST)
    with pytest.raises(ValueError, match="must hold integer positions"):
        make_kernel_scorer(Precomputed(np.eye(3)))(forest, *TEST)
    for scorer in (make_kernel_scorer("linear"), make_output_scorer(squared_distance)):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            scorer(forest, X, Y[:-1])


def test_a_search_of_sigma_by_own_scores_warns():
    """Each sigma would be judged in its own space; fixed-space scorers do not warn."""
    pipeline = make_pipeline(StandardScaler(), OKTree(kernel=RBF(), random_state=0))
    message = "the kernel of this OKTree was changed by set_params.*scoring=make_kernel_scorer"
    for model, name in ((pipeline[-1], ""), (pipeline, "oktree__")):
        for scoring in (None, kernel_r2_scorer, kernel_loss_scorer, output_loss_scorer):
            grid = {f"{name}kernel__sigma": [1.0, 2.0]}
            with pytest.warns(UserWarning, match=message):
                GridSearchCV(model, grid, cv=2, scoring=scoring).fit(X, Y)
    with pytest.warns(UserWarning, match=message):
        GridSearchCV(pipeline[-1], {"kernel": [Linear(), RBF()]}, cv=2).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scoring in (make_kernel_scorer(RBF()), make_output_scorer(squared_distance)):
            GridSearchCV(pipeline, grid, cv=2, scoring=scoring).fit(X, Y).score(X, Y)
        GridSearchCV(pipeline, {"oktree__max_depth": [2, 3]}, cv=2).fit(X, Y)
        changed = clone(pipeline[-1]).set_params(kernel__sigma=2.0)
        cross_val_score(changed, X, Y)
        kernel_r2(changed.fit(X, Y), X, Y)


def test_sigma_of_completed_digits():
    """On digits, own scores prefer the widest kernel, and scores in a fixed space do not."""
    images = load_digits().data[:600] / 16
    upper, lower = images[:, :32], images[:, 32:]
    sigmas = [0.125, 2.0, 128.0]
    search = GridSearchCV(
        OKExtraTrees(20, kernel=RBF(), random_state=0),
        {"kernel__sigma": sigmas},
        cv=3,
        scoring={
            "own": lambda *args: kernel_r2(*args),
            "own_outputs": lambda model, X, y: -output_loss(model.kernel_, y, model.predict(X)),
            "fixed": make_kernel_scorer(RBF()),
            "fixed_outputs": make_kernel_scorer(RBF(), "output_loss"),
            "outputs": make_output_scorer(squared_distance),
        },
        refit=False,
    ).fit(upper, lower)
    best = {
        name: sigmas[np.argmax(search.cv_results_[f"mean_test_{name}"])] for name in search.scorer_
    }
    assert best["own"] == best["own_outputs"] == 128.0
    assert best["fixed_outputs"] == best["outputs"] == 2.0
    scores = search.cv_results_  # the same predictions, judged differently
    assert np.ptp(scores["mean_test_own"][1:]) > 5 * np.ptp(scores["mean_test_fixed"][1:])
