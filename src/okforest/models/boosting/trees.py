"""Boosting of output kernel trees: growing the tree of a round, and the rounds of a fitted model.

The leaves of a tree are numbered in the order of their members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._utils.arrays import Floats, Inputs, Ints, Layouts
from okforest.embedding import Embedding
from okforest.engine import (
    DeviceName,
    GrowthPlan,
    GrowthRules,
    LeafPartition,
    LeafVectors,
    Trees,
    apply,
    grow,
    start_rounds,
)
from okforest.engine.cpu import (
    leaf_coefficients,
    pull_back,
    subtract_means,
    subtract_means_from_gram,
)
from okforest.models.boosting.rounds import (
    BoostedWeights,
    BoostPlan,
    FeatureWeights,
    GramResiduals,
    Round,
    RoundLearner,
    Rounds,
    VectorResiduals,
)
from okforest.models.tree_methods import sample_count
from okforest.weights import Span, WeightMatrix

LeafNumbers = npt.NDArray[np.integer]

# What leaves add to the weights of predictions is kept if it takes at most this many bytes.
COEFFICIENTS_BYTES = 2**28
# Residuals of at least this many numbers are updated by several threads.
MANY = 2**18


@dataclass(frozen=True)
class LeafRound(Round):
    """A tree.

    Parameters
    ----------
    scale : float
        The factor of the means of its leaves.
    leaves : LeafPartition
        Its leaves.
    n_threads : int
        Number of threads that subtract.
    """

    scale: float
    leaves: LeafPartition
    n_threads: int = 1

    def subtract(self, values: Floats) -> Floats:
        """Return the means of the leaves, times the scale."""
        return subtract_means(self.leaves, values, self.scale, self.n_threads)

    def subtract_from_gram(self, gram: Floats) -> Floats:
        """Subtract the means from values given by their inner products, in place.

        Return the sums of the rows of the new matrix.
        """
        return subtract_means_from_gram(self.leaves, gram, self.scale, self.n_threads)


class TreeRounds(Rounds):
    """Fitted trees, with the leaves that the training rows reach.

    Parameters
    ----------
    trees : Trees
        The trees; ``row_weight`` gives the weights of rows in the means of leaves.
    training_leaves : ndarray of shape (n_trees, n_train)
        The number of the leaf of each training row in each tree.
    scales : ndarray of shape (n_trees,)
        The factor of each tree.
    initial : ndarray of shape (n_train,)
        The weights of the mean, from which boosting starts.
    leaf_means : ndarray of shape (n_leaves, n_features), optional
        What each leaf adds to predictions, in explicit features.
    leaf_coefficients : ndarray of shape (n_leaves, n_train), optional
        What each leaf adds to the weights of predictions.
    """

    def __init__(
        self,
        trees: Trees,
        training_leaves: LeafNumbers,
        scales: Floats,
        initial: Floats,
        leaf_means: Floats | None = None,
        leaf_coefficients: Floats | None = None,
    ):
        super().__init__(scales, initial)
        self.trees, self.training_leaves = trees, training_leaves
        self.leaf_means, self.leaf_coefficients = leaf_means, leaf_coefficients
        self._offsets, self._leaf_numbers = number_leaves(trees)

    def __getitem__(self, m: int) -> LeafRound:
        return LeafRound(self.scales[m], leaf_partition(self.trees[m], self.training_leaves[m]))

    def coordinates(self, X: Inputs, n_threads: int = 1) -> list[LeafNumbers]:
        """Return the number of the leaf that each row reaches in each tree."""
        leaves = apply(self.trees, X, n_threads)
        return [*self._leaf_numbers[leaves + self.trees.node_offsets[:-1]].T]

    def predict(self, vectors: Floats, coordinates: LeafNumbers) -> Floats:
        """Return the vector of each row's leaf."""
        return vectors[coordinates]

    def weights(self, coordinates: list[LeafNumbers], span: Span) -> WeightMatrix:
        """Return the weights of predictions, with sums of features if leaf means are kept."""
        weights = BoostedWeights(self, coordinates)
        if self.leaf_means is None or span.features is None:
            return weights
        sums = self._leaf_sums(self.leaf_means, coordinates) + self.initial @ span.features
        return FeatureWeights(lambda: weights, span, sums)

    def staged_weights(self, coordinates: list[LeafNumbers], span: Span) -> Iterator[WeightMatrix]:
        """Yield the weights after each round, with sums of features if leaf means are kept."""
        if self.leaf_means is None or span.features is None:
            return super().staged_weights(coordinates, span)
        return self.staged_feature_weights(coordinates, span)

    def dense_weights(self, coordinates: list[LeafNumbers]) -> Floats:
        """Return the weights of predictions as an array, by the leaf coefficients if kept."""
        if self.leaf_coefficients is None:
            leaves = np.array(coordinates, dtype=np.int32)
            kept = (self.trees, self.training_leaves, self.scales, self.initial)
            return pull_back(*kept, leaves)
        return self.initial + self._leaf_sums(self.leaf_coefficients, coordinates)

    def weight_vectors(self) -> Iterator[Floats]:
        """Yield the coefficients of the leaves of each tree, computed unless they are kept."""
        if self.leaf_coefficients is None:
            return super().weight_vectors()
        return self._by_tree(self.leaf_coefficients)

    def feature_vectors(self, features: Floats) -> Iterator[Floats]:
        """Yield the means of the leaves of each tree, computed unless they are kept."""
        if self.leaf_means is None:
            return super().feature_vectors(features)
        return self._by_tree(self.leaf_means)

    def _by_tree(self, vectors: Floats) -> Iterator[Floats]:
        offsets = self._offsets
        return (vectors[offsets[m] : offsets[m + 1]] for m in range(len(self)))

    def _leaf_sums(self, vectors: Floats, coordinates: list[LeafNumbers]) -> Floats:
        """Return for each prediction the sum of the vectors of its leaves."""
        columns = (np.column_stack(coordinates) + self._offsets[: len(coordinates)]).ravel()
        n = len(coordinates[0])
        ends = np.arange(n + 1) * len(coordinates)
        indicator = sp.csr_array((np.ones(len(columns)), columns, ends), shape=(n, len(vectors)))
        return np.asarray(indicator @ vectors)


