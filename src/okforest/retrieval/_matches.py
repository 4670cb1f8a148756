"""Which subwindows of a query and of a hit share leaves."""

from dataclasses import dataclass

import numpy as np

from okforest._utils.arrays import Floats, Ints
from okforest.retrieval._postings import UInt32s, UInt64s
from okforest.retrieval.vocabulary import Reached


@dataclass(frozen=True)
class Explanation:
    """The pairs of subwindows that a score is made of.

    Parameters
    ----------
    score : float
        The score of the hit: the sum over all pairs.
    query_boxes, hit_boxes : ndarray of shape (n, 3), int32
        Upper left row and column, and side, of the subwindows of each pair.
    weights : ndarray of shape (n,)
        What each pair adds to the score, the largest first.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_digits
    >>> from okforest.retrieval import SubwindowIndex
    >>> images = (load_digits().images[:4] * 15).astype("uint8")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index = SubwindowIndex.build(f"{folder}/index", images, names=list("abcd"))
    ...     hit = index.search(images[3], top=1)[0]
    ...     explanation = index.explain(images[3], hit, hit_picture=images[3])
    >>> explanation.query_boxes.shape == explanation.hit_boxes.shape
    True
    """

    score: float
    query_boxes: Ints
    hit_boxes: Ints
    weights: Floats


def explain_pair(
    query: Reached, hit: Reached, leaves: UInt32s, sizes: UInt64s, n_used: int, top: int
) -> Explanation:
    """Return the pairs of subwindows with the largest weights.

    ``sizes`` are those of ``leaves``, which are all leaves of the query, ascending.
    """
    pairs, weights = [], []
    for t in range(query.leaves.shape[1]):
        mine, its = query.leaves[:, t], hit.leaves[:, t]
        order = np.argsort(its, kind="stable")
        begin = np.searchsorted(its, mine, side="left", sorter=order)
        n_shared = np.searchsorted(its, mine, side="right", sorter=order) - begin
        q = np.repeat(np.arange(len(mine)), n_shared)
        first = np.cumsum(n_shared) - n_shared
        h = order[np.repeat(begin - first, n_shared) + np.arange(len(q))]
        size = sizes[np.searchsorted(leaves, mine[q])].astype(np.float64)
        pairs.append(q * len(its) + h)
        weights.append(1.0 / (size * n_used))
    pair, position = np.unique(np.concatenate(pairs), return_inverse=True)
    weight: Floats = np.zeros(len(pair))
    np.add.at(weight, position, np.concatenate(weights))
    best = np.argsort(-weight, kind="stable")[:top]
    q, h = np.divmod(pair[best], len(hit.squares))
    return Explanation(float(weight.sum()), query.squares[q], hit.squares[h], weight[best])
