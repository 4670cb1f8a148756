"""Early stopping, the validation loss, subsampling and out-of-bag improvements of boosting."""

import numpy as np
import pytest
import scipy.sparse as sp

from okforest import OKBoost
from okforest.kernels import RBF
from okforest.metrics import kernel_loss
from okforest.models.boosting.rounds import EarlyStopping

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 4))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 2] > 0] + 0.5 * rng.normal(size=(80, 2))
KERNELS = [pytest.param("linear", id="vectors"), pytest.param(RBF(1.0), id="gram")]


@pytest.mark.parametrize(
    ("n_iter_no_change", "tol", "losses", "stops"),
    [
        # Reductions of exactly tol times the first loss (8 × 1/8 = 1) are not enough.
        (1, 0.125, [8.0, 7.0], True),
        (1, 0.125, [8.0, 6.875], False),
        (1, 0.125, [8.0, 4.0, 3.0], True),
        (1, 0.125, [8.0, 4.0, 2.75], False),
        (1, 0.25, [8.0, 4.0, 2.75], True),
        # Without tol any reduction counts, and equal losses stop.
        (1, 0.0, [8.0, 8.0], True),
        (1, 0.0, [8.0, float(np.nextafter(8.0, 0.0))], False),
        (1, 0.0, [0.0, 0.0], True),
        # The best of the last rounds is compared with the best of all before.
        (2, 0.125, [8.0, 7.0], False),
        (2, 0.125, [8.0, 7.0, 7.5], True),
        (2, 0.125, [8.0, 6.5, 7.5], False),
        (2, 0.125, [8.0, 4.0, 5.0, 3.0], True),
        (2, 0.125, [8.0, 4.0, 2.5, 3.5], False),
        (2, 0.125, [8.0, 4.0, 5.0, 6.0, 2.5], False),
        (3, 0.125, [8.0, 4.0, 5.0], False),
    ],
)
def test_the_rule(n_iter_no_change, tol, losses, stops):
    """Numbers that binary floats represent exactly, on both sides of every boundary."""
    assert EarlyStopping(n_iter_no_change, tol).reached(losses) is stops


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("n", "tol"), [(1, 0.01), (2, 0.02), (5, 0.0), (5, 0.01), (5, 0.05)])
def test_rounds_stop_by_the_rule(kernel, n, tol):
    """A fit has the first rounds of a fit that does not stop, up to where the rule says."""
    params = {"kernel": kernel, "learning_rate": 0.05, "validation_fraction": 0.25}
    full = OKBoost(60, n_iter_no_change=60, **params, random_state=0).fit(X, Y)
    held_out = full.held_out_
    mean = sp.csr_array(np.tile(full.row_weight_ / full.row_weight_.sum(), (held_out.sum(), 1)))
    losses = [full.span_.losses(mean, Y[held_out]).mean(), *full.validation_loss_]
    stalled = [
        min(losses[m - n + 1 : m + 1]) >= min(losses[: m - n + 1]) - tol * losses[0]
        for m in range(n, 61)
    ]
    expected = n + stalled.index(True)
    model = OKBoost(60, n_iter_no_change=n, tol=tol, **params, random_state=0).fit(X, Y)
    assert model.n_estimators_ == expected < 60
    np.testing.assert_array_equal(model.validation_loss_, full.validation_loss_[:expected])


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_validation_loss_is_that_of_the_rows_held_out(kernel):
    """It is measured in feature space after each round, like the training loss."""
    params = {"learning_rate": 0.3, "n_iter_no_change": 50, "validation_fraction": 0.25}
    model = OKBoost(20, kernel=kernel, random_state=0, **params).fit(X, Y)
    held_out = model.held_out_
    assert held_out.sum() == 20
    assert (model.predict_weights(X).toarray()[:, held_out] == 0).all()
    stages = [losses.mean() for losses in model.staged_losses(X[held_out], Y[held_out])]
    np.testing.assert_allclose(model.validation_loss_, stages)
    loss = kernel_loss(model, X[~held_out], Y[~held_out])
    assert model.train_loss_[-1] == pytest.approx(loss)


