"""A fit of boosting before its first round: data, rows held out, residuals, early stopping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from okforest._utils.arrays import Booleans, Floats, Outputs
from okforest._utils.inputs import TrainingInputs
from okforest.embedding import Embedding
from okforest.kernels import OutputKernel
from okforest.weights import hidden_squares

if TYPE_CHECKING:
    from okforest.models.boosting.rounds import Round
    from okforest.models.boosting.trees import LeafRound


@dataclass(frozen=True)
class EarlyStopping:
    """Stops when the last rounds have not reduced the validation loss by enough.

    Parameters
    ----------
    n_iter_no_change : int
        The number of last rounds that are compared with all before.
    tol : float
        The reduction that is not enough, as a fraction of the loss of the mean.

    Examples
    --------
    >>> from okforest.models.boosting.plan import EarlyStopping
    >>> stopping = EarlyStopping(n_iter_no_change=2, tol=0.1)
    >>> stopping.reached([10.0, 6.0, 5.5])
    False
    >>> stopping.reached([10.0, 6.0, 5.5, 5.2])
    True
    """

    n_iter_no_change: int
    tol: float

    def reached(self, losses: Sequence[float]) -> bool:
        """Return whether to stop, given the losses of the mean and of all rounds so far."""
        n = self.n_iter_no_change
        if len(losses) <= n:
            return False
        return min(losses[-n:]) >= min(losses[:-n]) - self.tol * losses[0]


@dataclass(frozen=True)
class BoostPlan:
    """All that the rounds of a fit depend on, except the base learner.

    Parameters
    ----------
    inputs : TrainingInputs
        The validated inputs.
    kernel : OutputKernel
        The kernel, resolved on the outputs.
    outputs : ndarray
        The outputs in canonical form.
    embedding : Embedding
        The outputs as numbers.
    row_weight : ndarray of shape (n,)
        Weights of the rows; zero for rows that are held out.
    validation_weight : ndarray of shape (n,)
        Weights of the rows in the validation loss; zero for rows that are learnt from.
    seed : int
        The seed. Round m depends on it and on m only.
    subsample : float
        The fraction of the rows that each round learns from.
    n_rounds : int
        Maximum number of rounds.
    stopping : EarlyStopping or None
        When to stop before.
    """

    inputs: TrainingInputs
    kernel: OutputKernel
    outputs: Outputs
    embedding: Embedding
    row_weight: Floats
    validation_weight: Floats
    seed: int
    subsample: float
    n_rounds: int
    stopping: EarlyStopping | None

    @property
    def initial(self) -> Floats:
        """The weights of the mean, from which boosting starts."""
        return self.row_weight / self.row_weight.sum()

    @property
    def held_out(self) -> Booleans:
        """Which rows are held out."""
        return self.validation_weight > 0

    def draw(self, m: int) -> Floats:
        """Return the weights of the rows in round m; zero for rows that are not drawn."""
        if self.subsample == 1.0:
            return self.row_weight
        rows = np.flatnonzero(self.row_weight)
        n_drawn = max(2, int(self.subsample * len(rows)))
        drawn = np.random.default_rng([self.seed, m]).choice(rows, n_drawn, replace=False)
        weight = np.zeros_like(self.row_weight)
        weight[drawn] = self.row_weight[drawn]
        return weight

    def validation_loss(self, squares: Floats) -> float:
        """Return the mean loss of the rows held out, given ‖φ − F‖² of all; NaN if there are none.

        Explicit features do not show all of an output that differs from the training outputs, such
        as a new class; the rest is part of its loss.
        """
        total = self.validation_weight.sum()
        if total == 0:
            return np.nan
        return float(self.validation_weight @ squares) / total + self._hidden_loss

    @cached_property
    def _hidden_loss(self) -> float:
        """The part of the validation loss that explicit features do not show."""
        rows = self.held_out
        if self.embedding.kind != "features" or not rows.any():
            return 0.0
        squares = hidden_squares(self.kernel, self.outputs[rows])
        return float(np.average(squares, weights=self.validation_weight[rows]))

    def oob_improvement(self, reduction: Floats, weight: Floats) -> float:
        """Return the mean reduction of the loss of rows that have no weight in a round.

        NaN if there are none.
        """
        unseen = (weight == 0) & (self.row_weight > 0)
        if not unseen.any():
            return np.nan
        return float(np.average(reduction[unseen], weights=self.row_weight[unseen]))


def hold_out(weight: Floats, fraction: float, seed: int) -> tuple[Floats, Floats]:
    """Divide the rows of positive weight at random into training and validation rows.

    Returns
    -------
    row_weight, validation_weight : ndarray of shape (n,)
        The weights, each with zeros for the rows of the other part.
    """
    rows = np.flatnonzero(weight)
    n_held_out = max(1, round(fraction * len(rows)))
    if len(rows) - n_held_out < 2:
        raise ValueError(
            f"validation_fraction={fraction} leaves {len(rows) - n_held_out} of {len(rows)} rows "
            "to learn from; at least 2 are needed. Lower it, or set n_iter_no_change=None."
        )
    held_out = np.zeros(len(weight), dtype=bool)
    held_out[np.random.default_rng(seed).choice(rows, n_held_out, replace=False)] = True
    return np.where(held_out, 0.0, weight), np.where(held_out, weight, 0.0)


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
