"""Warm starts, refits, callbacks, progress, seeds and errors of boosting."""

import numpy as np
import pytest

from okforest import OKBoost, OKNeighbors, OKRidge
from okforest._utils import inputs, resources
from okforest.kernels import RBF

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 4))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 2] > 0] + 0.5 * rng.normal(size=(80, 2))
KERNELS = [pytest.param("linear", id="vectors"), pytest.param(RBF(1.0), id="gram")]


def assert_equal_models(a, b):
    for name, value in vars(a).items():
        if isinstance(value, np.ndarray):
            assert np.array_equal(value, getattr(b, name)), name
    for name, array in vars(a.trees_).items():
        assert np.array_equal(array, getattr(b.trees_, name)), name


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "params", [{}, {"subsample": 0.5}, {"n_iter_no_change": 100}], ids=["all", "some", "held out"]
)
def test_a_warm_start_gives_the_model_of_a_single_fit(kernel, params):
    """The model does not depend on the number of fits."""
    at_once = OKBoost(9, kernel=kernel, random_state=3, **params).fit(X, Y)
    model = OKBoost(4, kernel=kernel, random_state=3, warm_start=True, **params).fit(X, Y)
    model.set_params(n_estimators=9).fit(X, Y)
    assert_equal_models(at_once, model)
    assert len(model.train_loss_) == model.n_estimators_ == 9


