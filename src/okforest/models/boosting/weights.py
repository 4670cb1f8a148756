"""The weights of a sum of rounds over the training outputs, computed only where they are needed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from okforest._utils.arrays import Floats
from okforest.weights import DenseWeights, Span, WeightMatrix

if TYPE_CHECKING:
    from okforest.models.boosting.rounds import Rounds

KEPT_BYTES = 2**28  # of a dense matrix that is computed once, for all its rows
# Values with fewer columns than this fraction of the predictions are followed round by round.
NARROW = 1 / 16


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
    weights : BoostedWeights
        The weights.
    span : Span
        The kernel and the training outputs that the features belong to.
    sums : ndarray of shape (n, n_features)
        The weighted sums.
    """

    weights: BoostedWeights
    span: Span
    sums: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """Number of predictions and of training outputs."""
        return self.weights.shape

    def select_rows(self, rows: slice) -> FeatureWeights:
        """Return some of the rows."""
        return FeatureWeights(self.weights.take(rows), self.span, self.sums[rows])

    def multiply(self, values: Floats) -> Floats:
        """Return weighted sums of values of the training outputs."""
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
