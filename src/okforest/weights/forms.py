"""The contract of weights, and their forms: dense, sparse, products, sums and powers of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from okforest._utils.arrays import Floats, check_sparse

if TYPE_CHECKING:
    from okforest.weights.span import Span

from abc import ABC, abstractmethod
from numbers import Integral
from typing import TYPE_CHECKING

import numpy.typing as npt

if TYPE_CHECKING:
    from okforest.weights.span import Span


class WeightMatrix(ABC):
    """Weights of training outputs, one row per prediction, in a form that saves memory.

    ``W[:10]`` is the first ten rows, ``W @ values`` are weighted sums of values of the training
    outputs, and ``W.tocsr()`` is the matrix itself.

    To add a form, subclass it and write :attr:`shape`, :meth:`select_rows`, :meth:`multiply` and
    :meth:`tocsr`; the other methods have defaults that are right, and can be overridden to be fast.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest import OKExtraTrees
    >>> y = np.array([1.0, 2.0, 4.0])
    >>> forest = OKExtraTrees(10, random_state=0).fit([[0], [1], [2]], y)
    >>> W = forest.weight_matrix([[0], [2]])
    >>> W @ y
    array([1., 4.])
    >>> W.tocsr().shape
    (2, 3)
    """

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of shape {self.shape}>"

    def __getitem__(self, rows: slice | int) -> WeightMatrix:
        if isinstance(rows, Integral):
            position = range(self.shape[0])[int(rows)]
            rows = slice(position, position + 1)
        if not isinstance(rows, slice):
            raise TypeError(
                f"weights are indexed by {type(rows).__name__}; use a slice of rows, as in W[:10], "
                "or index the matrix W.tocsr()."
            )
        return self.select_rows(rows)

    def __matmul__(self, values: Any) -> Floats:
        if sp.issparse(values):
            raise TypeError("weights multiply dense arrays; use W.tocsr() @ values.")
        array = np.asarray(values, dtype=np.float64)
        if array.ndim not in (1, 2) or len(array) != self.shape[1]:
            raise ValueError(
                f"values have shape {array.shape}; expected ({self.shape[1]},) or "
                f"({self.shape[1]}, q), one row per training output."
            )
        return self.multiply(array)

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Number of predictions and of training outputs."""

    @abstractmethod
    def select_rows(self, rows: slice) -> WeightMatrix:
        """Return some of the rows; users write ``W[rows]``."""

    @abstractmethod
    def multiply(self, values: Floats) -> Floats:
        """Return ``W @ values``, for values of shape (n_train,) or (n_train, q)."""

    @abstractmethod
    def tocsr(self) -> sp.csr_array:
        """Return the matrix, sparse."""

    @property
    def on_gpu(self) -> bool:
        """Whether predictions are returned as arrays on the GPU, where the inputs were."""
        return False

    def feature_sums(self, span: Span) -> Floats:
        """Return the predictions Σ_i w_i φ(y_i) in the span's explicit features, which must exist.

        A model that knows these sums without its weights returns a form that overrides this.
        """
        assert span.features is not None
        return self @ span.features

    def transposed_product(self, values: Floats) -> Floats:
        """Return the product of the transposed matrix with values of the predictions."""
        return np.asarray(self.entries().T @ values)

    def entries(self) -> sp.csr_array | Floats:
        """Return the matrix, sparse or dense, whichever costs less to make."""
        return self.tocsr()

    @property
    def max_entries(self) -> int:
        """An upper bound on the number of nonzero weights, known without making the matrix."""
        return prod(self.shape)

    @property
    def is_sparse(self) -> bool:
        """Whether products with the sparse matrix are faster than those of this form."""
        return False

    def support(self) -> npt.NDArray[np.intp]:
        """Return the positions of the training outputs with a nonzero weight in any row."""
        matrix = self.tocsr()
        used = np.zeros(self.shape[1], dtype=bool)
        used[matrix.indices[matrix.data != 0]] = True
        return np.flatnonzero(used)


@dataclass(frozen=True, repr=False)
class DenseWeights(WeightMatrix):
    """A dense array of weights.

    Parameters
    ----------
    dense : ndarray of shape (n, n_train)
        One row per prediction.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.weights import DenseWeights
    >>> W = DenseWeights(np.array([[0.5, 0.5, 0.0]]))
    >>> W @ np.array([10.0, 20.0, 30.0])
    array([15.])
    """

    dense: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """Number of predictions and of training outputs."""
        n, n_train = self.dense.shape
        return n, n_train

    def select_rows(self, rows: slice) -> DenseWeights:
        """Return some of the rows."""
        return DenseWeights(self.dense[rows])

    def multiply(self, values: Floats) -> Floats:
        """Return weighted sums of values of the training outputs."""
        return np.asarray(np.tensordot(self.dense, values, axes=1))

    def tocsr(self) -> sp.csr_array:
        """Return the array as a sparse matrix."""
        return sp.csr_array(self.dense)

    def entries(self) -> Floats:
        """Return the array."""
        return self.dense


