"""Whether the parts of a loaded model fit each other."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from okforest._categories import category_counts
from okforest.engine import Trees
from okforest.engine.validity import check_trees
from okforest.kernels import OutputKernel
from okforest.models import OKBoost, OKNeighbors, OKRidge
from okforest.models._base import Averager
from okforest.network import BipartiteCompletion, NetworkCompletion


def check_model(model: Any) -> None:
    """Raise a ValueError that says what is wrong unless a model can predict without danger."""
    if isinstance(model, NetworkCompletion):
        n = _check_part(model, "model_")
        _check_length(model, "names_", n)
        _check_matrix(model, "adjacency_", 2, (n, n))
        _check_seen(model.seen_weights_, n)
        return
    if isinstance(model, BipartiteCompletion):
        sides = _check_part(model, "row_model_"), _check_part(model, "column_model_")
        _check_matrix(model, "links_", 2, sides)
        _check_seen([model.seen_rows_], sides[0])
        _check_seen([model.seen_columns_], sides[1])
        _check_length(model, "row_names_", sides[0])
        _check_length(model, "column_names_", sides[1])
        return
    if isinstance(model, OKNeighbors):
        n_rows = _check_neighbors(model)
    elif isinstance(model, OKRidge):
        n_rows = _check_ridge(model)
    elif isinstance(model, OKBoost):
        n_rows = _check_boost(model)
    else:
        n_rows = _check_trees(model)
    _check_length(model, "outputs_", n_rows)
    _check_length(model, "feature_names_in_", model.n_features_in_)
    if hasattr(model, "outputs_") and not isinstance(model.outputs_, np.ndarray):
        raise ValueError("outputs_ is no array")
    if hasattr(model, "outputs_") and not isinstance(model.kernel_, OutputKernel):
        raise ValueError("kernel_ is no kernel")


def _check_trees(model: Any) -> int:
    """Check the trees and what belongs to them, and return the number of training rows."""
    if not isinstance(model.trees_, Trees):
        raise ValueError("trees_ are no trees")
    n_features = _n_features(model)
    check_trees(model.trees_, n_features)
    _check_length(model, "categories_", n_features)
    _check_length(model, "has_missing_", n_features)
    if category_counts(model.categories_).tolist() != model.trees_.n_categories.tolist():
        raise ValueError("categories_ and the trees' n_categories differ")
    return len(model.trees_.row_weight)


def _check_boost(model: OKBoost) -> int:
    """Check the rounds, and that what is kept of leaves is as many rows as there are leaves."""
    _check_matrix(model, "row_weight_", 1)
    _check_matrix(model, "scales_", 1, (model.n_estimators_,))
    n_rows = len(model.row_weight_)
    if hasattr(model, "bases_"):
        return _check_bases(model, n_rows)
    if _check_trees(model) != n_rows or len(model.trees_) != model.n_estimators_:
        raise ValueError("trees_ are of other rows or rounds than row_weight_ and scales_")
    tree = np.repeat(np.arange(len(model.trees_)), np.diff(model.trees_.node_offsets))
    leaf = model.trees_.left < 0
    n_members = (model.trees_.end - model.trees_.begin)[leaf]
    if np.bincount(tree[leaf], n_members).tolist() != np.diff(model.trees_.member_offsets).tolist():
        raise ValueError("the leaves of a tree do not share out its members")
    n_leaves = np.bincount(tree[leaf])
    places = model.training_leaves_
    if not isinstance(places, np.ndarray) or places.dtype.kind != "u":
        raise ValueError("training_leaves_ holds no whole numbers")
    if places.shape != (len(n_leaves), n_rows) or (places >= n_leaves[:, None]).any():
        raise ValueError("training_leaves_ are not one of its tree's leaves for each row")
    if hasattr(model, "leaf_weights_"):
        _check_matrix(model, "leaf_weights_", 2, (n_leaves.sum(), n_rows))
    if hasattr(model, "leaf_means_"):
        _check_matrix(model, "leaf_means_", 2)
        _check_length(model, "leaf_means_", n_leaves.sum())
    return n_rows


def _check_bases(model: OKBoost, n_rows: int) -> int:
    _check_matrix(model, "inputs_", 2, (n_rows, _n_features(model)))
    if len(model.bases_) != model.n_estimators_:
        raise ValueError(f"bases_ has {len(model.bases_)} entries, not {model.n_estimators_}")
    for base in model.bases_:
        check_model(base)
        _check_length(base, "outputs_", n_rows)
    return n_rows


def _check_neighbors(model: OKNeighbors) -> int:
    _check_matrix(model, "row_weight_", 1)
    n_rows, n_features = len(model.row_weight_), _n_features(model)
    if hasattr(model, "inputs_"):
        _check_matrix(model, "inputs_", 2, (n_rows, n_features))
    elif n_rows != n_features:
        raise ValueError(f"row_weight_ has {n_rows} entries, not {n_features}")
    return n_rows


def _check_ridge(model: OKRidge) -> int:
    _check_matrix(model, "dual_", 2)
    n_landmarks, rank = model.dual_.shape
    _check_length(model, "landmarks_", n_landmarks)
    if hasattr(model, "inputs_"):
        _check_matrix(model, "inputs_", 2, (n_landmarks, _n_features(model)))
    if model.basis_ is None:
        return rank
    _check_matrix(model, "basis_", 2)
    if len(model.basis_) != rank:
        raise ValueError(f"basis_ has {len(model.basis_)} rows, not {rank}")
    return model.basis_.shape[1]


def _check_part(model: Any, name: str) -> int:
    """Check a model within a model, and return the number of its training outputs."""
    part = getattr(model, name)
    if not isinstance(part, Averager):
        raise ValueError(f"{name} is no model")
    check_model(part)
    return len(part.outputs_)


def _check_seen(weights: list[Any], n: int) -> None:
    for W in weights:
        if not isinstance(W, sp.csr_array) or W.shape != (n, n):
            raise ValueError("weights of what was seen do not fit the model")


def _n_features(model: Any) -> int:
    n_features = model.n_features_in_
    if type(n_features) is not int or n_features < 1:
        raise ValueError(f"n_features_in_ is {n_features!r}")
    return n_features


def _check_matrix(
    model: Any, name: str, n_dimensions: int, shape: tuple[int, ...] | None = None
) -> None:
    """Check an attribute that holds numbers."""
    matrix = getattr(model, name)
    if not isinstance(matrix, np.ndarray | sp.csr_array) or matrix.dtype.kind != "f":
        raise ValueError(f"{name} holds no numbers")
    if matrix.ndim != n_dimensions or shape not in (None, matrix.shape):
        raise ValueError(f"{name} has shape {matrix.shape}")


def _check_length(model: Any, name: str, expected: int) -> None:
    if hasattr(model, name) and len(getattr(model, name)) != expected:
        raise ValueError(f"{name} has {len(getattr(model, name))} entries, not {expected}")