class TreeLearner(RoundLearner):
    """Grows the tree of each round.

    Parameters
    ----------
    plan : BoostPlan
        The data.
    rules : callable
        Returns the rules of growth for a number of samples.
    learning_rate : float
        The factor of each tree.
    max_splits : int
        Maximum number of splits of a tree.
    n_threads : int
        Number of threads.
    max_bins : int, optional
        Maximum number of bins of a feature; None for exact splits.
    device : {"cpu", "cuda", "auto"}
        Where trees are grown. On a GPU, the residuals stay there from the first new round on.
    """

    def __init__(
        self,
        plan: BoostPlan,
        *,
        rules: Callable[[float], GrowthRules],
        learning_rate: float,
        max_splits: int,
        n_threads: int,
        max_bins: int | None = None,
        device: DeviceName = "cpu",
    ):
        embedding = plan.embedding
        self.keeps_means = embedding.kind == "features" and embedding.rank <= len(plan.row_weight)
        self.keeps_coefficients = _keeps_coefficients(embedding, plan.n_rounds, max_splits)
        residuals: VectorResiduals | GramResiduals
        if embedding.kind == "gram":
            residuals = GramResiduals(embedding, plan.initial)
        else:
            residuals = VectorResiduals(embedding, plan.initial)
        super().__init__(plan.initial, residuals)
        self.plan, self.rules, self.learning_rate = plan, cache(rules), learning_rate
        self.n_categories = plan.inputs.n_categories
        self.n_threads = n_threads if residuals.values.size >= MANY else 1
        self.number_type = np.min_scalar_type(min(max_splits, len(plan.row_weight)))
        self.layouts = Layouts(plan.inputs.X)
        self.trees: list[Trees] = []
        self.n_replayed = 0  # of the previous fit
        self.training_leaves: list[LeafNumbers] = []
        self.leaf_vectors: list[Floats] = []
        self.steps: list[LeafRound] = []  # whose coefficients are computed at the end
        # Rounds on a GPU or on bins, once they have started.
        self.started: Any = None
        self.start = partial(
            start_rounds,
            device,
            learning_rate=learning_rate,
            max_bins=max_bins,
            n_threads=n_threads,
        )

    def squares(self) -> Floats:
        """Return the squared norms of the residuals."""
        return super().squares() if self.started is None else self.started.squares()

    def add(self, m: int, weight: Floats) -> None:
        """Grow tree m on rows of these weights, and subtract the means of its leaves."""
        growth = self._growth(weight)
        if len(self.trees) == self.n_replayed:
            self.started = self.start(replace(growth, row_weight=self.plan.row_weight))
        if self.started is None:
            tree = self._own_weights(grow(growth, range(m, m + 1)))
            leaves = leaf_partition(tree, self._reached(tree))
            self._subtract(LeafRound(self.learning_rate, leaves, self.n_threads))
            numbers: LeafNumbers = leaves.places
        else:
            grown = self.started.grow(m, growth.rules, weight)
            tree, numbers = self._own_weights(grown.tree), grown.places
            self._keep(self.learning_rate, grown.means)
        self.trees.append(tree)
        self.training_leaves.append(numbers.astype(self.number_type))

    def _reached(self, tree: Trees) -> LeafNumbers | None:
        """Return the number of the leaf that each training row reaches; None if all are members."""
        if len(tree.members) == len(self.initial):
            return None
        return number_leaves(tree)[1][apply(tree, self.layouts.rows)[:, 0]]

    def _own_weights(self, tree: Trees) -> Trees:
        return replace(tree, row_weight=self.plan.row_weight)  # the same array for all trees

    def _growth(self, weight: Floats) -> GrowthPlan:
        return GrowthPlan(
            X=self.layouts.columns,
            outputs=self.residuals.values,
            gram=self.residuals.is_gram,
            rules=self._rules_of(weight),
            row_weight=weight,
            n_categories=self.n_categories,
            seed=self.plan.seed,
            row_sums=self.residuals.row_sums,
            row_errors=self.residuals.row_errors,
        )

    def _rules_of(self, weight: Floats) -> GrowthRules:
        if weight is not self.plan.row_weight:
            return self.rules(sample_count(weight))
        return self._all_rules

    @cached_property
    def _all_rules(self) -> GrowthRules:
        return self.rules(sample_count(self.plan.row_weight))

    def replay(self, rounds: TreeRounds) -> None:
        """Subtract the trees of a previous fit, and keep them."""
        self.trees = [rounds.trees[m] for m in range(len(rounds))]
        self.training_leaves, self.n_replayed = [*rounds.training_leaves], len(rounds)
        for m in range(len(rounds)):
            self._subtract(replace(rounds[m], n_threads=self.n_threads))

    def _subtract(self, step: LeafRound) -> None:
        self._keep(step.scale, self.residuals.subtract(step))
        if self.keeps_coefficients:
            self.steps.append(step)

    def _keep(self, scale: float, vectors: Floats | None) -> None:
        self.scales.append(scale)
        if vectors is not None and self.keeps_means:
            self.leaf_vectors.append(vectors)

    def rounds(self) -> TreeRounds:
        """Return all trees so far."""
        steps = [(step.leaves, step.scale) for step in self.steps]
        return TreeRounds(
            Trees.join(self.trees),
            np.array(self.training_leaves),
            np.array(self.scales),
            self.initial,
            leaf_means=np.concatenate(self.leaf_vectors) if self.leaf_vectors else None,
            leaf_coefficients=(
                leaf_coefficients(steps, self.initial, self.n_threads) if steps else None
            ),
        )