def test_warm_starts_are_checked():
    """Different data, a different kernel or fewer rounds are errors."""
    model = OKBoost(4, random_state=0, warm_start=True).fit(X, Y)
    with pytest.warns(UserWarning, match="adds no rounds"):
        model.fit(X, Y)
    with pytest.raises(ValueError, match=r"less than the 4 rounds so far.* can only increase"):
        model.set_params(n_estimators=3).fit(X, Y)
    model.set_params(n_estimators=6)
    for X_new, Y_new, weight, message in (
        (X[:70], Y[:70], None, "X has 70 rows and differs from the previous fit"),
        (-X, Y, None, "X differs from the previous fit"),
        (X, -Y, None, "y differs from the previous fit"),
        (X, Y, np.arange(1.0, 81.0), "sample_weight differs from the previous fit"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X_new, Y_new, weight)
    with pytest.raises(ValueError, match="kernel differs from the previous fit"):
        model.set_params(kernel=RBF(1.0)).fit(X, Y)
    with pytest.raises(
        ValueError, match="n_iter_no_change, which decides the rows held out, differs"
    ):
        model.set_params(kernel="linear", n_iter_no_change=3).fit(X, Y)
    with pytest.raises(ValueError, match="base differs from the previous fit"):
        model.set_params(n_iter_no_change=None, base=OKRidge()).fit(X, Y)
    assert model.n_estimators_ == 4


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_warm_start_after_early_stopping(kernel):
    """No rounds are added, unless the rule changes; then the model equals a single fit."""
    params = {"kernel": kernel, "learning_rate": 0.1, "random_state": 0}
    model = OKBoost(60, n_iter_no_change=3, tol=0.1, warm_start=True, **params).fit(X, Y)
    stopped = model.n_estimators_
    assert stopped < 20
    model.set_params(n_estimators=80)
    with pytest.warns(UserWarning, match=f"stopped early after {stopped} rounds. Increase n_iter"):
        model.fit(X, Y)
    assert model.n_estimators_ == stopped == len(model.train_loss_)
    for changed in ({"n_iter_no_change": 6}, {"n_iter_no_change": 6, "tol": 0.0}):
        model.set_params(**changed).fit(X, Y)
        at_once = OKBoost(80, **{"tol": 0.1} | changed, **params).fit(X, Y)
        assert stopped < model.n_estimators_ == at_once.n_estimators_
        assert_equal_models(at_once, model)
        stopped = model.n_estimators_


def test_an_interrupted_warm_start_keeps_the_model():
    """Attributes are written at the end of a fit."""

    def interrupt(done):
        if done == 6:
            raise KeyboardInterrupt

    model = OKBoost(4, random_state=0, warm_start=True).fit(X, Y)
    before = model.predict(X)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(n_estimators=9, callback=interrupt).fit(X, Y)
    assert model.n_estimators_ == len(model.train_loss_) == 4
    np.testing.assert_array_equal(model.predict(X), before)
    model.set_params(callback=None).fit(X, Y)
    assert_equal_models(OKBoost(9, random_state=0).fit(X, Y), model)


def test_seed_and_threads():
    """The same seed gives the same model for any number of threads."""
    params = {"splitter": "random", "max_features": 2, "subsample": 0.7, "n_iter_no_change": 50}
    a = OKBoost(8, random_state=1, n_jobs=1, **params).fit(X, Y)
    b = OKBoost(8, random_state=1, n_jobs=3, **params).fit(X, Y)
    c = OKBoost(8, random_state=2, **params).fit(X, Y)
    np.testing.assert_array_equal(a.predict(X), b.predict(X))
    assert not np.array_equal(a.predict(X), c.predict(X))


def test_the_callback_is_called_after_each_round():
    """It gets the number of rounds so far, and an exception that it raises ends the fit."""
    seen = []
    model = OKBoost(5, callback=seen.append, warm_start=True).fit(X, Y)
    model.set_params(n_estimators=7).fit(X, Y)
    assert seen == [1, 2, 3, 4, 5, 6, 7]

    def interrupt(done):
        if done == 2:
            raise KeyboardInterrupt

    model = OKBoost(20, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert not hasattr(model, "trees_")


def test_the_progress_bar_ends_its_line(capsys):
    """It does after the last round, after early stopping and after an exception."""
    OKBoost(7, verbose=1).fit(X, Y)
    shown = capsys.readouterr().err
    assert "boosting rounds" in shown
    assert "7/7" in shown
    assert shown.endswith("\n")
    model = OKBoost(90, n_iter_no_change=3, tol=0.1, verbose=1, random_state=0).fit(X, Y)
    shown = capsys.readouterr().err
    assert f"{model.n_estimators_}/90" in shown
    assert shown.endswith("\n")

    def fail(done):
        if done == 4:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        OKBoost(20, verbose=1, callback=fail).fit(X, Y)
    shown = capsys.readouterr().err
    assert "4/20" in shown
    assert shown.endswith("\n")
    OKBoost(3).fit(X, Y)
    assert capsys.readouterr().err == ""


def test_a_refit_removes_the_attributes_of_the_previous_fit():
    """None of them stays."""
    model = OKBoost(4, n_iter_no_change=50, subsample=0.5, kernel=RBF(1.0)).fit(X, Y)
    assert len(model.validation_loss_) == len(model.oob_improvement_) == 4
    model.set_params(n_iter_no_change=None, subsample=1.0, base=OKNeighbors(3)).fit(X, Y)
    names = ("validation_loss_", "oob_improvement_", "trees_", "leaf_coefficients_", "categories_")
    assert [name for name in names if hasattr(model, name)] == []
    model.set_params(base="tree", kernel="linear").fit(X, Y)
    names = ("bases_", "inputs_", "leaf_coefficients_")
    assert [name for name in names if hasattr(model, name)] == []


@pytest.mark.parametrize("base", ["tree", OKNeighbors(3)], ids=["trees", "neighbours"])
def test_inputs_are_validated_once(base, monkeypatch):
    """By OKBoost; base learners validate what they are given."""
    validated = []
    validate = inputs.validate_data

    def count(estimator, *args, **kwargs):
        validated.append(type(estimator).__name__)
        return validate(estimator, *args, **kwargs)

    monkeypatch.setattr(inputs, "validate_data", count)
    model = OKBoost(2, base=base).fit(X, Y)
    assert validated.count("OKBoost") == 1
    list(model.staged_score(X.tolist(), Y))  # a plain array may need no validation
    assert validated.count("OKBoost") == 2


def test_staged_predictions_by_steps():
    """With step=3, predictions after rounds 3, 6, … and after the last."""
    model = OKBoost(7, random_state=0).fit(X, Y)
    every = list(model.staged_predict(X))
    every_third = list(model.staged_predict(X, step=3))
    for m, predicted in zip((3, 6, 7), every_third, strict=True):
        np.testing.assert_array_equal(predicted, every[m - 1])


@pytest.mark.parametrize("step", [0, -1, 2.5, True, "10", None])
def test_steps_are_positive_integers(step):
    """Other steps are errors when the method is called, not when the first stage is asked for."""
    model = OKBoost(2, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=r"step=.*; use a positive integer, such as step=10"):
        model.staged_predict(X, step=step)


def test_inputs_of_stages_are_checked_when_the_method_is_called():
    """Not when the first stage is asked for."""
    model = OKBoost(2, random_state=0).fit(X, Y)
    for stages in (
        lambda: model.staged_predict(X[:, :3]),
        lambda: model.staged_weights(X[:, :3]),
        lambda: model.staged_losses(X[:, :3], Y),
        lambda: model.staged_score(X[:, :3], Y),
    ):
        with pytest.raises(ValueError, match="X has 3 features, but OKBoost is expecting 4"):
            stages()


def test_weights_that_do_not_fit_in_memory(monkeypatch):
    """They are refused, with advice, before they are computed."""
    model = OKBoost(3, random_state=0).fit(X, Y)
    monkeypatch.setattr(resources, "machine_memory", lambda: 12 * 80 * 80)
    with pytest.raises(MemoryError, match=r"80 predictions over 80 .* Predict fewer rows"):
        model.predict_weights(X)


def test_approximate_embeddings():
    """Approximate factors need no Gram matrix, and predictions use the exact kernel."""
    exact = OKBoost(20, kernel=RBF(1.0), random_state=0).fit(X, Y)
    for embedding in ("cholesky", "nystrom"):
        model = OKBoost(
            20, kernel=RBF(1.0), embedding=embedding, embedding_rank=60, random_state=0
        ).fit(X, Y)
        assert model.embedding_ == embedding
        assert model.embedding_rank_ <= 60
        assert model.score(X, Y) == pytest.approx(exact.score(X, Y), abs=0.05)
