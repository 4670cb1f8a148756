"""Weights of tree ensembles: the leaves that inputs reach, or sums of features over them."""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import scipy.sparse as sp

from okforest._utils.arrays import Floats, Inputs, Ints, on_gpu, to_host
from okforest.engine import Trees, apply, count_members, leaf_means, leaf_weights
from okforest.weights.forms import WeightMatrix

if TYPE_CHECKING:
    from okforest.weights.span import Span

# Below this mean number of rows per leaf, the sparse matrix is small, and its products are faster.
SMALL_LEAF = 3


class LeafWeights(WeightMatrix):
    """The mean over trees of the weights of the training rows in a leaf.

    Large leaves have many members: the matrix of n predictions may have n × n_train entries, while
    a product with it needs every leaf's mean only once.

    Parameters
    ----------
    trees : Trees
        The trees.
    leaves : ndarray of shape (n, n_trees), optional
        The leaf of each prediction in each tree; -1 where a tree does not contribute. It may be on
        a GPU. By default the leaves that ``inputs`` reach, which are found when they are needed.
    n_threads : int
        Number of threads.
    inputs : ndarray or sparse matrix of shape (n, p), optional
        The inputs of the predictions, which must not change. Sums of explicit features then add up
        the means of leaves, which the span keeps, while rows walk down the trees.

    Examples
    --------
    >>> from okforest import OKRandomForest
    >>> forest = OKRandomForest(10, random_state=0).fit([[0], [1], [2]], [1.0, 2.0, 3.0])
    >>> W = forest.weight_matrix([[0], [2]])
    >>> type(W).__name__, W.shape
    ('LeafWeights', (2, 3))
    """

    def __init__(
        self,
        trees: Trees,
        leaves: Ints | None = None,
        n_threads: int = 1,
        inputs: Inputs | None = None,
    ):
        self.trees, self.n_threads, self.inputs = trees, n_threads, inputs
        if leaves is not None:
            self.leaves = leaves

    @cached_property
    def leaves(self) -> Ints:
        """The leaf of each prediction in each tree."""
        assert self.inputs is not None
        return apply(self.trees, self.inputs, self.n_threads)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of predictions and of training outputs."""
        rows = self.leaves if self.inputs is None else self.inputs
        return rows.shape[0], len(self.trees.row_weight)

    def select_rows(self, rows: slice) -> "LeafWeights":
        """Return some of the rows."""
        if "leaves" in vars(self) or self.inputs is None:
            return LeafWeights(self.trees, self.leaves[rows], self.n_threads)
        return LeafWeights(self.trees, n_threads=self.n_threads, inputs=self.inputs[rows])

    @property
    def on_gpu(self) -> bool:
        """Whether the leaves are on the GPU."""
        return "leaves" in vars(self) and on_gpu(self.leaves)

    def multiply(self, values: Floats) -> Floats:
        """Return weighted sums of values of the training outputs."""
        if self.is_sparse:
            return np.asarray(self._matrix @ values)
        matrix = values.reshape(len(values), -1)
        means = leaf_means(self.trees, self.leaves, matrix, self.n_threads)
        return means.reshape(len(self.leaves), *np.shape(values)[1:])

    def feature_sums(self, span: "Span") -> Floats:
        """Return the predictions in the span's explicit features, by its means of leaves."""
        if self.inputs is None or "leaves" in vars(self):
            return super().feature_sums(span)
        vectors = span.leaf_vectors(self.trees, self.n_threads)
        if vectors is None:
            return super().feature_sums(span)
        start = np.zeros(vectors.values.shape[1])
        return vectors.sums(self.inputs, start, 1.0 / len(self.trees), self.n_threads)

    @cached_property
    def _counts(self) -> tuple[int, int]:
        """The numbers of leaves and of their members."""
        return count_members(self.trees, to_host(self.leaves))

    @property
    def is_sparse(self) -> bool:
        """Whether leaves are small."""
        n_leaves, n_members = self._counts
        return n_members < SMALL_LEAF * n_leaves

    @property
    def max_entries(self) -> int:
        """The number of members of all leaves."""
        return min(self._counts[1], prod(self.shape))

    def tocsr(self) -> sp.csr_array:
        """Return the matrix, sparse."""
        return self._matrix

    @cached_property
    def _matrix(self) -> sp.csr_array:
        return leaf_weights(self.trees, self.leaves, self.n_threads)


@dataclass(frozen=True, repr=False)
class SummedWeights(WeightMatrix):
    """Weights of which only the predictions Σ_i w_i φ(y_i) are known, not their terms.

    The trees of a forest on several machines add up such sums: they are small, while the weights
    have an entry for every training output in a leaf.

    Parameters
    ----------
    sums : ndarray of shape (n, n_features)
        The predictions in the explicit features of the kernel.
    n_train : int
        Number of training outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.weights import SummedWeights
    >>> SummedWeights(np.array([[2.5]]), n_train=100).shape
    (1, 100)
    """

    sums: Floats
    n_train: int

    @property
    def shape(self) -> tuple[int, int]:
        """Number of predictions and of training outputs."""
        return len(self.sums), self.n_train

    def select_rows(self, rows: slice) -> "SummedWeights":
        """Return some of the rows."""
        return SummedWeights(self.sums[rows], self.n_train)

    def feature_sums(self, span: "Span") -> Floats:
        """Return the predictions in the span's explicit features."""
        return self.sums

    def multiply(self, values: Floats) -> NoReturn:
        """Raise an error: the weights are not known."""
        raise TypeError("only sums of explicit features are known, not the weights.")

    def tocsr(self) -> NoReturn:
        """Raise an error: the weights are not known."""
        raise TypeError("only sums of explicit features are known, not the weights.")
