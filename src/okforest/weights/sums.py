"""Weights known by the sums of explicit features that they stand for."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from okforest._typing import Floats
from okforest.weights._base import WeightMatrix

if TYPE_CHECKING:
    from okforest.weights.span import Span


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
