"""Parts of a forest that stay on workers, and what they contribute to predictions.

The weights of the forest are the sum of those of its parts, each times its share of the trees.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._utils.arrays import Floats, Inputs, Outputs
from okforest._utils.inputs import check_inputs
from okforest.dask._blocks import naming_partition
from okforest.engine import Trees, apply
from okforest.kernels import OutputKernel
from okforest.models.tree_model import TreeModel
from okforest.weights import LeafWeights, Span

Positions = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Part:
    """Some trees of a forest, with the outputs of the rows that they were grown on.

    Parameters
    ----------
    trees : Trees
        The trees; their members are positions in ``outputs``.
    kernel : OutputKernel
        The kernel, resolved.
    outputs : ndarray
        Outputs in canonical form.
    rows : ndarray or None
        Their positions among all training rows, ascending; None if they are all.
    """

    trees: Trees
    kernel: OutputKernel
    outputs: Outputs
    rows: Positions | None = None

    @cached_property
    def features(self) -> Floats:
        """Explicit features of the outputs."""
        return np.ascontiguousarray(self.kernel.features(self.outputs))

    def leaf_weights(self, X: Inputs) -> LeafWeights:
        """Return the weights of the outputs."""
        return LeafWeights(self.trees, apply(self.trees, _aligned(X)))

    def tree_weights(self, X: Inputs) -> list[LeafWeights]:
        """Return the weights of the outputs, tree by tree."""
        leaves = apply(self.trees, _aligned(X))
        return [
            LeafWeights(self.trees[t], np.ascontiguousarray(leaves[:, t : t + 1]))
            for t in range(leaves.shape[1])
        ]

    def whole_trees(self, n_train: int) -> Trees:
        """Return the trees as those of a local forest, with positions among all rows."""
        if self.rows is None:
            return self.trees
        members = self.rows[self.trees.members].astype(np.int32)
        return replace(self.trees, members=members, row_weight=np.ones(n_train))


@dataclass(frozen=True)
class Weighted:
    """Weights over all training rows, with the outputs of those that have a weight.

    Parameters
    ----------
    matrix : csr_array of shape (n, n_train)
        The weights.
    rows : ndarray
        The training rows that have a weight, ascending.
    outputs : ndarray
        Their outputs.
    """

    matrix: sp.csr_array
    rows: Positions
    outputs: Outputs

    def support(self) -> sp.csr_array:
        """Return the weights of ``outputs``."""
        columns = np.searchsorted(self.rows, self.matrix.indices)
        parts = (self.matrix.data, columns, self.matrix.indptr)
        return sp.csr_array(parts, shape=(self.matrix.shape[0], len(self.rows)))


def validated(shell: TreeModel, number: int, X: Any) -> Inputs:
    """Return the inputs of a partition to predict as numbers; the engine takes no others."""
    if X.shape[0] == 0:
        return np.empty((0, shell.n_features_in_))
    with naming_partition(number):
        return check_inputs(shell, X)


def _aligned(X: Inputs) -> Inputs:
    """Return inputs whose numbers are aligned; those that came in a message may not be."""
    return X if sp.issparse(X) else np.require(X, requirements="A")


def part_sums(part: Part, X: Inputs, share: float) -> Floats:
    """Return what a part adds to the predictions in explicit features."""
    if X.shape[0] == 0:
        return np.zeros((0, part.features.shape[1]))
    return share * (part.leaf_weights(X) @ part.features)


def part_weights(part: Part, X: Inputs, share: float, n_train: int) -> Weighted:
    """Return what a part adds to the weights."""
    if X.shape[0] == 0:
        nothing = sp.csr_array((0, n_train))
        return Weighted(nothing, np.empty(0, dtype=np.intp), part.outputs[:0])
    W = part.leaf_weights(X).tocsr()
    used = np.unique(W.indices)
    rows = np.arange(n_train) if part.rows is None else part.rows
    matrix = sp.csr_array((share * W.data, rows[W.indices], W.indptr), shape=(X.shape[0], n_train))
    return Weighted(matrix, rows[used], part.outputs[used])


def part_kernel(part: Part, X: Inputs, Z: Inputs, share: float) -> Floats:
    """Return what a part adds to the mean over trees of the predicted kernel."""
    if X.shape[0] == 0 or Z.shape[0] == 0:
        return np.zeros((X.shape[0], Z.shape[0]))
    span = Span(part.kernel, part.outputs)
    return share * span.mean_gram(part.tree_weights(X), part.tree_weights(Z))


def add_sums(terms: list[Floats]) -> Floats:
    """Return the sum of what parts have contributed, in the order given."""
    return np.sum(terms, axis=0)


def add_weights(terms: list[Weighted]) -> Weighted:
    """Return the sum of weights, with the outputs of all of them."""
    matrix = terms[0].matrix
    for term in terms[1:]:
        matrix = matrix + term.matrix
    rows, first = np.unique(np.concatenate([term.rows for term in terms]), return_index=True)
    outputs = np.concatenate([term.outputs for term in terms])[first]
    matrix.sort_indices()
    return Weighted(sp.csr_array(matrix), rows, outputs)