@dataclass(frozen=True)
class LeafSums:
    """Sums of the vectors of leaves, added up while rows walk.

    Parameters
    ----------
    vectors : LeafVectors
        The vectors of the leaves of all trees.
    start : ndarray of shape (q,)
        The sum before the first tree.
    """

    vectors: LeafVectors
    start: Floats

    @classmethod
    def of(cls, trees: Trees, leaf_means: Floats, start: Floats) -> LeafSums:
        """Return the sums for vectors in the order of trees, leaves and members."""
        offsets, numbers = number_leaves(trees)
        first = np.repeat(offsets[:-1], np.diff(trees.node_offsets))
        places = np.where(numbers >= 0, first + numbers, 0).astype(np.int32)
        return cls(LeafVectors(trees, places, leaf_means, leaf_means[:0]), start)

    def __call__(self, X: Inputs, n_threads: int) -> Floats:
        """Return the sum of each row."""
        return self.vectors.sums(X, self.start, 1.0, n_threads)


def _keeps_coefficients(embedding: Embedding, n_rounds: int, max_splits: int) -> bool:
    n = len(embedding.values)
    n_leaves = n_rounds * min(max_splits + 1, n)
    return embedding.kind == "gram" and 8 * n * n_leaves <= COEFFICIENTS_BYTES


def leaf_partition(tree: Trees, training_leaves: LeafNumbers | None = None) -> LeafPartition:
    """Return the leaves of a single tree, given the leaf number of each training row.

    The numbers are not needed if all training rows are members.
    """
    begin = np.sort(tree.begin[tree.left < 0])
    offsets = np.append(begin, len(tree.members)).astype(np.int64)
    of_member = np.repeat(np.arange(len(begin), dtype=np.int32), np.diff(offsets))
    weights = tree.row_weight[tree.members]
    weights /= np.add.reduceat(weights, begin)[of_member]
    if training_leaves is None:
        places = np.empty_like(of_member)
        places[tree.members] = of_member
    else:
        places = training_leaves.astype(np.int32, copy=False)
    return LeafPartition(offsets, tree.members, weights, places)


def number_leaves(trees: Trees) -> tuple[npt.NDArray[np.int64], Ints]:
    """Return the first leaf of each tree among all leaves, and the leaf number of every node.

    The number of a node that is not a leaf is -1.
    """
    leaf, tree = trees.leaves_by_tree()
    offsets = np.append(0, np.cumsum(np.bincount(tree, minlength=len(trees))))
    numbers = np.full(len(trees.left), -1, dtype=np.int32)
    numbers[leaf] = np.arange(len(leaf)) - offsets[tree]
    return offsets, numbers


def leaves_of_members(trees: Trees) -> LeafNumbers:
    """Return the number of the leaf of each row in each tree, which was grown on all rows."""
    leaf, tree = trees.leaves_by_tree()
    n_leaves = np.bincount(tree)
    kind = np.min_scalar_type(int(n_leaves.max()) - 1)
    numbers = np.concatenate([np.arange(n, dtype=kind) for n in n_leaves])
    n_rows = len(trees.row_weight)
    places = np.zeros((len(trees), n_rows), dtype=kind)
    of_members = np.repeat(numbers, trees.end[leaf] - trees.begin[leaf])
    places[trees.member_trees, trees.members] = of_members
    return places
