"""Early stopping, subsampling, going on, callbacks and errors of boosting."""

import numpy as np
import pytest
import scipy.sparse as sp

from okforest import OKBoost
from okforest.kernels import RBF
from okforest.metrics import kernel_loss

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 4))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 2] > 0] + 0.5 * rng.normal(size=(80, 2))
KERNELS = [pytest.param("linear", id="vectors"), pytest.param(RBF(1.0), id="gram")]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "params", [{}, {"subsample": 0.5}, {"n_iter_no_change": 100}], ids=["all", "some", "held out"]
)
def test_going_on_gives_the_model_fitted_at_once(kernel, params):
    """warm_start adds rounds; the model does not depend on the steps."""
    at_once = OKBoost(9, kernel=kernel, random_state=3, **params).fit(X, Y)
    model = OKBoost(4, kernel=kernel, random_state=3, warm_start=True, **params).fit(X, Y)
    model.set_params(n_estimators=9).fit(X, Y)
    for name, value in vars(at_once).items():
        if isinstance(value, np.ndarray):
            assert np.array_equal(value, getattr(model, name)), name
    for name, array in vars(at_once.trees_).items():
        assert np.array_equal(array, getattr(model.trees_, name)), name
    assert len(model.train_loss_) == model.n_estimators_ == 9


