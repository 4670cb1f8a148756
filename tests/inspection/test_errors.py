"""What cannot be inspected raises an error that names the remedy."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from okforest import (
    DirectionBase,
    OKBoost,
    OKExtraTrees,
    OKNeighbors,
    OKRidge,
    OKTotallyRandomTrees,
    OKTree,
)
from okforest.inspection import (
    export_graphviz,
    export_text,
    leaf_clusters,
    leaf_rules,
    plot_importances,
    plot_learning_curve,
    plot_tree,
    prototypes,
)
from okforest.network import NetworkCompletion

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 3))
y = rng.normal(size=20)
OF_A_TREE = [export_graphviz, export_text, leaf_clusters, leaf_rules, plot_tree]
NAMED = [export_graphviz, export_text, leaf_clusters, leaf_rules, plot_importances, plot_tree]
WITH_DEPTH = [export_graphviz, export_text, plot_tree]


def prototypes_of(model):
    """Return the prototypes of the training inputs."""
    return prototypes(model, X)


@pytest.mark.parametrize("function", [*OF_A_TREE, plot_importances, prototypes_of])
def test_not_fitted(function):
    """A model must be fitted."""
    with pytest.raises(NotFittedError, match="This OKTree instance is not fitted yet"):
        function(OKTree())
    with pytest.raises(NotFittedError, match="This OKBoost instance is not fitted yet"):
        function(OKBoost())


PIPELINE = make_pipeline(StandardScaler(), OKTree())
LINKS = np.ones((20, 20)) - np.eye(20)


@pytest.mark.parametrize(
    ("model", "name", "advice"),
    [
        (
            PIPELINE.fit(X, y),
            "Pipeline",
            r"Pass the model inside it: model\[-1\]. Its inputs are model\[:-1\].transform\(X\)",
        ),
        (
            GridSearchCV(OKTree(), {"max_depth": [1]}, cv=2).fit(X, y),
            "GridSearchCV",
            r"Pass the model inside it: model.best_estimator_.$",
        ),
        (
            GridSearchCV(PIPELINE, {"oktree__max_depth": [1]}, cv=2).fit(X, y),
            "GridSearchCV",
            r"model.best_estimator_\[-1\]. Its inputs are model.best_estimator_\[:-1\].transform",
        ),
        (
            GridSearchCV(OKTree(), {"max_depth": [1]}),
            "GridSearchCV",
            "Fit the search with refit=True and pass model.best_estimator_.",
        ),
        (
            NetworkCompletion(OKTree()).fit(X, LINKS),
            "NetworkCompletion",
            r"Pass the model inside it: model.model_.$",
        ),
        (StandardScaler(), "StandardScaler", "Pass an OKTree or OKExtraTrees, for example."),
        (None, "NoneType", "Pass an OKTree or OKExtraTrees, for example."),
    ],
)
def test_not_a_model(model, name, advice):
    """The advice leads to the model inside a pipeline, a search or a network model."""
    message = f"model is of type {name}; expected a fitted model of okforest. .*{advice}"
    with pytest.raises(TypeError, match=message):
        export_text(model)


@pytest.mark.parametrize(
    "function", [*OF_A_TREE, plot_importances, plot_learning_curve, prototypes_of]
)
def test_neither_pipelines_nor_classes(function):
    """Every function gives the advice."""
    with pytest.raises(TypeError, match=r"model is of type Pipeline; .* inside it: model\[-1\]"):
        function(PIPELINE)
    with pytest.raises(TypeError, match=r"model is the class OKTree; .* OKTree\(\).fit\(X, y\)"):
        function(OKTree)


@pytest.mark.parametrize("model", [OKRidge(), OKNeighbors()])
def test_no_trees(model):
    """Other models have no trees; the advice works with them."""
    model.fit(X, y)
    message = f"model is of type {type(model).__name__}, which has no trees; expected an OKTree, a"
    for function in OF_A_TREE:
        with pytest.raises(TypeError, match=rf"{message} .* prototypes\(model, X\) works with it"):
            function(model)
    with pytest.raises(TypeError, match=rf"{message} .*permutation_importance works with it"):
        plot_importances(model)
    assert prototypes(model, X)[0].shape == (20, 5)


@pytest.mark.parametrize("base", [OKRidge(), DirectionBase(OKTree())])
def test_boosting_of_other_base_learners(base):
    """Without trees, the weights of predictions remain."""
    model = OKBoost(3, base=base).fit(X, y)
    message = r"this OKBoost was fitted with base=(.|\n)* and has no trees; expected base='tree'"
    for function in OF_A_TREE:
        with pytest.raises(ValueError, match=rf"{message}. prototypes\(model, X\) works with it"):
            function(model)
    with pytest.raises(ValueError, match=f"{message}. sklearn.*permutation_importance works with"):
        plot_importances(model)
    assert prototypes(model, X)[0].shape == (20, 5)


@pytest.mark.parametrize("model", [OKTree(), OKExtraTrees(2), OKRidge()])
def test_no_rounds(model):
    """A learning curve needs the rounds of boosting."""
    message = (
        f"model is of type {type(model).__name__}, which has no boosting rounds; expected a "
        "fitted OKBoost. .*LearningCurveDisplay"
    )
    with pytest.raises(TypeError, match=message):
        plot_learning_curve(model.fit(X, y))


@pytest.mark.parametrize("function", OF_A_TREE)
@pytest.mark.parametrize("tree", [-1, 5, 1.0, True, "first", None])
def test_tree_out_of_range(function, tree):
    """Trees are numbered from 0."""
    expected = f"tree={tree!r}; expected an integer from 0 to 4: this OKExtraTrees has 5 trees"
    with pytest.raises(ValueError, match=expected):
        function(OKExtraTrees(5).fit(X, y), tree)
    with pytest.raises(ValueError, match="tree=1; expected 0: this OKTree has 1 tree"):
        function(OKTree().fit(X, y), 1)


@pytest.mark.parametrize("function", NAMED)
def test_bad_names(function):
    """There must be one name per feature."""
    model = OKTree().fit(X, y)
    message = "feature_names has 2 names, but the model was fitted with 3 features. Give one"
    with pytest.raises(ValueError, match=message):
        function(model, feature_names=["a", "b"])
    with pytest.raises(TypeError, match="feature_names is of type str; expected a list of 3 names"):
        function(model, feature_names="abc")
    with pytest.raises(TypeError, match="feature_names is of type int; expected a list of 3 names"):
        function(model, feature_names=3)


@pytest.mark.parametrize(
    ("function", "purpose"),
    [
        (leaf_clusters, "leaf_clusters"),
        (plot_importances, "plot_importances"),
        (lambda model: plot_tree(model, draw_output=print), "draw_output"),
    ],
)
def test_no_outputs(function, purpose):
    """Functions that need outputs refuse a model fitted without y."""
    message = f"OKTotallyRandomTrees was fitted without y, but {purpose} needs outputs. Fit it with"
    with pytest.raises(ValueError, match=message):
        function(OKTotallyRandomTrees(2).fit(X))


@pytest.mark.parametrize("number", [0, -1, 1.5, True, None])
def test_bad_counts(number):
    """Counts are positive integers."""
    model = OKTree().fit(X, y)
    with pytest.raises(ValueError, match=f"k={number}; expected an integer of at least 1"):
        prototypes(model, X, k=number)
    with pytest.raises(ValueError, match=f"k={number}; expected an integer of at least 1"):
        plot_importances(model, k=number)
    with pytest.raises(ValueError, match=f"step={number}; expected an integer of at least 1"):
        plot_learning_curve(OKBoost(2).fit(X, y), step=number)


@pytest.mark.parametrize("number", [-1, 1.5, "2"])
def test_bad_decimals_and_depths(number):
    """Decimals and depths are non-negative integers."""
    model = OKTree().fit(X, y)
    for function in [*WITH_DEPTH, leaf_rules, leaf_clusters]:
        message = f"decimals={number!r}; expected an integer of at least 0"
        with pytest.raises(ValueError, match=message):
            function(model, decimals=number)
    for function in WITH_DEPTH:
        message = f"max_depth={number!r}; expected an integer of at least 0"
        with pytest.raises(ValueError, match=message):
            function(model, max_depth=number)
