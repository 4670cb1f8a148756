"""Growing a forest for partly labelled data, and its weights over the labelled outputs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from okforest._compat import rows_of
from okforest._typing import Booleans, Floats
from okforest._validation import check_weights
from okforest.models._tree_model import TreeModel
from okforest.refit._leaves import LeafExpansion, leaves_of
from okforest.weights import ProductWeights, Span


@dataclass(frozen=True)
class LabelledForest:
    """A forest before its refit, with the training rows as leaves.

    Parameters
    ----------
    model : TreeModel
        The forest.
    expansion : LeafExpansion
        Its leaves.
    L : csr_array of shape (n, n_leaves)
        Leaves of all rows.
    means : csr_array of shape (n_leaves, n_labelled)
        Weights of the labelled outputs in the means of leaves.
    labelled : ndarray of shape (n,), bool
        Which rows have an output.
    weight : ndarray of shape (n,)
        Weights of the losses of rows; zero without an output.
    """

    model: TreeModel
    expansion: LeafExpansion
    L: sp.csr_array
    means: sp.csr_array
    labelled: Booleans
    weight: Floats


def grow_labelled(
    forest: TreeModel, X: Any, known: Any, labelled: Booleans, sample_weight: Any
) -> LabelledForest:
    """Grow the forest on the labelled rows, or on all if it does not use outputs."""
    weight = check_weights(sample_weight, labelled)
    rows = np.flatnonzero(labelled)
    if forest._uses_outputs:
        forest.fit(rows_of(X, rows), known, None if sample_weight is None else weight[rows])
    else:
        forest.fit(X, None)
    expansion = LeafExpansion(forest.trees_)
    L = expansion.rows(leaves_of(forest, X))
    if forest._uses_outputs:
        means = expansion.means
    else:
        means = expansion.means_over(sp.csr_array(L[rows]), weight[rows])
    return LabelledForest(forest, expansion, L, means, labelled, weight * labelled)


def base_weights(L: sp.csr_array, means: sp.csr_array) -> ProductWeights:
    """Return the forest's weights, renormalised where leaves have no labelled rows.

    A row without any labelled row in its leaves has equal weights.
    """
    sums = L @ np.asarray(means.sum(axis=1)).ravel()
    empty = sums <= 1e-12
    L = sp.csr_array(sp.diags_array(np.where(empty, 0.0, 1.0 / np.where(empty, 1.0, sums))) @ L)
    if empty.any():  # one more leaf, which holds all labelled rows
        n_labelled = means.shape[1]
        everything = sp.csr_array(np.full((1, n_labelled), 1.0 / n_labelled))
        L = sp.csr_array(sp.hstack([L, sp.csr_array(empty[:, None].astype(np.float64))]))
        means = sp.csr_array(sp.vstack([means, everything]))
    return ProductWeights(L, means)


def completed_means(grown: LabelledForest) -> tuple[sp.csr_array, sp.csr_array]:
    """Return the operators from labelled and from unlabelled outputs to means over both in leaves.

    Labelled rows count as in the forest, by bootstrap samples and weights; an unlabelled row counts
    as an average one.
    """
    trees, rows = grown.expansion.trees, np.flatnonzero(grown.labelled)
    members = sp.csc_array((grown.L > 0).T, dtype=np.float64)
    others = sp.csr_array(members[:, ~grown.labelled])
    if grown.model._uses_outputs:
        known, row_weight = trees.weight[grown.expansion.nodes], trees.row_weight
    else:
        known, row_weight = members[:, rows] @ grown.weight[rows], grown.weight[rows]
    unit = float(row_weight[row_weight > 0].mean())
    total = np.maximum(known + unit * np.asarray(others.sum(axis=1)).ravel(), 1e-300)
    return (
        sp.csr_array(sp.diags_array(known / total) @ grown.means),
        sp.csr_array(sp.diags_array(unit / total) @ others),
    )


def solution_columns(span: Span) -> tuple[Floats, Floats]:
    """Return the columns to solve for, and the weights of outputs that stand for each.

    With explicit features Φ these are Φ and its pseudo-inverse: every solution is a combination of
    rows of Φ. Otherwise they are indicators of the outputs.
    """
    if span.features is None:
        return np.eye(len(span)), np.eye(len(span))
    return span.features, np.asarray(np.linalg.pinv(span.features), dtype=np.float64)
