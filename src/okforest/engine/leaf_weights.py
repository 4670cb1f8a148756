"""The weights of predictions, known by the leaves they reach."""

from dataclasses import dataclass

import numpy as np

from okforest import _core
from okforest._typing import Floats, Ints, Weights
from okforest.engine.trees import Trees

# Where leaves have fewer members than this on average, the matrix is small, and faster.
SMALL_LEAF = 3


@dataclass(frozen=True)
class LeafWeights:
    """A matrix of weights over training rows that multiplies without being made.

    Large leaves have many members: the matrix of n predictions may have n × n_train entries, while
    the means that are asked of it need every leaf once.

    Parameters
    ----------
    trees : Trees
        The trees.
    leaves : ndarray of shape (n, n_trees)
        The leaf of each prediction in each tree; -1 where a tree takes no part.
    n_threads : int
        Threads to use.
    """

    trees: Trees
    leaves: Ints
    n_threads: int = 1

    @property
    def shape(self) -> tuple[int, int]:
        """Number of predictions and of training rows."""
        return len(self.leaves), len(self.trees.row_weight)

    def __getitem__(self, rows: slice) -> "LeafWeights":
        return LeafWeights(self.trees, self.leaves[rows], self.n_threads)

    def __matmul__(self, values: Floats) -> Floats:
        """Return the weighted means of the training rows' values, of shape (n,) or (n, q)."""
        if len(values) != self.shape[1]:
            raise ValueError(f"there are {self.shape[1]} training rows, and {len(values)} values.")
        if self._mean_leaf_size() < SMALL_LEAF:
            return self.tocsr() @ values
        matrix = np.ascontiguousarray(values, dtype=np.float64).reshape(len(values), -1)
        means = _core.leaf_means(self.leaves, vars(self.trees), matrix, self.n_threads)
        return means.reshape(len(self.leaves), *np.shape(values)[1:])

    def _mean_leaf_size(self) -> float:
        nodes = (self.leaves + self.trees.node_offsets[:-1])[self.leaves >= 0]
        return float((self.trees.end[nodes] - self.trees.begin[nodes]).mean()) if len(nodes) else 0

    def tocsr(self) -> Weights:
        """Return the matrix itself, sparse."""
        return self.trees.weights(self.leaves, self.n_threads)
