"""The rounds of boosting, and the weights of their sum over the training outputs.

A round predicts residuals φᵐ_i by a few vectors of their span, v = Aφᵐ: a row's prediction is its
coordinates times v. Of a tree these are the leaves' means and a 1 for the leaf that a row reaches;
of any other base learner the residuals themselves and its weights. With P the coordinates of the
training rows and ν the scale, residuals become φᵐ⁺¹ = (I − νPA)φᵐ. Weights over the training
outputs follow either round by round from the first (of some values of the training rows) or from
the last (of some predictions), at a cost of N·rounds for each of them, without any N × N matrix.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._typing import Floats, Ints, WeightMatrix, Weights
from okforest.embedding import DenseWeights, entries
from okforest.engine import Leaves, Trees
from okforest.engine.inputs import Inputs

Places = npt.NDArray[Any]  # whole numbers: which of a tree's leaves

BLOCK_BYTES = 2**26  # of predictions whose weights are made at a time
KEPT_BYTES = 2**28  # of a matrix of weights that is kept for the next question
# Values of fewer columns than this part of the predictions are followed from the first round.
NARROW = 1 / 16


class Round(Protocol):
    """One round, as it acts on values of the training rows."""

    def subtract(self, values: Floats) -> Floats:
        """Subtract the training rows' predictions, in place, from values that stand for φ.

        Return the vectors Aφ, times the scale, that predictions are made of.
        """

    def predict(self, vectors: Floats, coordinates: Any) -> Floats:
        """Return the predictions of rows with these coordinates."""

    def pull_back(self, upper: Floats, coordinates: Any) -> None:
        """Turn weights over residuals after the round into weights over those before it.

        ``upper`` has a column for each prediction, whose coordinates in this round are given, and
        changes in place: its weights of the later rounds become those of this and later ones.
        """


@dataclass(frozen=True)
class LeafRound:
    """A tree.

    Parameters
    ----------
    scale : float
        What its means are multiplied by.
    leaves : Leaves
        Its leaves.
    n_threads : int
        Threads to subtract with.
    """

    scale: float
    leaves: Leaves
    n_threads: int = 1

    def subtract(self, values: Floats) -> Floats:
        """Return the means of the leaves, times the scale."""
        return self.leaves.subtract(values, self.scale, self.n_threads)

    def predict(self, vectors: Floats, coordinates: Places) -> Floats:
        """Return each row's leaf's vector."""
        return vectors[coordinates]

    def pull_back(self, upper: Floats, coordinates: Places) -> None:
        """Move the weights of later rounds to the leaves, and those of this round to the rows."""
        places, shape = self.leaves.places, self.leaves.means.shape
        ends = np.cumsum(np.bincount(places, minlength=len(self.leaves)))
        rows = np.argsort(places, kind="stable")
        sums = sp.csr_array((np.ones(len(rows)), rows, np.append(0, ends)), shape=shape)
        by_leaf = -(sums @ upper)
        by_leaf[coordinates, np.arange(upper.shape[1])] += 1.0
        by_leaf *= self.scale
        upper += self.leaves.means.T @ by_leaf


@dataclass(frozen=True)
class WeightsRound:
    """A base learner that predicts weights over residuals.

    Parameters
    ----------
    scale : float
        What its predictions are multiplied by.
    weights : WeightMatrix of shape (n_train, n_train)
        The weights of the training rows.
    """

    scale: float
    weights: WeightMatrix

    def subtract(self, values: Floats) -> Floats:
        """Return the residuals themselves, times the scale."""
        vectors = self.scale * values
        values -= self.weights @ vectors
        return vectors

    def predict(self, vectors: Floats, coordinates: WeightMatrix) -> Floats:
        """Return the weighted sums."""
        return np.asarray(coordinates @ vectors)

    def pull_back(self, upper: Floats, coordinates: WeightMatrix) -> None:
        """Subtract what later rounds see of this one, and add its own weights."""
        later = entries(self.weights).T @ upper
        own = entries(coordinates).T
        upper += self.scale * (np.asarray(own.todense() if sp.issparse(own) else own) - later)


class Rounds(ABC):
    """All rounds of a model; one is made when it is asked for."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, m: int) -> Round: ...

    @abstractmethod
    def coordinates(self, X: Inputs, n_threads: int = 1) -> list[Any]:
        """Return the coordinates of inputs in every round."""


