"""The kinds of pairs of vertices, and the best of very many pairs."""

from collections.abc import Iterator
from typing import Literal

import numpy as np
import numpy.typing as npt

from okforest._typing import Floats

Positions = npt.NDArray[np.intp]
Kind = Literal["seen-seen", "seen-unseen", "unseen-unseen", "with-unseen"]

SEEN_SEEN: Kind = "seen-seen"
SEEN_UNSEEN: Kind = "seen-unseen"
UNSEEN_UNSEEN: Kind = "unseen-unseen"
WITH_UNSEEN: Kind = "with-unseen"  # the two kinds above together
KINDS = (SEEN_UNSEEN, UNSEEN_UNSEEN, WITH_UNSEEN, SEEN_SEEN)

TITLES: dict[Kind, str] = {
    SEEN_UNSEEN: "seen–unseen pairs",
    UNSEEN_UNSEEN: "unseen–unseen pairs",
    WITH_UNSEEN: "all pairs with an unseen vertex",
    SEEN_SEEN: "seen–seen pairs",
}

BLOCK_PAIRS = 2**23  # scores that are held at a time


class Best:
    """The pairs with the largest scores of all that it is shown; of equals the first.

    Parameters
    ----------
    top : int
        How many to keep.
    """

    def __init__(self, top: int):
        self.top = top
        self.rows = self.columns = np.empty(0, dtype=np.intp)
        self.scores = np.empty(0)

    def add(self, rows: Positions, columns: Positions, scores: Floats) -> None:
        """Keep the best of the pairs there are and of these."""
        if len(scores) > 4 * self.top:
            # Ties with the last are all let through: the sort below takes the first of them.
            enough = scores >= -np.partition(-scores, self.top - 1)[self.top - 1]
            rows, columns, scores = rows[enough], columns[enough], scores[enough]
        scores = np.concatenate([self.scores, scores])
        best = np.argsort(-scores, kind="stable")[: self.top]
        self.rows = np.concatenate([self.rows, rows])[best]
        self.columns = np.concatenate([self.columns, columns])[best]
        self.scores = scores[best]


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Divide the rows of a matrix of pairs into blocks of bounded size."""
    size = max(1, BLOCK_PAIRS // max(1, n_columns))
    return (slice(i, min(i + size, n_rows)) for i in range(0, n_rows, size))
