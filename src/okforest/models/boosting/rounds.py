"""A fit of boosting: its plan and early stopping, its rounds, and the weights of their sum.

Weights over the training outputs are computed only where they are needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from okforest._utils.arrays import Booleans, Floats, Inputs, Outputs
from okforest._utils.inputs import TrainingInputs
from okforest._utils.progress import Watchers
from okforest.embedding import Embedding
from okforest.kernels import OutputKernel
from okforest.weights import DenseWeights, Span, WeightMatrix, hidden_squares

if TYPE_CHECKING:
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
    >>> from okforest.models.boosting.rounds import EarlyStopping
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
        if self.stopping is None:
            return np.nan
        total = self.validation_weight.sum()
        return float(self.validation_weight @ squares) / total + self._hidden_loss

    @cached_property
    def _hidden_loss(self) -> float:
        """The part of the validation loss that explicit features do not show."""
        rows = self.held_out
        if self.embedding.kind != "features" or not rows.any():
            return 0.0
        squares = hidden_squares(self.kernel, self.outputs[rows])
        return float(np.average(squares, weights=self.validation_weight[rows]))

    def oob_improvement(self, before: Floats, after: Floats, weight: Floats) -> float:
        """Return the mean reduction of the loss ‖φ − F‖² of rows that have no weight in a round.

        NaN if there are none.
        """
        if weight is self.row_weight:
            return np.nan
        unseen = (weight == 0) & (self.row_weight > 0)
        if not unseen.any():
            return np.nan
        return float(np.average((before - after)[unseen], weights=self.row_weight[unseen]))


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


BLOCK_PRODUCTS = 2**31  # multiplications in one matrix product, which cannot be interrupted

KEPT_BYTES = 2**28  # of a dense matrix that is computed once, for all its rows
MOST_COLUMNS = 256  # the sums of wider values in all leaves are not kept
# Values with fewer columns than this fraction of the predictions are followed round by round.
NARROW = 1 / 16


class Round(ABC):
    """One round, as it acts on values of the training rows."""

    @abstractmethod
    def subtract(self, values: Floats) -> Floats:
        """Subtract the predictions for the training rows from the values, in place.

        Return the vectors, times the scale, from which predictions are computed.
        """


class Rounds(ABC):
    """The rounds of a fitted model.

    A round, ``rounds[m]``, is built on access.

    Parameters
    ----------
    scales : ndarray of shape (n_rounds,)
        The factor by which each round is multiplied.
    initial : ndarray of shape (n_train,)
        The weights of the mean, from which boosting starts.
    """

    def __init__(self, scales: Floats, initial: Floats):
        self.scales, self.initial = scales, initial

    def __len__(self) -> int:
        return len(self.scales)

    @abstractmethod
    def __getitem__(self, m: int) -> Round: ...

    @abstractmethod
    def coordinates(self, X: Inputs, n_threads: int = 1) -> list[Any]:
        """Return the coordinates of inputs in every round; they can be sliced by rows."""

    @abstractmethod
    def predict(self, vectors: Floats, coordinates: Any) -> Floats:
        """Return the predictions of a round with these vectors, for rows with these coordinates."""

    def weights(self, coordinates: list[Any], span: Span) -> WeightMatrix:
        """Return the weights of predictions over the training outputs, which the span holds."""
        return BoostedWeights(self, coordinates)

    def staged_weights(self, coordinates: list[Any], span: Span) -> Iterator[WeightMatrix]:
        """Yield the weights after each round, in the form that is cheapest to decode."""
        return self.staged_dense_weights(coordinates)

    def staged_dense_weights(self, coordinates: list[Any]) -> Iterator[DenseWeights]:
        """Yield the weights after each round as arrays."""
        for weights in self._staged_sums(self.initial, self.weight_vectors(), coordinates):
            yield DenseWeights(weights)

    def staged_feature_weights(self, coordinates: list[Any], span: Span) -> Iterator[WeightMatrix]:
        """Yield the weights after each round, with their sums of the span's explicit features."""
        assert span.features is not None
        mean, vectors = self.initial @ span.features, self.feature_vectors(span.features)
        for m, sums in enumerate(self._staged_sums(mean, vectors, coordinates), start=1):
            yield FeatureWeights(partial(BoostedWeights, self, coordinates[:m]), span, sums)

    def _staged_sums(
        self, mean: Floats, vectors: Iterator[Floats], coordinates: list[Any]
    ) -> Iterator[Floats]:
        sums = np.tile(mean, (coordinates[0].shape[0], 1))
        for own_vectors, own in zip(vectors, coordinates, strict=True):
            sums = sums + self.predict(own_vectors, own)
            yield sums

    def staged_losses(
        self, coordinates: list[Any], span: Span, outputs: Outputs
    ) -> Iterator[Floats]:
        """Yield the losses of predictions in feature space after each round."""
        if span.features is not None:
            for W in self.staged_feature_weights(coordinates, span):
                yield span.losses(W, outputs)
            return
        K, cross = span.kernel(span.outputs), span.kernel(outputs, span.outputs)
        weights = np.tile(self.initial, (len(outputs), 1))
        losses = span.kernel.diag(outputs) - 2.0 * cross @ self.initial
        losses += self.initial @ (K @ self.initial)
        for vectors, own in zip(self.weight_vectors(), coordinates, strict=True):
            # ‖φ − F − d‖² = ‖φ − F‖² + ⟨d, d + 2F − 2φ⟩
            change = self.predict(vectors, own)
            few = len(vectors) < len(change)
            inner = self.predict(_product(vectors, K), own) if few else _product(change, K)
            losses += np.einsum("ij,ij->i", inner, change + 2.0 * weights)
            losses -= 2.0 * np.einsum("ij,ij->i", change, cross)
            weights += change
            yield np.maximum(losses, 0.0)

    @abstractmethod
    def dense_weights(self, coordinates: list[Any]) -> Floats:
        """Return the weights of predictions as an array.

        They are pulled back from the last round to the first, at a cost of n_train per round and
        prediction, without any n_train × n_train matrix.
        """

    def follow(self, residuals: Floats) -> Iterator[Floats]:
        """Yield the vectors of each round; the residuals are overwritten."""
        residuals = np.ascontiguousarray(residuals)  # as the core expects; kernels return any order
        return (self[m].subtract(residuals) for m in range(len(self)))

    def weight_vectors(self) -> Iterator[Floats]:
        """Yield the vectors of each round as weights over the training outputs.

        Takes an n_train × n_train matrix.
        """
        return self.follow(initial_residuals(self.initial))

    def feature_vectors(self, features: Floats) -> Iterator[Floats]:
        """Yield the vectors of each round in explicit features of the training outputs."""
        return self.follow(features - self.initial @ features)