def test_going_on_is_checked():
    """Another training set, or fewer rounds, are refused."""
    model = OKBoost(4, random_state=0, warm_start=True).fit(X, Y)
    with pytest.warns(UserWarning, match="adds no rounds"):
        model.fit(X, Y)
    with pytest.raises(ValueError, match="less than the 4 rounds so far"):
        model.set_params(n_estimators=3).fit(X, Y)
    model.set_params(n_estimators=6)
    for X_new, Y_new, weight, message in (
        (X[:70], Y[:70], None, "X has 70 rows, other than before"),
        (-X, Y, None, "X is another than before"),
        (X, -Y, None, "y is another than before"),
        (X, Y, np.arange(1.0, 81.0), "sample_weight is another than before"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X_new, Y_new, weight)
    with pytest.raises(ValueError, match="kernel is another than before"):
        model.set_params(kernel=RBF(1.0)).fit(X, Y)
    with pytest.raises(ValueError, match="n_iter_no_change is other"):
        model.set_params(kernel="linear", n_iter_no_change=3).fit(X, Y)
    assert model.n_estimators_ == 4


def test_a_loss_that_stays_equal_stops_the_rounds():
    """A round that changes nothing has not reduced the loss, with tol=0 and a loss of zero, too."""
    constant = OKBoost(100, n_iter_no_change=3, random_state=0).fit(X, np.ones(80))
    assert constant.n_estimators_ == 3
    no_split = OKBoost(100, n_iter_no_change=4, tol=0.0, min_samples_leaf=0.6, random_state=0)
    assert no_split.fit(X, Y).n_estimators_ == 4


def test_classes_that_only_held_out_rows_have():
    """Their loss is counted in full, though no explicit feature shows them."""
    params = {"kernel": "dirac", "n_iter_no_change": 50, "random_state": 0}
    labels = np.where(X[:, 0] > 0, "a", "b").astype("<U4")
    held_out = OKBoost(2, **params).fit(X, labels).held_out_
    labels[np.flatnonzero(held_out)[:3]] = "rare"
    model = OKBoost(6, **params).fit(X, labels)
    stages = [losses.mean() for losses in model.staged_losses(X[held_out], labels[held_out])]
    np.testing.assert_allclose(model.validation_loss_, stages)


def test_staged_predictions_by_steps():
    """With step, those of every so many rounds, and of the last."""
    model = OKBoost(7, random_state=0).fit(X, Y)
    every = list(model.staged_predict(X))
    some = list(model.staged_predict(X, step=3))
    for m, predicted in zip((3, 6, 7), some, strict=True):
        np.testing.assert_array_equal(predicted, every[m - 1])


@pytest.mark.parametrize("kernel", KERNELS)
def test_early_stopping_by_hand(kernel):
    """The validation loss is that of the rows held out, in H; rounds stop when it stalls."""
    model = OKBoost(
        400,
        kernel=kernel,
        learning_rate=0.3,
        n_iter_no_change=5,
        validation_fraction=0.25,
        tol=0.01,
        random_state=0,
    ).fit(X, Y)
    held_out = model.held_out_
    assert held_out.sum() == 20
    assert (model.predict_weights(X).toarray()[:, held_out] == 0).all()
    stages = [losses.mean() for losses in model.staged_losses(X[held_out], Y[held_out])]
    np.testing.assert_allclose(model.validation_loss_, stages)
    np.testing.assert_allclose(
        model.train_loss_[-1], kernel_loss(model, X[~held_out], Y[~held_out])
    )
    mean = Y[~held_out].mean(axis=0)
    n = model.n_estimators_
    assert n < 400
    if kernel == "linear":
        first = ((Y[held_out] - mean) ** 2).sum(axis=1).mean()
        losses = [first, *model.validation_loss_]
        stalled = [
            min(losses[m - 4 : m + 1]) > min(losses[: m - 4]) - 0.01 * first
            for m in range(5, n + 1)
        ]
        assert stalled == [False] * (n - 5) + [True]


def test_validation_loss_is_weighted():
    """A row of weight 3 counts three times in it."""
    weight = rng.integers(1, 4, 80).astype(float)
    model = OKBoost(4, n_iter_no_change=50, random_state=0).fit(X, Y, weight)
    held_out = model.held_out_
    loss = kernel_loss(model, X[held_out], Y[held_out], weight[held_out])
    assert model.validation_loss_[-1] == pytest.approx(loss)


def test_held_out_rows_are_not_learnt_from():
    """The model is that of the other rows alone, whatever the outputs of those held out."""
    model = OKBoost(5, n_iter_no_change=100, random_state=0).fit(X, Y)
    changed = np.where(model.held_out_[:, None], 1e3, Y)
    other = OKBoost(5, n_iter_no_change=100, random_state=0).fit(X, changed)
    np.testing.assert_allclose(other.predict(X), model.predict(X), atol=1e-10)
    assert not np.allclose(other.validation_loss_, model.validation_loss_)


@pytest.mark.parametrize("kernel", KERNELS)
def test_out_of_bag_improvement_by_hand(kernel):
    """It is the reduction of the loss of the rows that a round does not see."""
    weight = rng.integers(1, 4, 80).astype(float)
    model = OKBoost(6, kernel=kernel, subsample=0.5, random_state=0).fit(X, Y, weight)
    span = model.span_
    losses = [span.losses(sp.csr_array(np.tile(weight / weight.sum(), (80, 1))), Y)]
    losses += [span.losses(W, Y) for W in model.staged_weights(X)]
    for m in range(6):
        members = model.trees_[m].members
        assert len(members) == 40
        unseen = ~np.isin(np.arange(80), members)
        change = np.average((losses[m] - losses[m + 1])[unseen], weights=weight[unseen])
        assert model.oob_improvement_[m] == pytest.approx(change)
    assert not hasattr(OKBoost(2).fit(X, Y), "oob_improvement_")


def test_seed_and_threads():
    """The same seed gives the same model, whatever the number of threads."""
    params = {"splitter": "random", "max_features": 2, "subsample": 0.7, "n_iter_no_change": 50}
    a = OKBoost(8, random_state=1, n_jobs=1, **params).fit(X, Y)
    b = OKBoost(8, random_state=1, n_jobs=3, **params).fit(X, Y)
    c = OKBoost(8, random_state=2, **params).fit(X, Y)
    np.testing.assert_array_equal(a.predict(X), b.predict(X))
    assert not np.array_equal(a.predict(X), c.predict(X))


def test_callback_sees_every_round_and_can_stop(capsys):
    """The callback is called with the number of rounds; its exception ends the fit."""
    seen = []
    model = OKBoost(5, callback=seen.append, warm_start=True, verbose=1).fit(X, Y)
    model.set_params(n_estimators=7).fit(X, Y)
    assert seen == [1, 2, 3, 4, 5, 6, 7]
    assert "7/7" in capsys.readouterr().err

    def interrupt(done):
        if done == 2:
            raise KeyboardInterrupt

    model = OKBoost(20, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert not hasattr(model, "trees_")


def test_refit_without_early_stopping_forgets_it():
    """No attribute of an earlier fit stays."""
    model = OKBoost(4, n_iter_no_change=50, subsample=0.5).fit(X, Y)
    assert len(model.validation_loss_) == len(model.oob_improvement_) == 4
    model.set_params(n_iter_no_change=None, subsample=1.0).fit(X, Y)
    assert not hasattr(model, "validation_loss_")
    assert not hasattr(model, "oob_improvement_")
    with pytest.raises(ValueError, match="Negative values"):
        model.fit(X, Y, -np.ones(80))
    assert not hasattr(model, "trees_")


def test_too_few_rows_to_hold_out():
    """A validation set that leaves nothing to learn from is refused."""
    model = OKBoost(3, n_iter_no_change=2, validation_fraction=0.9)
    with pytest.raises(ValueError, match="leaves 1 of 10 rows to learn from"):
        model.fit(X[:10], Y[:10])


def test_approximate_embeddings():
    """Approximate factors need no Gram matrix; predictions are made with the true kernel."""
    exact = OKBoost(20, kernel=RBF(1.0), random_state=0).fit(X, Y)
    for embedding in ("cholesky", "nystrom"):
        model = OKBoost(
            20, kernel=RBF(1.0), embedding=embedding, embedding_rank=60, random_state=0
        ).fit(X, Y)
        assert model.embedding_ == embedding
        assert model.embedding_rank_ <= 60
        assert model.score(X, Y) == pytest.approx(exact.score(X, Y), abs=0.05)
