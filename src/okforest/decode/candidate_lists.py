"""Candidates that differ between predictions."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.parameters import COUNT, check_arguments
from okforest.decode.base import Decoder
from okforest.decode.search import count_candidates, read_candidates
from okforest.weights import Span, WeightMatrix, as_weights


class CandidateLists:
    """A list of candidates for each prediction, to pass to ``predict`` as ``candidates=``.

    A prediction costs as much as its own candidates, whatever the other lists hold.

    Parameters
    ----------
    lists : sequence of array-like
        The candidates of each row of X, of the type that the kernel takes.

    See Also
    --------
    Candidates : The same candidates for all predictions.

    Examples
    --------
    >>> from okforest import OKTree
    >>> from okforest.decode import CandidateLists
    >>> tree = OKTree().fit([[0.0], [1.0]], [0.0, 10.0])
    >>> tree.predict([[0.0], [1.0]], candidates=CandidateLists([[1.0, 9.0], [2.0, 3.0, 4.0]]))
    array([1., 4.])
    """

    def __init__(self, lists: Sequence[Any]):
        self.lists = lists

    def __len__(self) -> int:
        return len(self.lists)


class PerQuery(Decoder):
    """Applies a decoder with the candidates of each row.

    Parameters
    ----------
    decoder : Decoder
        The decoder; its ``with_candidates`` is called for every row.
    lists : CandidateLists
        The candidates of the rows.
    """

    def __init__(self, decoder: Decoder, lists: CandidateLists):
        self.decoder = decoder
        self.lists = lists

    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return the best of its own candidates for each row."""
        rows = self._rows(W)
        return np.concatenate([self._decoder(i).decode(row, span) for i, row in enumerate(rows)])

    def top(self, W: WeightMatrix, span: Span, k: int) -> tuple[Outputs, Floats]:
        """Return the k best of its own candidates for each row, and their losses.

        Where a list has fewer than k different candidates, the best is repeated with an infinite
        loss.
        """
        check_arguments("top", {"k": [COUNT]}, k=k)
        outputs, losses = [], []
        for i, row in enumerate(self._rows(W)):
            decoder: Any = self._decoder(i)
            n_different = len(read_candidates(self.lists.lists[i], span))
            best, costs = decoder.top(row, span, min(k, n_different))
            fill = k - costs.shape[1]
            outputs.append(np.concatenate([best, np.repeat(best[:, :1], fill, axis=1)], axis=1))
            losses.append(np.pad(costs, ((0, 0), (0, fill)), constant_values=np.inf))
        return np.concatenate(outputs), np.concatenate(losses)

    def _rows(self, W: Any) -> list[WeightMatrix]:
        W = as_weights(W)
        if len(self.lists) != W.shape[0]:
            raise ValueError(
                f"there are {len(self.lists)} lists of candidates for {W.shape[0]} rows; pass one "
                "list for each row of X."
            )
        return [W[i] for i in range(W.shape[0])]

    def _decoder(self, i: int) -> Decoder:
        own = self.lists.lists[i]
        if own is None or (hasattr(own, "__len__") and count_candidates(own) == 0):
            raise ValueError(
                f"the list of candidates of row {i} is empty; pass at least one output."
            )
        return self.decoder.with_candidates(own)
