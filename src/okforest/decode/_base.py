"""The contract of a decoder."""

from abc import ABC, abstractmethod
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from okforest._typing import Floats, Outputs, WeightMatrix
from okforest.embedding import Span
from okforest.embedding.alike import distinct

ROWS = 4096  # predictions searched at a time, by blocks of candidates


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

    def allowed(self, W: WeightMatrix) -> sp.csr_array | None:
        """Return which candidates (columns) each prediction (row) may take; None for all.

        Nonzero entries of a sparse matrix are allowed.
        """
        return None

    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return the nearest candidate to each prediction; the first, of several."""
        candidates = self.candidates(span)
        nearest = [
            self._nearest(rows, span, candidates, self.allowed(rows), 1)[0][:, 0]
            for rows in _parts(W)
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
        # A candidate is allowed if one that equals it is.
        equals = sp.csr_array((np.ones(len(group)), (np.arange(len(group)), group)))
        picks, losses = [], []
        for rows in _parts(W):
            allowed = self.allowed(rows)
            allowed = None if allowed is None else abs(allowed) @ equals
            nearest, distances = self._nearest(rows, span, candidates[first], allowed, k)
            picks.append(first[nearest])
            losses.append(distances + span.squared_norms(rows)[:, None])
        return candidates[np.concatenate(picks)], np.maximum(np.concatenate(losses), 0.0)

    def _nearest(
        self, W: WeightMatrix, span: Span, candidates: Outputs, allowed: Any, k: int
    ) -> tuple[npt.NDArray[np.intp], Floats]:
        """Return the k nearest candidates to each prediction, nearest first (the first, of equals).

        Distances are ‖φ(c) − F‖² less ‖F‖², infinite where a candidate is not allowed. Those of one
        block of candidates at a time are held, beside the k nearest so far.
        """
        diag = span.kernel.diag(candidates)
        nearest = np.zeros((W.shape[0], 0), dtype=np.intp)
        least = np.zeros((W.shape[0], 0))
        allowed = None if allowed is None else sp.csc_array(allowed)
        for block, inner in span.inner_blocks(W, candidates):
            distances = diag[block] - 2.0 * inner
            if allowed is not None:
                distances[allowed[:, block].toarray() == 0] = np.inf
            places = _smallest(distances, k)
            least = np.hstack([least, np.take_along_axis(distances, places, axis=1)])
            nearest = np.hstack([nearest, places + block.start])
            order = _smallest(least, k)
            least = np.take_along_axis(least, order, axis=1)
            nearest = np.take_along_axis(nearest, order, axis=1)
        return nearest, least


def _parts(W: WeightMatrix) -> list[WeightMatrix]:
    return [W[i : i + ROWS] for i in range(0, W.shape[0], ROWS)]


def _smallest(values: Floats, k: int) -> npt.NDArray[np.intp]:
    """Return where each row has its k smallest values, in order; the first, of equals."""
    if k == 1:
        return values.argmin(axis=1)[:, None]
    return np.argsort(values, axis=1, kind="stable")[:, :k]
