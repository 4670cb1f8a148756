"""The contract of weights over training outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import prod
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._utils.arrays import Floats

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