def test_equal_losses_stop_the_rounds():
    """Rounds that change nothing stop, also with tol=0 and with a loss of zero."""
    # Sums of threes are exact, whatever their order, so that residuals are exactly zero.
    constant = OKBoost(100, n_iter_no_change=3, random_state=0).fit(X, np.full(80, 3.0))
    assert constant.n_estimators_ == 3
    no_split = OKBoost(100, n_iter_no_change=4, tol=0.0, min_samples_leaf=0.6, random_state=0)
    assert no_split.fit(X, Y).n_estimators_ == 4


def test_the_validation_loss_is_weighted():
    """A row of weight 3 counts three times."""
    weight = rng.integers(1, 4, 80).astype(float)
    model = OKBoost(4, n_iter_no_change=50, random_state=0).fit(X, Y, weight)
    held_out = model.held_out_
    loss = kernel_loss(model, X[held_out], Y[held_out], weight[held_out])
    assert model.validation_loss_[-1] == pytest.approx(loss)


def test_held_out_rows_are_not_learnt_from():
    """The model does not depend on their outputs, but the validation loss does."""
    model = OKBoost(5, n_iter_no_change=100, random_state=0).fit(X, Y)
    changed = np.where(model.held_out_[:, None], 1e3, Y)
    other = OKBoost(5, n_iter_no_change=100, random_state=0).fit(X, changed)
    np.testing.assert_allclose(other.predict(X), model.predict(X), atol=1e-10)
    assert not np.allclose(other.validation_loss_, model.validation_loss_)


def test_classes_of_held_out_rows_only():
    """Their loss is counted in full, although no explicit feature represents them."""
    params = {"kernel": "dirac", "n_iter_no_change": 50, "random_state": 0}
    labels = np.where(X[:, 0] > 0, "a", "b").astype("<U4")
    held_out = OKBoost(2, **params).fit(X, labels).held_out_
    labels[np.flatnonzero(held_out)[:3]] = "rare"
    model = OKBoost(6, **params).fit(X, labels)
    stages = [losses.mean() for losses in model.staged_losses(X[held_out], labels[held_out])]
    np.testing.assert_allclose(model.validation_loss_, stages)


def test_too_few_rows_to_hold_out():
    """A validation set must leave two rows to learn from."""
    model = OKBoost(3, n_iter_no_change=2, validation_fraction=0.9)
    with pytest.raises(ValueError, match=r"leaves 1 of 10 rows to learn from.*Lower it, or set"):
        model.fit(X[:10], Y[:10])


@pytest.mark.parametrize("kernel", KERNELS)
def test_out_of_bag_improvement(kernel):
    """It is the reduction of the loss of the rows that were not drawn for a round."""
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


def test_out_of_bag_improvement_after_warm_starts():
    """There is one entry per round; it is NaN for rounds that used all rows."""
    model = OKBoost(2, random_state=0, warm_start=True).fit(X, Y)
    assert not hasattr(model, "oob_improvement_")
    for n_estimators, subsample in ((5, 0.5), (7, 1.0), (8, 0.5)):
        model.set_params(n_estimators=n_estimators, subsample=subsample).fit(X, Y)
    used_all = np.array([True, True, False, False, False, True, True, False])
    np.testing.assert_array_equal(np.isnan(model.oob_improvement_), used_all)
    first = OKBoost(5, random_state=0, subsample=0.5).fit(X, Y).oob_improvement_
    assert len(first) == 5
    model = OKBoost(3, random_state=0, subsample=0.5, warm_start=True).fit(X, Y)
    model.set_params(n_estimators=5, subsample=1.0).fit(X, Y)
    np.testing.assert_array_equal(model.oob_improvement_, [*first[:3], np.nan, np.nan])
