"""Conformity scores: how strange an output is for a prediction; high is strange."""

from abc import ABC, abstractmethod
from typing import Literal

import numpy as np
import numpy.typing as npt

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.distinct import distinct
from okforest.uncertainty.predictions import Predictions
from okforest.uncertainty.probabilities import merged, spread_of
from okforest.weights import OutputSet

ScoreName = Literal["margin", "distance", "normalized", "votes"]
Positions = npt.NDArray[np.intp]

ENTRIES = 2**22  # of a matrix of scores that is made at a time
TIE = 1e-10  # relative difference of scores that are equal up to rounding
FLOOR = 0.01  # share of the mean variance that is added to every variance


class Score(ABC):
    """The score s(x, c) of an output c for a prediction at x."""

    @abstractmethod
    def of_candidates(self, predicted: Predictions, candidates: OutputSet) -> Floats:
        """Return the scores of all candidates (columns) for every prediction (row)."""

    @abstractmethod
    def of_truth(self, predicted: Predictions, y: Outputs, candidates: OutputSet) -> Floats:
        """Return the score of each prediction's own output."""


class Distance(Score):
    """The squared distance ‖φ(c) − F(x)‖² in feature space."""

    def of_candidates(self, predicted: Predictions, candidates: OutputSet) -> Floats:
        span, W = predicted
        scores = np.empty((W.shape[0], len(candidates)))
        for block, inner in span.inner_blocks(W, candidates):
            scores[:, block] = candidates.squares[block] - 2.0 * inner
        scores += span.squared_norms(W)[:, None]
        return np.maximum(scores, 0.0)

    def of_truth(self, predicted: Predictions, y: Outputs, candidates: OutputSet) -> Floats:
        return predicted.span.losses(predicted.W, y)


class Normalized(Distance):
    """The squared distance divided by the variance of the predicted distribution."""

    def of_candidates(self, predicted: Predictions, candidates: OutputSet) -> Floats:
        scores = super().of_candidates(predicted, candidates)
        return scores / self._scale(predicted)[:, None]

    def of_truth(self, predicted: Predictions, y: Outputs, candidates: OutputSet) -> Floats:
        return super().of_truth(predicted, y, candidates) / self._scale(predicted)

    def _scale(self, predicted: Predictions) -> Floats:
        n_train = len(predicted.span)
        total = predicted.span.spread(np.full(n_train, 1.0 / n_train))
        return spread_of(predicted) + FLOOR * total


class Margin(Distance):
    """The squared distance, less that of the nearest other candidate."""

    def of_candidates(self, predicted: Predictions, candidates: OutputSet) -> Floats:
        distances = super().of_candidates(predicted, candidates)
        return distances - _least_of_others(distances)

    def of_truth(self, predicted: Predictions, y: Outputs, candidates: OutputSet) -> Floats:
        own = super().of_truth(predicted, y, candidates)
        places = positions_of(y, candidates)
        others = np.empty(len(y))
        for rows in row_blocks(len(y), len(candidates)):
            some = Predictions(predicted.span, predicted.W[rows])
            distances = super().of_candidates(some, candidates)
            known = np.flatnonzero(places[rows] >= 0)
            distances[known, places[rows][known]] = np.inf
            others[rows] = distances.min(axis=1)
        return own - np.where(np.isfinite(others), others, 0.0)


class Votes(Score):
    """Minus the total weight of the training outputs that equal the output."""

    def of_candidates(self, predicted: Predictions, candidates: OutputSet) -> Floats:
        span, W = predicted
        # The last column is for training outputs that are not candidates.
        places = positions_of(span.training.outputs, candidates)[span.training.group]
        votes = merged(W.tocsr(), places % (len(candidates) + 1), len(candidates) + 1)
        return -votes.toarray()[:, :-1]

    def of_truth(self, predicted: Predictions, y: Outputs, candidates: OutputSet) -> Floats:
        span, W = predicted
        n_outputs = len(span.training)
        places = positions_of(y, span.training) % (n_outputs + 1)
        votes = merged(W.tocsr(), span.training.group, n_outputs + 1)
        return -np.asarray(votes[np.arange(len(y)), places]).ravel()


SCORES: dict[str, Score] = {
    "margin": Margin(),
    "distance": Distance(),
    "normalized": Normalized(),
    "votes": Votes(),
}


def as_score(score: str) -> Score:
    """Return the score of a name."""
    if not isinstance(score, str) or score not in SCORES:
        raise ValueError(f"conformity_score={score!r}; use one of {', '.join(map(repr, SCORES))}.")
    return SCORES[score]


def positions_of(y: Outputs, candidates: OutputSet) -> Positions:
    """Return which of the different candidates each output equals, or -1."""
    n = len(candidates)
    group = distinct(np.concatenate([candidates.outputs, y])).group
    return np.where(group[n:] < n, group[n:], -1)


def count_at_least(known: Floats, values: Floats) -> Floats:
    """Return how many of the known scores, ascending, are at least as large as each value.

    Rows that reach the same leaves have equal scores, up to rounding; these count.
    """
    finite = known[np.isfinite(known)]
    rounding = TIE * np.abs(finite[[0, -1]]).max() if len(finite) else 0.0
    below = np.searchsorted(known, values.ravel() - rounding)
    return (len(known) - below).reshape(values.shape).astype(np.float64)


def row_blocks(n: int, width: int) -> list[slice]:
    """Divide n predictions into blocks whose scores of ``width`` candidates take bounded memory."""
    size = max(1, ENTRIES // max(1, width))
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


def _least_of_others(distances: Floats) -> Floats:
    """Return for each candidate (column) the least distance of the other candidates."""
    n, width = distances.shape
    if width == 1:
        return np.zeros_like(distances)
    nearest = distances.argmin(axis=1)
    two = np.partition(distances, 1, axis=1)[:, :2]
    least = np.repeat(two[:, :1], width, axis=1)
    least[np.arange(n), nearest] = two[:, 1]
    return least
