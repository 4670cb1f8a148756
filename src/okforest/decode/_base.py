"""The contract of a decoder."""

from abc import ABC, abstractmethod
from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator

from okforest._typing import Booleans, Floats, Outputs, WeightMatrix
from okforest.embedding import Span
from okforest.embedding.alike import distinct

ROWS = 4096  # predictions searched at a time: bounds the memory of their distances


class Decoder(ABC, BaseEstimator):
    """Turns predictions, given by weights over the training outputs, into outputs.

    To add a decoder, subclass it and write :meth:`decode`. The span knows the kernel and the
    training outputs (``span.kernel``, ``span.outputs``) and answers questions on weights:
    ``span.inner(W, y)``, ``span.squared_norms(W)`` and others.
    """

    @abstractmethod
    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return one output for each row of W."""


class SearchDecoder(Decoder):
    """Searches a list of candidates c for the least ‖φ(c) − F‖², F being the prediction.

    To add one, write :meth:`candidates`, and :meth:`allowed` if predictions differ in the
    candidates they may take.
    """

    @abstractmethod
    def candidates(self, span: Span) -> Outputs:
        """Return the candidates, in the kernel's canonical form."""

    def allowed(self, W: WeightMatrix) -> Booleans | None:
        """Return which candidates (columns) each prediction (row) may take; None for all."""
        return None

    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return the nearest candidate to each prediction; the first, of several."""
        candidates = self.candidates(span)
        diag = span.kernel.diag(candidates)
        nearest = [
            self._distances(W[i : i + ROWS], span, candidates, diag).argmin(axis=1)
            for i in range(0, W.shape[0], ROWS)
        ]
        return candidates[np.concatenate(nearest)]

    def top(self, W: WeightMatrix, span: Span, k: int) -> tuple[Outputs, Floats]:
        """Return the k nearest different candidates to each prediction, and their distances.

        Outputs and squared distances in H have shape (n, k), nearest first; a distance is infinite
        where fewer are allowed.
        """
        candidates = self.candidates(span)
        first, group = distinct(candidates)
        if not isinstance(k, Integral) or not 1 <= k <= len(first):
            raise ValueError(
                f"k={k!r}; with {len(first)} different candidates use a whole number up to that."
            )
        diag = span.kernel.diag(candidates)
        by_group = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[by_group], np.arange(len(first)))
        picks, losses = [], []
        for i in range(0, W.shape[0], ROWS):
            distances = self._distances(W[i : i + ROWS], span, candidates, diag)
            distances = np.minimum.reduceat(distances[:, by_group], starts, axis=1)
            order = np.argsort(distances, axis=1, kind="stable")[:, :k]
            picks.append(first[order])
            norms = span.squared_norms(W[i : i + ROWS])
            losses.append(np.take_along_axis(distances, order, axis=1) + norms[:, None])
        return candidates[np.concatenate(picks)], np.maximum(np.concatenate(losses), 0.0)

    def _distances(self, W: WeightMatrix, span: Span, candidates: Outputs, diag: Floats) -> Floats:
        """Return ‖φ(c) − F‖² less ‖F‖², infinite where a candidate is not allowed."""
        distances = span.inner(W, candidates)
        distances *= -2.0
        distances += diag
        allowed = self.allowed(W)
        if allowed is not None:
            distances[~allowed] = np.inf
        return distances
