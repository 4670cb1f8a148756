"""Which pruning is chosen by cross-validation, recomputed fold by fold."""

import numpy as np
import pytest
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeRegressor

from okforest import OKExtraTrees, OKTree, select_ccp_alpha
from okforest.metrics import kernel_loss

rng = np.random.default_rng(29)
X = rng.uniform(size=(120, 3))
Y = 3 * X[:, 0] + 2 * X[:, 1] * X[:, 2] + 0.6 * rng.normal(size=120)
TREE = OKTree(min_samples_leaf=5, random_state=0)
FOLDS = KFold(4)


def losses_of_folds(alphas):
    """Return the losses of trees fitted with each alpha, of shape (folds, alphas)."""
    return np.array(
        [
            [
                kernel_loss(
                    OKTree(min_samples_leaf=5, random_state=0, ccp_alpha=alpha).fit(
                        X[train], Y[train]
                    ),
                    X[test],
                    Y[test],
                )
                for alpha in alphas
            ]
            for train, test in FOLDS.split(X)
        ]
    )


def test_candidates_are_geometric_means():
    """A pruning is tried by the geometric mean of the alphas between which it is optimal."""
    path = TREE.cost_complexity_pruning_path(X, Y).ccp_alphas
    alphas = select_ccp_alpha(TREE, X, Y, cv=FOLDS).values
    assert 5 < len(path) < 100
    assert len(alphas) == len(path)
    for alpha, low, high in zip(alphas, path, path[1:], strict=False):
        assert alpha**2 == pytest.approx(low * high, rel=1e-12)
    assert alphas[-1] == path[-1]


def test_losses_and_standard_errors():
    """Means over folds, and standard deviations divided by the root of their number."""
    choice = select_ccp_alpha(TREE, X, Y, cv=FOLDS)
    folds = losses_of_folds(choice.values)
    np.testing.assert_allclose(choice.losses, folds.mean(axis=0))
    np.testing.assert_allclose(choice.standard_errors, folds.std(axis=0, ddof=1) / np.sqrt(4))


def test_one_standard_error_rule():
    """The largest alpha whose loss is within a standard error of the smallest loss."""
    choice = select_ccp_alpha(TREE, X, Y, cv=FOLDS)
    rule = select_ccp_alpha(TREE, X, Y, cv=FOLDS, one_standard_error=True)
    best = choice.losses.argmin()
    assert choice.best == choice.values[choice.losses == choice.losses[best]].max()
    within = choice.losses <= choice.losses[best] + choice.standard_errors[best]
    assert 1 < within.sum() < len(within)
    assert rule.best == choice.values[within].max()
    assert rule.best > choice.best
    # Half or twice the standard error would choose a different tree.
    for factor in (0.5, 2.0):
        limit = choice.losses[best] + factor * choice.standard_errors[best]
        assert rule.best != choice.values[choice.losses <= limit].max()


def test_equal_losses_choose_the_smallest_tree():
    """Details that only the whole sample has do not change the losses of a fold."""
    x = np.arange(40.0)[:, None]
    y = np.where(x[:, 0] < 20, 0.0, 10.0)
    details = np.isin(x[:, 0], [3, 4, 30, 31])
    y[details] += [0.1, 0.2, 0.3, 0.5]
    fold = [(np.flatnonzero(~details), np.flatnonzero(details))]
    choice = select_ccp_alpha(OKTree(), x, y, cv=fold)
    best = np.isclose(choice.losses, choice.losses.min(), rtol=1e-12)
    assert best.sum() > 2
    assert choice.best == choice.values[best].max()
    pruned = OKTree(ccp_alpha=choice.best).fit(x, y)
    assert (pruned.trees_.left < 0).sum() == 2


def test_forests_are_refused():
    """The error names the class and the way to tune a forest."""
    with pytest.raises(TypeError, match=r"requires an OKTree, got OKExtraTrees.*GridSearchCV"):
        select_ccp_alpha(OKExtraTrees(5), X, Y)
    with pytest.raises(TypeError, match="requires an OKTree, got DecisionTreeRegressor"):
        select_ccp_alpha(DecisionTreeRegressor(), X, Y)
    with pytest.raises(TypeError, match=r"the class OKTree; pass an instance such as OKTree\(\)"):
        select_ccp_alpha(OKTree, X, Y)
