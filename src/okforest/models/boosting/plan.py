"""A fit of boosting before its first round: validated data, rows held out, draws, and losses."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from okforest._typing import Booleans, Floats, Outputs
from okforest._validation import TrainingInputs
from okforest.embedding import Embedding
from okforest.kernels import OutputKernel
from okforest.models.boosting.early_stopping import EarlyStopping
from okforest.weights import hidden_squares


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