class LeafRounds(Rounds):
    """Trees, with the leaves that training rows reach.

    Parameters
    ----------
    trees : Trees
        The trees, whose ``row_weight`` is what rows weigh in the means.
    places : ndarray of shape (n_trees, n_train)
        The leaf of each training row in each tree, by its place in :attr:`node_places`.
    scales : ndarray of shape (n_trees,)
        What the trees are multiplied by.
    """

    def __init__(self, trees: Trees, places: Places, scales: Floats):
        self.trees, self.places, self.scales = trees, places, scales
        self.offsets, self.node_places = number_leaves(trees)

    def __len__(self) -> int:
        return len(self.scales)

    def __getitem__(self, m: int) -> LeafRound:
        return LeafRound(self.scales[m], leaves_of(self.trees[m], self.places[m]))

    def coordinates(self, X: Inputs, n_threads: int = 1) -> list[Places]:
        """Return the place of the leaf that each row reaches."""
        leaves = self.trees.apply(X, n_threads)
        return [*self.node_places[leaves + self.trees.node_offsets[:-1]].T]

    def sums(self, table: Floats, coordinates: list[Places]) -> Floats:
        """Return for each prediction the sum of its leaves' rows of a table of all leaves."""
        columns = (np.column_stack(coordinates) + self.offsets[: len(coordinates)]).ravel()
        n = len(coordinates[0])
        ends = np.arange(n + 1) * len(coordinates)
        places = sp.csr_array((np.ones(len(columns)), columns, ends), shape=(n, len(table)))
        return np.asarray(places @ table)


class WeightRounds(Rounds):
    """Other base learners, with the training inputs, whose weights are made when needed.

    Parameters
    ----------
    bases : list
        The fitted base learners.
    inputs : ndarray or csr_array of shape (n_train, p)
        The training inputs.
    scales : ndarray
        What the base learners' predictions are multiplied by.
    """

    def __init__(self, bases: list[Any], inputs: Inputs, scales: Floats):
        self.bases, self.inputs, self.scales = bases, inputs, scales

    def __len__(self) -> int:
        return len(self.bases)

    def __getitem__(self, m: int) -> WeightsRound:
        return WeightsRound(self.scales[m], weights_of(self.bases[m], self.inputs))

    def coordinates(self, X: Inputs, n_threads: int = 1) -> list[WeightMatrix]:
        """Return the weights of each base learner."""
        return [weights_of(base, X) for base in self.bases]


