"""The contract of a decoder."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from okforest._integers import is_integer
from okforest._typing import Floats, Outputs
from okforest.decode._search import bounds_pay_off, search_all, search_with_bounds
from okforest.weights import OutputSet, Span, WeightMatrix, as_weights

ROWS = 4096  # predictions searched at a time, by blocks of candidates


class Decoder(ABC, BaseEstimator):
    """Turns predictions, given by weights over the training outputs, into outputs.

    To add a decoder, subclass it and write :meth:`decode`, and :meth:`check` if it is made for some
    outputs only; parameters are the arguments of ``__init__``, stored unchanged, and become
    searchable as ``decoder__name``. The span holds the kernel and the training outputs
    (``span.kernel``, ``span.outputs``), and computes what the weights imply: ``span.inner(W, y)``,
    ``span.squared_norms(W)`` and others.
    """

    def check(self, span: Span) -> None:
        """Raise a ValueError if this decoder cannot return outputs like the training outputs.

        Models call it when they are fitted.
        """

    @abstractmethod
    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return one output for each row of W."""


class SearchDecoder(Decoder):
    """Searches candidates c for the least distance ‖φ(c) − F‖² to the prediction F.

    To add one, write :meth:`candidates`, and :meth:`allowed` if the candidates differ between
    predictions.
    """

    @abstractmethod
    def candidates(self, span: Span) -> OutputSet:
        """Return the candidates: ``OutputSet(span.kernel, outputs)``, or ``span.training``."""

    def allowed(self, W: WeightMatrix) -> sp.csr_array | None:
        """Return which of the outputs given as candidates (columns) a prediction (row) may take.

        Nonzero entries of a sparse matrix are allowed; None allows all.
        """
        return None

    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return the nearest candidate to each prediction; the first of equals."""
        candidates = self.candidates(span)
        nearest = [self._nearest(rows, span, candidates, 1)[0][:, 0] for rows in _parts(W)]
        return candidates.outputs[np.concatenate(nearest)]

    def top(self, W: WeightMatrix, span: Span, k: int) -> tuple[Outputs, Floats]:
        """Return the k nearest different candidates to each prediction, and their distances.

        Outputs and squared distances in H have shape (n, k), nearest first; a distance is infinite
        where fewer are allowed.
        """
        candidates = self.candidates(span)
        if not is_integer(k) or not 1 <= k <= len(candidates):
            raise ValueError(
                f"k={k!r}; there are {len(candidates)} different candidates, so pass an integer "
                f"from 1 to {len(candidates)}."
            )
        picks, losses = [], []
        for rows in _parts(W):
            nearest, distances = self._nearest(rows, span, candidates, k)
            picks.append(nearest)
            losses.append(distances + span.squared_norms(rows)[:, None])
        return candidates.outputs[np.concatenate(picks)], np.maximum(np.concatenate(losses), 0.0)

    def _nearest(
        self, W: WeightMatrix, span: Span, candidates: OutputSet, k: int
    ) -> tuple[npt.NDArray[np.intp], Floats]:
        """Return the k nearest candidates to each prediction, nearest first, the first of equals.

        Distances are ‖φ(c) − F‖² − ‖F‖², infinite where a candidate is not allowed.
        """
        allowed = self._allowed_groups(W, candidates)
        if allowed is None:
            if bounds_pay_off(W, span, candidates):
                return search_with_bounds(W, span, k)
            return search_all(W, span, candidates, None, k)
        used = np.flatnonzero(np.diff(sp.csc_array(allowed).indptr))
        if not k <= len(used) <= len(candidates) / 2:
            return search_all(W, span, candidates, allowed, k)
        nearest, distances = search_all(W, span, candidates.take(used), allowed[:, used], k)
        return used[nearest], distances

    def _allowed_groups(self, W: WeightMatrix, candidates: OutputSet) -> sp.csr_array | None:
        """Return which different candidates are allowed: those that equal an allowed one."""
        allowed = self.allowed(W)
        if allowed is None:
            return None
        columns = candidates.group[allowed.indices]
        shape = (allowed.shape[0], len(candidates))
        return sp.csr_array((abs(allowed.data), columns, allowed.indptr), shape=shape)


def _parts(W: Any) -> list[WeightMatrix]:
    W = as_weights(W)
    return [W[i : i + ROWS] for i in range(0, W.shape[0], ROWS)]
