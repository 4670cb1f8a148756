"""Trees of boosting: their leaves group rows by residuals."""

import re

import numpy as np
import pytest

from okforest import OKBoost
from okforest.inspection import (
    export_graphviz,
    export_text,
    leaf_clusters,
    leaf_rules,
    plot_importances,
    plot_tree,
)
from okforest.kernels import RBF

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 2]]
CASES = {
    "features": OKBoost(5, max_splits=3, learning_rate=0.3, random_state=0),
    "gram": OKBoost(5, kernel=RBF(1.0), max_splits=3, learning_rate=0.3, random_state=0),
    "subsample": OKBoost(5, max_splits=3, subsample=0.5, random_state=0),
    "held out": OKBoost(5, max_splits=3, n_iter_no_change=5, random_state=0),
}


@pytest.fixture(params=CASES)
def model(request):
    """Return a boosted model of five rounds."""
    return CASES[request.param].fit(X, Y)


def residual_gram(model, tree):
    """Return the inner products of the residuals that a round is fitted to."""
    weights = [np.tile(model.row_weight_ / model.row_weight_.sum(), (60, 1))]
    weights += [W.toarray() for W in model.staged_weights(X)]
    R = np.eye(60) - weights[tree]
    return R @ model.kernel_(model.outputs_) @ R.T


@pytest.mark.parametrize("tree", [0, 4])
def test_rules_have_the_variance_of_residuals(model, tree):
    """Each rule counts the rows fitted in its leaf and gives the variance of their residuals."""
    K = residual_gram(model, tree)
    grown = model.trees_[tree]
    rules = leaf_rules(model, tree)
    assert sum(rule.n_samples for rule in rules) == len(grown.members)
    for rule in rules:
        rows = grown.members[grown.begin[rule.leaf] : grown.end[rule.leaf]]
        assert rule.n_samples == len(rows)
        assert (model.apply(X)[rows, tree] == rule.leaf).all()
        variance = np.diag(K)[rows].mean() - K[np.ix_(rows, rows)].mean()
        assert rule.variance == pytest.approx(variance, abs=1e-12)


def test_text(model):
    """Leaves show the residual variance and no output, whatever is asked for."""
    lines = export_text(model, tree=4, show_prototype=True).splitlines()
    ends = [line for line in lines if "→" in line]
    assert len(ends) == len(leaf_rules(model, 4))
    pattern = r".*─ x\d . -?[\d.]+ → leaf \d, n = \d+, residual variance [\d.e-]+"
    assert all(re.fullmatch(pattern, line) for line in ends)
    assert re.fullmatch(
        r"\d leaves, n = \d+, residual variance [\d.]+", export_text(model, max_depth=0)
    )


def test_text_of_a_known_round():
    """The second round is fitted to what the first leaves."""
    model = OKBoost(2, max_splits=1, learning_rate=0.5)
    model.fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 0.0, 4.0, 12.0])
    assert export_text(model).splitlines() == [
        "├─ x0 ≤ 2.5 → leaf 1, n = 3, residual variance 3.556",
        "└─ x0 > 2.5 → leaf 2, n = 1, residual variance 0",
    ]
    assert export_text(model, tree=1, max_depth=0) == "2 leaves, n = 4, residual variance 8"


def test_plots(model):
    """Trees and importances are plotted; boosting rounds give no error bars."""
    n_nodes = len(model.trees_[2].feature)
    dot = export_graphviz(model, 2)
    assert dot.count("fillcolor") == n_nodes
    assert "residual variance" in dot
    ax = plot_tree(model, 2)
    texts = [text.get_text() for text in ax.texts]
    assert sum("residual variance" in text for text in texts) == len(leaf_rules(model, 2))
    assert not any("output" in text for text in [*texts, dot])
    ax = plot_importances(model)
    np.testing.assert_allclose(
        [bar.get_width() for bar in ax.patches], np.sort(model.feature_importances_)[::-1]
    )
    assert not ax.collections


def test_missing_values_are_mentioned():
    """Conditions mention missing values if there were some in training."""
    values = np.array([[0.0], [1.0], [np.nan], [np.nan]])
    text = export_text(OKBoost(1, max_splits=1).fit(values, [0.0, 0.0, 1.0, 1.0]))
    assert [line.split(" → ")[0] for line in text.splitlines()] == [
        "├─ x0 is not missing",
        "└─ x0 is missing",
    ]
    text = export_text(OKBoost(1, max_splits=1).fit(values, [0.0, 1.0, 1.0, 1.0]))
    assert "└─ (x0 > 0.5 or missing)" in text


def test_leaves_have_no_outputs(model):
    """Clusters and drawn outputs need leaves that stand for outputs."""
    message = "needs leaves that stand for outputs, but leaves of an OKBoost .*. Use an OKTree or a"
    with pytest.raises(ValueError, match=f"leaf_clusters {message}"):
        leaf_clusters(model)
    with pytest.raises(ValueError, match=f"draw_output {message}"):
        plot_tree(model, draw_output=print)


def test_rounds_are_counted(model):
    """The error shows how many trees there are: fewer than asked for, after an early stop."""
    with pytest.raises(ValueError, match="tree=5; expected an integer from 0 to 4: this OKBoost"):
        export_text(model, tree=5)