@dataclass(frozen=True, repr=False)
class SparseWeights(WeightMatrix):
    """A sparse matrix of weights.

    Parameters
    ----------
    matrix : csr_array of shape (n, n_train)
        One row per prediction.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from okforest.weights import SparseWeights
    >>> SparseWeights(csr_array([[0.5, 0.0, 0.5]])).support()
    array([0, 2])
    """

    matrix: sp.csr_array

    @property
    def shape(self) -> tuple[int, int]:
        """Number of predictions and of training outputs."""
        n, n_train = self.matrix.shape
        return n, n_train

    def select_rows(self, rows: slice) -> SparseWeights:
        """Return some of the rows."""
        return SparseWeights(self.matrix[rows])

    def multiply(self, values: Floats) -> Floats:
        """Return weighted sums of values of the training outputs."""
        return np.asarray(self.matrix @ values)

    def tocsr(self) -> sp.csr_array:
        """Return the matrix."""
        return self.matrix

    @property
    def max_entries(self) -> int:
        """The number of stored entries."""
        return int(self.matrix.nnz)

    @property
    def is_sparse(self) -> bool:
        """Whether products with the sparse matrix are the fastest."""
        return True


def as_weights(W: Any) -> WeightMatrix:
    """Convert a sparse matrix or a dense array to weights; weights of any form are returned.

    Examples
    --------
    >>> from okforest.weights import as_weights
    >>> as_weights([[0.5, 0.5, 0.0]]).support()
    array([0, 1])
    """
    if isinstance(W, WeightMatrix):
        return W
    if sp.issparse(W):
        matrix: Any = W
        check_sparse(matrix, "W")
        return SparseWeights(sp.csr_array(matrix))
    return DenseWeights(np.atleast_2d(np.asarray(W, dtype=np.float64)))


BLOCK_PRODUCTS = 2**31  # multiplications in one matrix product, which cannot be interrupted