@dataclass(frozen=True)
class BoostedWeights:
    """The weights of predictions over the training outputs, made only where they must be.

    Parameters
    ----------
    rounds : Rounds
        The rounds, of which the first so many take part as there are coordinates.
    coordinates : list
        Those of the predictions in each round.
    n : int
        Number of predictions.
    initial : ndarray of shape (n_train,)
        The weights of the mean, from which boosting starts.
    leaf_weights : ndarray of shape (n_leaves, n_train), optional
        What each leaf of each tree adds to the weights, if that is known.
    known : tuple of two ndarrays, optional
        Values of the training rows, and their weighted sums, if these are known.
    """

    rounds: Any
    coordinates: list[Any]
    n: int
    initial: Floats
    leaf_weights: Floats | None = None
    known: tuple[Floats, Floats] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of predictions and of training rows."""
        return self.n, len(self.initial)

    def __getitem__(self, rows: slice) -> "BoostedWeights | DenseWeights":
        n_rows = len(range(self.n)[rows])
        if n_rows == self.n:
            return self
        if self.known is None and 8 * prod(self.shape) <= KEPT_BYTES:
            return DenseWeights(self.dense[rows])
        known = None if self.known is None else (self.known[0], self.known[1][rows])
        coordinates = [own[rows] for own in self.coordinates]
        return BoostedWeights(
            self.rounds, coordinates, n_rows, self.initial, self.leaf_weights, known
        )

    def __matmul__(self, values: Floats) -> Floats:
        """Return the weighted sums of the training rows' values, of shape (n_train,) or more."""
        matrix = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
        if self.known is not None and np.array_equal(self.known[0], matrix):
            result = self.known[1]
        elif "dense" not in vars(self) and matrix.shape[1] < NARROW * self.n:
            result = self._follow(matrix)
        else:
            result = self.dense @ matrix
        return result.reshape(self.n, *np.shape(values)[1:])

    def _follow(self, values: Floats) -> Floats:
        """Return the weighted sums, by the residuals that the values leave round by round."""
        mean = self.initial @ values
        residuals = values - mean
        result = np.tile(mean, (self.n, 1))
        for m, own in enumerate(self.coordinates):
            step = self.rounds[m]
            result += step.predict(step.subtract(residuals), own)
        return result

    @cached_property
    def dense(self) -> Floats:
        """The matrix itself."""
        if self.leaf_weights is not None:
            return self.initial + self.rounds.sums(self.leaf_weights, self.coordinates)
        result = np.empty(self.shape)
        size = max(1, BLOCK_BYTES // (8 * len(self.initial)))
        for start in range(0, self.n, size):
            rows = slice(start, min(start + size, self.n))
            upper = np.zeros((len(self.initial), rows.stop - rows.start))
            for m in reversed(range(len(self.coordinates))):
                self.rounds[m].pull_back(upper, self.coordinates[m][rows])
            result[rows] = upper.T + (1.0 - upper.sum(axis=0))[:, None] * self.initial
        return result

    def tocsr(self) -> Weights:
        """Return the matrix itself, as a sparse one."""
        return sp.csr_array(self.dense)


def contributions(
    rounds: Rounds, initial: Floats, leaf_weights: Floats | None = None
) -> Iterator[tuple[Round, Floats]]:
    """Yield each round with its vectors' weights over the training outputs.

    Where leaves' weights are not known, the residuals' are followed: an N × N matrix.
    """
    residuals = None if leaf_weights is not None else initial_residuals(initial)
    for m in range(len(rounds)):
        step = rounds[m]
        if residuals is None:
            assert isinstance(rounds, LeafRounds)
            assert leaf_weights is not None
            yield step, leaf_weights[rounds.offsets[m] : rounds.offsets[m + 1]]
        else:
            yield step, step.subtract(residuals)


def initial_residuals(initial: Floats) -> Floats:
    """Return the weights of φ − mean, I − 1wᵀ."""
    residuals = np.tile(-initial, (len(initial), 1))
    residuals[np.diag_indices(len(initial))] += 1.0
    return residuals


def weights_of(base: Any, X: Inputs) -> WeightMatrix:
    """Return what a base learner predicts, in the form that takes the least room."""
    return getattr(base, "_weights", base.predict_weights)(X)


def leaves_of(tree: Trees, places: Places) -> Leaves:
    """Return the leaves of a tree in the order of their members, given those that rows reach."""
    leaf = np.flatnonzero(tree.left < 0)
    begin = np.sort(tree.begin[leaf])
    offsets = np.append(begin, len(tree.members)).astype(np.int64)
    weights = tree.row_weight[tree.members]
    weights = weights / np.repeat(np.add.reduceat(weights, begin), np.diff(offsets))
    return Leaves(offsets, tree.members, weights, places.astype(np.int32))


def number_leaves(trees: Trees) -> tuple[npt.NDArray[np.int64], Ints]:
    """Return where each tree's leaves begin, and for each node its place among its tree's leaves.

    Leaves are in the order of their members; the place of a node that is no leaf is -1.
    """
    tree = np.repeat(np.arange(len(trees)), np.diff(trees.node_offsets))
    leaf = np.flatnonzero(trees.left < 0)
    leaf = leaf[np.lexsort((trees.begin[leaf], tree[leaf]))]
    offsets = np.append(0, np.cumsum(np.bincount(tree[leaf], minlength=len(trees))))
    places = np.full(len(trees.left), -1, dtype=np.int32)
    places[leaf] = np.arange(len(leaf)) - offsets[tree[leaf]]
    return offsets, places
