"""Checks of models and arguments, with errors that name the remedy."""

from collections.abc import Iterable
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from okforest._utils.parameters import as_integer
from okforest.models import OKBoost, OKModel
from okforest.models.tree_methods import TreeMethods
from okforest.models.tree_model import TreeModel

# Advice for models without trees.
USE_PROTOTYPES = "prototypes(model, X) works with it: the training outputs behind each prediction."
USE_PERMUTATION = "sklearn.inspection.permutation_importance works with it."


def require_model(model: Any) -> None:
    """Raise a TypeError unless this is a model of okforest, fitted or not."""
    if isinstance(model, type):
        raise TypeError(
            f"model is the class {model.__name__}; expected a fitted model. Fit an instance: "
            f"{model.__name__}().fit(X, y)."
        )
    if not isinstance(model, OKModel):
        raise TypeError(
            f"model is of type {type(model).__name__}; expected a fitted model of okforest. "
            f"{_unwrapping_advice(model)}"
        )


def require_trees(model: Any, alternative: str = USE_PROTOTYPES) -> None:
    """Raise an error unless this is a fitted tree, forest or OKBoost with trees.

    ``alternative`` is the advice for models without trees.
    """
    require_model(model)
    if not isinstance(model, TreeMethods):
        raise TypeError(
            f"model is of type {type(model).__name__}, which has no trees; expected an OKTree, a "
            f"forest, or an OKBoost with base='tree'. {alternative}"
        )
    check_is_fitted(model, ["trees_", "bases_"], all_or_any=any)
    if not hasattr(model, "trees_"):
        raise ValueError(
            f"this OKBoost was fitted with base={model.base!r} and has no trees; expected "
            f"base='tree'. {alternative}"
        )


def require_outputs(model: Any, purpose: str) -> None:
    """Raise an error unless the model was fitted with y, which the purpose needs."""
    if not hasattr(model, "outputs_"):
        raise ValueError(
            f"this {type(model).__name__} was fitted without y, but {purpose} needs outputs. "
            "Fit it with y."
        )


def leaves_have_outputs(model: Any) -> bool:
    """Return whether leaves stand for outputs; leaves of an OKBoost stand for residuals."""
    return isinstance(model, TreeModel) and hasattr(model, "outputs_")


def require_leaf_outputs(model: Any, purpose: str) -> None:
    """Raise an error unless leaves stand for outputs, which the purpose needs."""
    require_outputs(model, purpose)
    if not leaves_have_outputs(model):
        raise ValueError(
            f"{purpose} needs leaves that stand for outputs, but leaves of an OKBoost stand for "
            "residuals. Use an OKTree or a forest."
        )


def require_rounds(model: Any) -> None:
    """Raise an error unless this is a fitted OKBoost."""
    require_model(model)
    if not isinstance(model, OKBoost):
        raise TypeError(
            f"model is of type {type(model).__name__}, which has no boosting rounds; expected a "
            "fitted OKBoost. For scores against the number of training rows, use "
            "sklearn.model_selection.LearningCurveDisplay."
        )
    check_is_fitted(model, "n_estimators_")


def require_tree_number(model: Any, tree: int) -> int:
    """Return the number of a tree, which must exist."""
    n_trees = len(model.trees_)
    trees = "tree" if n_trees == 1 else "trees"
    reason = f"this {type(model).__name__} has {n_trees} {trees}"
    return as_integer("tree", tree, 0, n_trees - 1, reason=reason)


def feature_names_of(model: Any, feature_names: Iterable[str] | None) -> list[str]:
    """Return one name for each feature."""
    if feature_names is None:
        feature_names = getattr(model, "feature_names_in_", None)
    if feature_names is None:
        return [f"x{feature}" for feature in range(model.n_features_in_)]
    if isinstance(feature_names, str) or not isinstance(feature_names, Iterable):
        raise TypeError(
            f"feature_names is of type {type(feature_names).__name__}; expected a list of "
            f"{model.n_features_in_} names."
        )
    names = [str(name) for name in feature_names]
    if len(names) != model.n_features_in_:
        raise ValueError(
            f"feature_names has {len(names)} names, but the model was fitted with "
            f"{model.n_features_in_} features. Give one name per feature, in their order."
        )
    return names


def _unwrapping_advice(model: Any) -> str:
    """Return what to pass in place of a pipeline, a search or a network model."""
    path, advice, inner = "model", "", model
    while not isinstance(inner, OKModel):
        if isinstance(inner, Pipeline):
            advice = f" Its inputs are {path}[:-1].transform(X)."
            path, inner = f"{path}[-1]", inner.steps[-1][1]
        elif hasattr(inner, "refit"):  # GridSearchCV and its relatives
            path = f"{path}.best_estimator_"
            if not hasattr(inner, "best_estimator_"):
                return f"Fit the search with refit=True and pass {path}."
            inner = inner.best_estimator_
        elif hasattr(inner, "model_"):  # NetworkCompletion
            path, inner = f"{path}.model_", inner.model_
        else:
            return "Pass an OKTree or OKExtraTrees, for example."
    return f"Pass the model inside it: {path}.{advice}"
