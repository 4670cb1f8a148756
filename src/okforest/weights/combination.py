"""Weights as a linear combination of other weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from okforest._typing import Floats
from okforest.weights._base import WeightMatrix

if TYPE_CHECKING:
    from okforest.weights.span import Span


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

    def select_rows(self, rows: slice) -> "CombinedWeights":
        """Return some of the rows."""
        return CombinedWeights([part[rows] for part in self.parts], self.factors)

    def multiply(self, values: Floats) -> Floats:
        """Return weighted sums of values of the training outputs."""
        return self._combined([part.multiply(values) for part in self.parts])

    def feature_sums(self, span: "Span") -> Floats:
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