@dataclass(frozen=True, repr=False)
class BoostedWeights(WeightMatrix):
    """The weights of predictions, given by their coordinates in every round.

    Parameters
    ----------
    rounds : Rounds
        The rounds.
    coordinates : list
        The coordinates of the predictions in the first ``len(coordinates)`` rounds; later rounds
        are left out.
    """

    rounds: Rounds
    coordinates: list[Any]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of predictions and of training outputs."""
        return self.coordinates[0].shape[0], len(self.rounds.initial)

    def select_rows(self, rows: slice) -> WeightMatrix:
        """Return some of the rows."""
        n = self.shape[0]
        if range(n)[rows] == range(n):
            return self
        if 8 * prod(self.shape) <= KEPT_BYTES:
            return DenseWeights(self._dense[rows])
        return self.take(rows)

    def take(self, rows: slice) -> BoostedWeights:
        """Return some of the rows, in the same form."""
        return BoostedWeights(self.rounds, [own[rows] for own in self.coordinates])

    def multiply(self, values: Floats) -> Floats:
        """Return weighted sums of values of the training outputs."""
        n = self.shape[0]
        matrix = values.reshape(len(values), -1)
        if "_dense" in vars(self) or matrix.shape[1] >= NARROW * n:
            result = self._dense @ matrix
        else:
            mean = self.rounds.initial @ matrix
            result = np.tile(mean, (n, 1))
            vectors = self.rounds.follow(matrix - mean)
            for own, own_vectors in zip(self.coordinates, vectors, strict=False):
                result += self.rounds.predict(own_vectors, own)
        return result.reshape(n, *np.shape(values)[1:])

    @cached_property
    def _dense(self) -> Floats:
        return self.rounds.dense_weights(self.coordinates)

    def entries(self) -> Floats:
        """Return the matrix, a dense array."""
        return self._dense

    def tocsr(self) -> sp.csr_array:
        """Return the matrix, sparse."""
        return sp.csr_array(self._dense)


@dataclass(frozen=True, repr=False)
class FeatureWeights(WeightMatrix):
    """Boosted weights whose weighted sums of explicit features are known.

    Parameters
    ----------
    compute : callable
        Returns the weights, which are computed when they are needed.
    span : Span
        The kernel and the training outputs that the features belong to.
    sums : ndarray of shape (n, n_features)
        The weighted sums.
    sums_of : callable, optional
        Returns the weighted sums of values that the span keeps, from means of leaves.
    """

    compute: Callable[[], BoostedWeights]
    span: Span
    sums: Floats
    sums_of: Callable[[Floats], Floats] | None = None

    @cached_property
    def weights(self) -> BoostedWeights:
        """The weights."""
        return self.compute()

    @property
    def shape(self) -> tuple[int, int]:
        """Number of predictions and of training outputs."""
        return len(self.sums), len(self.span)

    def select_rows(self, rows: slice) -> FeatureWeights:
        """Return some of the rows."""
        return FeatureWeights(lambda: self.weights.take(rows), self.span, self.sums[rows])

    def multiply(self, values: Floats) -> Floats:
        """Return weighted sums of values of the training outputs."""
        is_narrow = values.ndim == 2 and values.shape[1] <= MOST_COLUMNS
        if self.sums_of is not None and is_narrow and self.span.keeps(values):
            return self.sums_of(values)
        return self.weights @ values

    def feature_sums(self, span: Span) -> Floats:
        """Return the sums if they are of this span's features, else compute them."""
        if span.kernel is self.span.kernel and span.outputs is self.span.outputs:
            return self.sums
        return super().feature_sums(span)

    def entries(self) -> Floats:
        """Return the matrix, a dense array."""
        return self.weights.entries()

    def tocsr(self) -> sp.csr_array:
        """Return the matrix, sparse."""
        return self.weights.tocsr()