@dataclass(frozen=True, repr=False)
class ProductWeights(WeightMatrix):
    """The weights W = LR, multiplied out only where that costs less than R first and then L.

    Parameters
    ----------
    left : ndarray or csr_array of shape (n, r)
        One row per prediction, such as kernel values, or indicators of leaves.
    right : ndarray or csr_array of shape (r, n_train)
        One column per training output, such as means of leaves.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.weights import ProductWeights
    >>> W = ProductWeights(np.array([[1.0, 0.0]]), np.array([[0.5, 0.5], [0.0, 1.0]]))
    >>> W.tocsr().toarray()
    array([[0.5, 0.5]])
    """

    left: Floats | sp.csr_array
    right: Floats | sp.csr_array

    @property
    def shape(self) -> tuple[int, int]:
        """Number of predictions and of training outputs."""
        return self.left.shape[0], self.right.shape[1]

    def select_rows(self, rows: slice) -> ProductWeights:
        """Return some of the rows."""
        return ProductWeights(self.left[rows], self.right)

    def multiply(self, values: Floats) -> Floats:
        """Return weighted sums of values of the training outputs."""
        width = prod(values.shape[1:])
        two_products = (_stored(self.left) + _stored(self.right)) * width
        making = 0 if "_product" in vars(self) else self._n_terms
        if two_products < making + self.max_entries * width:
            return np.asarray(self.left @ (self.right @ values))
        return np.asarray(self._product @ values)

    def transposed_product(self, values: Floats) -> Floats:
        """Return the product of the transposed matrix with values of the predictions."""
        return np.asarray(self.right.T @ (self.left.T @ values))

    @cached_property
    def _product(self) -> Floats | sp.csr_array:
        if sp.issparse(self.right):
            return sp.csr_array(self.left @ self.right)
        result = np.empty(self.shape)
        size = max(1, BLOCK_PRODUCTS // max(1, self.right.size))
        for i in range(0, len(result), size):
            result[i : i + size] = self.left[i : i + size] @ self.right
        return result

    @property
    def _n_terms(self) -> int:
        """The number of multiplications that make the product."""
        if sp.issparse(self.right):
            return int(np.diff(self.right.indptr)[sp.csr_array(self.left).indices].sum())
        return _stored(self.left) * self.shape[1]

    def entries(self) -> Floats | sp.csr_array:
        """Return the product, which is sparse if the right matrix is."""
        return self._product

    def tocsr(self) -> sp.csr_array:
        """Return the product as a sparse matrix."""
        return sp.csr_array(self._product)

    @property
    def max_entries(self) -> int:
        """All entries or, of sparse matrices, those that have a term if no two terms share one."""
        entries = prod(self.shape)
        return min(entries, self._n_terms) if sp.issparse(self.right) else entries


def _stored(matrix: Floats | sp.csr_array) -> int:
    return int(matrix.nnz if sp.issparse(matrix) else matrix.size)


@dataclass(frozen=True, repr=False)
class CombinedWeights(WeightMatrix):
    """The weights Σ_k c_k W_k, such as the mean of several models.

    Parameters
    ----------
    parts : sequence of WeightMatrix of shape (n, n_train)
        The matrices.
    factors : sequence of float
        The coefficient of each.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.weights import CombinedWeights, DenseWeights
    >>> parts = [DenseWeights(np.array([[1.0, 0.0]])), DenseWeights(np.array([[0.0, 1.0]]))]
    >>> CombinedWeights(parts, [0.75, 0.25]).tocsr().toarray()
    array([[0.75, 0.25]])
    """

    parts: Sequence[WeightMatrix]
    factors: Sequence[float]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of predictions and of training outputs."""
        return self.parts[0].shape

    def select_rows(self, rows: slice) -> CombinedWeights:
        """Return some of the rows."""
        return CombinedWeights([part[rows] for part in self.parts], self.factors)

    def multiply(self, values: Floats) -> Floats:
        """Return weighted sums of values of the training outputs."""
        return self._combined([part.multiply(values) for part in self.parts])

    def feature_sums(self, span: Span) -> Floats:
        """Return the predictions in the span's explicit features."""
        return self._combined([part.feature_sums(span) for part in self.parts])

    def tocsr(self) -> sp.csr_array:
        """Return the matrix, sparse."""
        terms = [c * part.tocsr() for c, part in zip(self.factors, self.parts, strict=True)]
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return sp.csr_array(total)

    @property
    def max_entries(self) -> int:
        """The sum over the parts."""
        n, n_train = self.shape
        return min(n * n_train, sum(part.max_entries for part in self.parts))

    def _combined(self, terms: list[Floats]) -> Floats:
        return np.asarray(sum(c * term for c, term in zip(self.factors, terms, strict=True)))


BLOCK_ROWS = 4096  # predictions whose weights are made at a time


@dataclass(frozen=True, repr=False)
class SharpenedWeights(WeightMatrix):
    """The weights ``sign(w) |w|ᵖ``, scaled so that absolute values have the same sum as before.

    A power above 1 moves weight to the outputs that have most of it; 0 gives the same weight to
    every output of nonzero weight.

    Parameters
    ----------
    base : WeightMatrix of shape (n, n_train)
        The weights.
    power : float
        The power p, at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.weights import DenseWeights, SharpenedWeights
    >>> W = SharpenedWeights(DenseWeights(np.array([[0.75, 0.25]])), power=2)
    >>> W.tocsr().toarray()
    array([[0.9, 0.1]])
    """

    base: WeightMatrix
    power: float

    @property
    def shape(self) -> tuple[int, int]:
        """Number of predictions and of training outputs."""
        return self.base.shape

    def select_rows(self, rows: slice) -> SharpenedWeights:
        """Return some of the rows."""
        return SharpenedWeights(self.base[rows], self.power)

    def multiply(self, values: Floats) -> Floats:
        """Return weighted sums of values of the training outputs."""
        starts = range(0, self.shape[0], BLOCK_ROWS)
        parts = [np.asarray(self[i : i + BLOCK_ROWS].tocsr() @ values) for i in starts]
        return np.concatenate(parts) if parts else np.zeros((0, *values.shape[1:]))

    def tocsr(self) -> sp.csr_array:
        """Return the matrix, sparse."""
        base = self.base.tocsr()
        n = self.shape[0]
        rows = np.repeat(np.arange(n), np.diff(base.indptr))
        sizes = np.abs(base.data)
        # Relative to the largest weight of a row, so that high powers do not underflow.
        largest = np.zeros(n)
        np.maximum.at(largest, rows, sizes)
        sharp = (sizes / np.where(largest > 0, largest, 1.0)[rows]) ** self.power
        sharp[sizes == 0] = 0.0
        sums = np.bincount(rows, sizes, minlength=n)
        totals = np.bincount(rows, sharp, minlength=n)
        scale = sums / np.where(totals > 0, totals, 1.0)
        data = np.copysign(sharp * scale[rows], base.data)
        return sp.csr_array((data, base.indices, base.indptr), shape=self.shape)

    @property
    def max_entries(self) -> int:
        """The same as the base's."""
        return self.base.max_entries
