"""Ranked links: the pairs with the highest scores, overall or for each vertex."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from okforest._integers import is_integer
from okforest._typing import Booleans, Floats, Outputs
from okforest.network._pairs import PairKind, Positions

# A structured array with the fields source, target, score and kind.
RankedLinks = npt.NDArray[np.void]

BLOCK_PAIRS = 2**23  # number of scores held in memory at a time


class TopPairs:
    """The pairs with the highest scores among those added, best first; ties keep their order.

    Parameters
    ----------
    top : int
        Number of pairs to keep.
    per_row : bool, default=False
        Whether to keep that many pairs for each row; pairs are then ordered by row first.
    """

    def __init__(self, top: int, per_row: bool = False):
        self.top = top
        self.per_row = per_row
        self.rows = self.columns = np.empty(0, dtype=np.intp)
        self.scores = np.empty(0)

    def add(self, start: int, scores: Floats, candidates: Booleans) -> None:
        """Add the candidates among the pairs of a block of rows that begins at row ``start``."""
        scores = np.where(candidates, scores, -np.inf)
        # All pairs tied with the last one pass; best_first then keeps the first of them.
        rows, columns = np.nonzero(candidates & (scores >= self._thresholds(scores)))
        all_scores = np.concatenate([self.scores, scores[rows, columns]])
        all_rows = np.concatenate([self.rows, rows + start])
        all_columns = np.concatenate([self.columns, columns])
        best = best_first(all_scores, self.top, all_rows if self.per_row else None)
        self.rows, self.columns, self.scores = all_rows[best], all_columns[best], all_scores[best]

    def _thresholds(self, scores: Floats) -> Floats:
        """Return a score that the best pairs reach: one for each row, or one for all rows."""
        groups = scores if self.per_row else scores.reshape(1, -1)
        if groups.shape[1] <= self.top:
            return np.full((1, 1), -np.inf)
        last = self.top - 1
        return -np.partition(-groups, last, axis=1)[:, last : last + 1]


def best_first(scores: Floats, top: int, groups: Positions | None = None) -> Positions:
    """Return the positions of the highest scores, best first; ties keep their order.

    With ``groups``, these are the highest scores of each group, group by group.
    """
    if groups is None:
        return np.argsort(-scores, kind="stable")[:top]
    order = np.lexsort((-scores, groups))
    grouped = groups[order]
    rank = np.arange(len(order)) - np.searchsorted(grouped, grouped)
    return order[rank < top]


def ranked_links(
    pairs: TopPairs, sources: Outputs, targets: Outputs, kind: PairKind
) -> RankedLinks:
    """Return pairs with the names of their vertices, their scores and their kind."""
    # NumPy would convert a mixture of numbers and text to text.
    same = sources.dtype.kind == targets.dtype.kind
    name = np.result_type(sources, targets) if same else np.dtype(object)
    fields = [("source", name), ("target", name), ("score", np.float64), ("kind", "U13")]
    links = np.empty(len(pairs.scores), dtype=fields)
    links["source"], links["target"] = sources[pairs.rows], targets[pairs.columns]
    links["score"], links["kind"] = pairs.scores, kind
    return links


def check_top(top: Any) -> int:
    """Return the number of pairs to rank, checked."""
    if not is_integer(top) or top < 1:
        raise ValueError(f"top={top!r}; use a positive integer.")
    return int(top)


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Divide the rows of a matrix of pairs into blocks of bounded size."""
    size = max(1, BLOCK_PAIRS // max(1, n_columns))
    return (slice(i, min(i + size, n_rows)) for i in range(0, n_rows, size))
