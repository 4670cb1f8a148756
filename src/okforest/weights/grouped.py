"""Weights of objects, as means over the weights of their segments."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._utils.arrays import Floats
from okforest.weights.forms import (
    CombinedWeights,
    DenseWeights,
    ProductWeights,
    SharpenedWeights,
    SparseWeights,
    WeightMatrix,
)
from okforest.weights.leaves import LeafWeights
from okforest.weights.span import Span

ENTRY_BYTES = 12  # of a sparse matrix
BLOCK_SEGMENTS = 2**15  # whose weights or values are made at a time

Positions = npt.NDArray[np.intp]


@dataclass(frozen=True, repr=False)
class GroupedWeights(WeightMatrix):
    """The weighted means of groups of consecutive rows: one row per object, from its segments.

    Parameters
    ----------
    weights : WeightMatrix of shape (n_segments, n_train)
        The weights of the segments.
    offsets : ndarray of shape (n + 1,)
        Where the segments of each object begin.
    shares : ndarray of shape (n_segments,)
        The share of each segment in the mean; the shares of an object sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.weights import DenseWeights, GroupedWeights
    >>> segments = DenseWeights(np.eye(3))
    >>> W = GroupedWeights(segments, np.array([0, 2, 3]), np.array([0.5, 0.5, 1.0]))
    >>> W.tocsr().toarray()
    array([[0.5, 0.5, 0. ],
           [0. , 0. , 1. ]])
    """

    weights: WeightMatrix
    offsets: Positions
    shares: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """Number of predictions and of training outputs."""
        return len(self.offsets) - 1, self.weights.shape[1]

    @property
    def means(self) -> sp.csr_array:
        """The matrix of shape (n, n_segments) that takes the means."""
        columns = np.arange(len(self.shares))
        shape = (self.shape[0], len(columns))
        return sp.csr_array((self.shares, columns, self.offsets), shape=shape)

    def select_rows(self, rows: slice) -> WeightMatrix:
        """Return some of the rows."""
        start, stop, step = rows.indices(self.shape[0])
        if step != 1:
            return SparseWeights(self.tocsr()[rows])
        stop = max(start, stop)
        own = slice(int(self.offsets[start]), int(self.offsets[stop]))
        offsets = self.offsets[start : stop + 1] - own.start
        return GroupedWeights(self.weights[own], offsets, self.shares[own])

    def multiply(self, values: Floats) -> Floats:
        """Return weighted sums of values of the training outputs."""
        return np.concatenate([means @ (weights @ values) for means, weights in self._blocks()])

    def feature_sums(self, span: Span) -> Floats:
        """Return the predictions Σ_i w_i φ(y_i) in the span's explicit features."""
        sums = [means @ weights.feature_sums(span) for means, weights in self._blocks()]
        return np.concatenate(sums)

    def transposed_product(self, values: Floats) -> Floats:
        """Return the product of the transposed matrix with values of the predictions."""
        return self.weights.transposed_product(np.asarray(self.means.T @ values))

    @property
    def max_entries(self) -> int:
        """At most as many as the segments have, and as the matrix."""
        return min(self.weights.max_entries, prod(self.shape))

    def tocsr(self) -> sp.csr_array:
        """Return the matrix, sparse."""
        blocks = [means @ weights.tocsr() for means, weights in self._blocks()]
        return sp.csr_array(sp.vstack(blocks))

    def _blocks(self) -> Iterator[tuple[sp.csr_array, WeightMatrix]]:
        """Yield the means and the segments of some objects at a time, to bound the memory."""
        n = self.shape[0]
        n_blocks = max(1, min(n, len(self.shares) // BLOCK_SEGMENTS))
        means, ends = self.means, np.linspace(0, n, n_blocks + 1).astype(int)
        for (a, b), (i, j) in zip(pairwise(ends), pairwise(self.offsets[ends]), strict=True):
            yield means[a:b, i:j], self.weights[int(i) : int(j)]


def group_rows(weights: WeightMatrix, offsets: Positions, shares: Floats) -> WeightMatrix:
    """Return the means of groups of rows, in the form that takes the least memory.

    Leaves, one integer for each segment and tree, are kept unless the means take less; other forms
    are averaged at once.
    """
    grouped = GroupedWeights(weights, offsets, shares)
    if isinstance(weights, LeafWeights):
        keep = weights.leaves.nbytes <= ENTRY_BYTES * prod(grouped.shape)
        return grouped if keep else SparseWeights(grouped.tocsr())
    if isinstance(weights, ProductWeights):
        left: Any = grouped.means @ weights.left
        return ProductWeights(left, weights.right)
    entries = weights.entries()
    if sp.issparse(entries):
        return SparseWeights(sp.csr_array(grouped.means @ entries))
    return DenseWeights(np.asarray(grouped.means @ entries))


def merge_columns(weights: WeightMatrix, group: Positions, n_groups: int) -> WeightMatrix:
    """Return the sums of the weights of groups of training outputs: of objects, from segments."""
    entries = weights.entries()
    n_train = len(group)
    merge = sp.csr_array((np.ones(n_train), group, np.arange(n_train + 1)), (n_train, n_groups))
    if sp.issparse(entries):
        return SparseWeights(sp.csr_array(entries @ merge))
    return DenseWeights(np.asarray(entries @ merge))


def stack_rows(parts: Sequence[Any]) -> WeightMatrix:
    """Return the rows of several matrices of weights of one model, one after the other.

    They keep their form if it is the same.
    """
    first: WeightMatrix = parts[0]
    if len(parts) == 1:
        return first
    if len({type(part) for part in parts}) > 1:
        return SparseWeights(sp.csr_array(sp.vstack([part.tocsr() for part in parts])))
    if isinstance(first, GroupedWeights):
        sizes = np.concatenate([np.diff(part.offsets) for part in parts])
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        weights = stack_rows([part.weights for part in parts])
        shares = np.concatenate([part.shares for part in parts])
        return GroupedWeights(weights, offsets, shares)
    if isinstance(first, CombinedWeights):  # of one model, so that the factors are the same
        terms = zip(*(part.parts for part in parts), strict=True)
        return CombinedWeights([stack_rows(term) for term in terms], first.factors)
    if isinstance(first, SharpenedWeights):
        return SharpenedWeights(stack_rows([part.base for part in parts]), first.power)
    if isinstance(first, LeafWeights):
        leaves = np.concatenate([part.leaves for part in parts])
        return LeafWeights(first.trees, leaves, max(part.n_threads for part in parts))
    if isinstance(first, ProductWeights):
        lefts = [part.left for part in parts]
        sparse = sp.issparse(first.left)
        left = sp.csr_array(sp.vstack(lefts)) if sparse else np.concatenate(lefts)
        return ProductWeights(left, first.right)
    if isinstance(first, DenseWeights):
        return DenseWeights(np.concatenate([part.entries() for part in parts]))
    return SparseWeights(sp.csr_array(sp.vstack([part.tocsr() for part in parts])))