class RoundLearner(ABC):
    """Learns one round after the other, and updates the residuals.

    Parameters
    ----------
    initial : ndarray of shape (n_train,)
        The weights of the mean, from which boosting starts.
    residuals : Residuals
        The residuals around the mean.
    """

    def __init__(self, initial: Floats, residuals: Residuals):
        self.initial, self.residuals = initial, residuals
        self.scales: list[float] = []

    def squares(self) -> Floats:
        """Return the squared norms of the residuals."""
        return self.residuals.squares()

    @abstractmethod
    def add(self, m: int, weight: Floats) -> None:
        """Learn round m from rows of these weights, and subtract it from the residuals."""

    @abstractmethod
    def replay(self, rounds: Any) -> None:
        """Subtract the rounds of a previous fit, and keep them."""

    @abstractmethod
    def rounds(self) -> Rounds:
        """Return all rounds so far."""


def _product(A: Floats, K: Floats) -> Floats:
    """Return A K, some rows at a time."""
    size = max(1, BLOCK_PRODUCTS // K.size)
    if len(A) <= size:
        return A @ K
    return np.concatenate([A[i : i + size] @ K for i in range(0, len(A), size)])


@dataclass
class LearningCurve:
    """What is measured after each round; NaN where there is nothing to measure.

    Parameters
    ----------
    train_loss : list of float
        The mean loss of the training rows.
    validation_loss : list of float
        The mean loss of the rows held out.
    oob_improvement : list of float
        The reduction of the mean loss of the rows that were not drawn for the round.
    """

    train_loss: list[float] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)
    oob_improvement: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.train_loss)


class Boosted(NamedTuple):
    """The rounds of a fit and their learning curve."""

    rounds: Rounds
    curve: LearningCurve


def run_rounds(
    plan: BoostPlan,
    learner: RoundLearner,
    previous: Boosted | None = None,
    progress: Watchers | None = None,
) -> Boosted:
    """Add rounds to those of a previous fit until there are enough, or they no longer help.

    Parameters
    ----------
    plan : BoostPlan
        The data, the number of rounds and when to stop.
    learner : RoundLearner
        What learns the rounds.
    previous : Boosted, optional
        The previous fit, on the same data.
    progress : Watchers, optional
        Called after each round with the number of new rounds.
    """
    curve, squares, initial = LearningCurve(), learner.squares(), plan.initial
    validation_losses = [plan.validation_loss(squares)]
    if previous is not None:
        learner.replay(previous.rounds)
        curve, squares = previous.curve, learner.squares()
        validation_losses += curve.validation_loss
    first = len(curve)
    for m in range(first, plan.n_rounds):
        if plan.stopping is not None and plan.stopping.reached(validation_losses):
            break
        weight, before = plan.draw(m), squares
        learner.add(m, weight)
        squares = learner.squares()
        validation_losses.append(plan.validation_loss(squares))
        curve.train_loss.append(float(initial @ squares))
        curve.validation_loss.append(validation_losses[-1])
        curve.oob_improvement.append(plan.oob_improvement(before, squares, weight))
        if progress is not None:
            progress(m + 1 - first)
    return Boosted(learner.rounds(), curve)
