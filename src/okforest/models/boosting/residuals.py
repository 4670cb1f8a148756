"""The residuals that the next round learns from: as vectors, or as a Gram matrix.

A round costs n·rank for vectors and n² for a Gram matrix; the trees are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from okforest._typing import Floats
from okforest.embedding import Embedding
from okforest.weights import WeightMatrix

if TYPE_CHECKING:
    from okforest.models.boosting.rounds import Round
    from okforest.models.boosting.trees import LeafRound


class VectorResiduals:
    """Residuals φᵐ_i in the coordinates of explicit features or of a factor of the Gram matrix.

    Parameters
    ----------
    embedding : Embedding
        The outputs. Its array is changed in place into the residuals.
    initial : ndarray of shape (n,)
        The weights of the mean, from which boosting starts.
    """

    is_gram = False
    row_sums = None

    def __init__(self, embedding: Embedding, initial: Floats):
        self.values = embedding.values
        self.values -= initial @ self.values
        # Where trees fit the outputs, rounding errors are left, which trees must not fit.
        unit = (64 + len(initial) ** 0.5) * np.finfo(np.float64).eps
        self.row_errors = unit**2 * self.squares()
        if embedding.errors is not None:
            self.row_errors = np.maximum(self.row_errors, embedding.errors)

    def squares(self) -> Floats:
        """Return ‖φᵐ_i‖²."""
        return np.einsum("ij,ij->i", self.values, self.values)

    def subtract(self, step: Round) -> Floats:
        """Subtract the predictions of a round, and return its vectors."""
        return step.subtract(self.values)

    def best_scale(self, weights: WeightMatrix, weight: Floats) -> float:
        """Return the factor of predictions that minimises the weighted sum of squares."""
        predicted = weights @ self.values
        square = weight @ np.einsum("ij,ij->i", predicted, predicted)
        product = weight @ np.einsum("ij,ij->i", predicted, self.values)
        return float(product / square) if square > 0 else 1.0


class GramResiduals:
    """Residuals given by their inner products ⟨φᵐ_i, φᵐ_j⟩.

    Parameters
    ----------
    embedding : Embedding
        The outputs. Its array is changed in place into that of the residuals.
    initial : ndarray of shape (n,)
        The weights of the mean, from which boosting starts.
    """

    is_gram = True
    row_sums: Floats | None = None  # of the matrix, once a tree has been subtracted

    def __init__(self, embedding: Embedding, initial: Floats):
        K = embedding.values
        inner = K @ initial
        K -= inner[:, None]
        K -= inner[None, :]
        K += initial @ inner
        self.values = K
        self.row_errors = embedding.errors  # of the outputs: they stay

    def squares(self) -> Floats:
        """Return ‖φᵐ_i‖², at least zero in spite of rounding."""
        return np.maximum(np.diagonal(self.values), 0.0)

    def subtract(self, step: LeafRound) -> None:
        """Subtract the means of a tree."""
        self.row_sums = step.subtract_from_gram(self.values)


Residuals = VectorResiduals | GramResiduals


def initial_residuals(initial: Floats) -> Floats:
    """Return the weights of φ − mean over the training outputs: I − 1wᵀ."""
    residuals = np.eye(len(initial))
    residuals -= initial
    return residuals
