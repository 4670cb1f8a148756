"""What cannot be read gives an error that says what to do."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from okforest import OKExtraTrees, OKTotallyRandomTrees, OKTree
from okforest.inspection import (
    export_graphviz,
    export_text,
    leaf_clusters,
    leaf_rules,
    plot_importances,
    plot_tree,
    prototypes,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 3))
y = rng.normal(size=20)
OF_A_TREE = [export_graphviz, export_text, leaf_clusters, leaf_rules, plot_tree]
NAMED = [export_graphviz, export_text, leaf_rules, plot_importances, plot_tree]
ALL = [*OF_A_TREE, plot_importances, lambda model: prototypes(model, X)]


@pytest.mark.parametrize("function", ALL)
def test_not_fitted(function):
    """A model must be fitted."""
    with pytest.raises(NotFittedError, match="This OKTree instance is not fitted yet"):
        function(OKTree())


@pytest.mark.parametrize("function", ALL)
def test_not_a_model(function):
    """Pipelines and others are not trees; the model inside is."""
    with pytest.raises(TypeError, match=r"model is a Pipeline; expected .* pass the model inside"):
        function(make_pipeline(StandardScaler(), OKTree()).fit(X, y))


@pytest.mark.parametrize("function", OF_A_TREE)
@pytest.mark.parametrize("tree", [-1, 5, 1.0, "first"])
def test_tree_out_of_range(function, tree):
    """Trees are numbered from 0."""
    message = f"tree={tree!r}; this OKExtraTrees has 5 trees: use an integer from 0 to 4"
    with pytest.raises(ValueError, match=message):
        function(OKExtraTrees(5).fit(X, y), tree)
    with pytest.raises(ValueError, match="this OKTree has 1 tree: use an integer from 0 to 0"):
        function(OKTree().fit(X, y), 1)


@pytest.mark.parametrize("function", NAMED)
def test_number_of_names(function):
    """One name for each feature."""
    message = "feature_names has 2 names; the model was fitted with 3 features. Give one"
    with pytest.raises(ValueError, match=message):
        function(OKTree().fit(X, y), feature_names=["a", "b"])


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (leaf_clusters, "a prototype"),
        (plot_importances, "an importance"),
        (lambda model: plot_tree(model, draw_output=print), "draw_output"),
    ],
)
def test_no_outputs(function, what):
    """What needs outputs says so."""
    message = f"this OKTotallyRandomTrees was fitted without y, and {what} needs outputs. Fit it"
    with pytest.raises(ValueError, match=message):
        function(OKTotallyRandomTrees(2).fit(X))


@pytest.mark.parametrize("number", [0, -1, 1.5, None])
def test_bad_counts(number):
    """How many must be a positive integer."""
    model = OKTree().fit(X, y)
    with pytest.raises(ValueError, match=f"k={number}; use a positive integer"):
        prototypes(model, X, k=number)
    with pytest.raises(ValueError, match=f"top={number}; use a positive integer"):
        plot_importances(model, top=number)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"g": ["x9"]}, "group 'g' has 'x9', which is no feature; use names .* 0 to 2"),
        ({"g": [3]}, "group 'g' has 3, which is no feature"),
        ({"g": [0, "x0"]}, "feature 'x0' is 2 times in groups; put it in one group, once"),
    ],
)
def test_bad_groups(groups, message):
    """Groups hold features, each once."""
    with pytest.raises(ValueError, match=message):
        plot_importances(OKTree().fit(X, y), groups=groups)
