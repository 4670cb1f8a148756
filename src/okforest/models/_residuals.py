"""The residuals of boosting, from which the next tree is grown: as vectors, or as a Gram matrix.

A round costs N·rank as vectors and N² as a Gram matrix; the trees are the same.
"""

import numpy as np

from okforest._typing import Floats, WeightMatrix
from okforest.embedding import Embedding
from okforest.models._rounds import LeafRound, Round, initial_residuals


class VectorResiduals:
    """Residuals φᵐ_i in the coordinates of features or of a factor of the Gram matrix.

    Parameters
    ----------
    embedding : Embedding
        The outputs; its array becomes that of the residuals.
    initial : ndarray of shape (n,)
        The weights of the mean, from which boosting starts.
    """

    is_gram = False

    def __init__(self, embedding: Embedding, initial: Floats):
        self.values = embedding.values
        self.values -= initial @ self.values

    def squares(self) -> Floats:
        """Return ‖φᵐ_i‖²."""
        return np.einsum("ij,ij->i", self.values, self.values)

    def subtract(self, step: Round) -> Floats:
        """Subtract a round's predictions, and return its vectors."""
        return step.subtract(self.values)

    def best_scale(self, weights: WeightMatrix, weight: Floats) -> float:
        """Return the factor of predictions that leaves the least weighted squares."""
        predicted = weights @ self.values
        square = weight @ np.einsum("ij,ij->i", predicted, predicted)
        product = weight @ np.einsum("ij,ij->i", predicted, self.values)
        return float(product / square) if square > 0 else 1.0


class GramResiduals:
    """Residuals by their inner products ⟨φᵐ_i, φᵐ_j⟩.

    Parameters
    ----------
    embedding : Embedding
        The outputs; its array becomes that of the residuals.
    initial : ndarray of shape (n,)
        The weights of the mean, from which boosting starts.
    track : bool
        Whether to follow the residuals' weights over the training outputs, too: another N × N
        matrix, and what every leaf adds to the weights of predictions.
    """

    is_gram = True

    def __init__(self, embedding: Embedding, initial: Floats, track: bool):
        K = embedding.values
        inner = K @ initial
        K -= inner[:, None]
        K -= inner[None, :]
        K += initial @ inner
        self.values = K
        self.weights = initial_residuals(initial) if track else None

    def squares(self) -> Floats:
        """Return ‖φᵐ_i‖², not below zero by rounding."""
        return np.maximum(np.diagonal(self.values), 0.0)

    def subtract(self, step: LeafRound) -> Floats | None:
        """Subtract a tree's means, and return their weights over the outputs, if tracked."""
        step.leaves.subtract_from_gram(self.values, step.scale, step.n_threads)
        return None if self.weights is None else step.subtract(self.weights)


Residuals = VectorResiduals | GramResiduals


def residuals_of(embedding: Embedding, initial: Floats, *, track: bool) -> Residuals:
    """Return the residuals around the mean, in the form that the outputs are embedded in."""
    if embedding.kind == "gram":
        return GramResiduals(embedding, initial, track)
    return VectorResiduals(embedding, initial)
