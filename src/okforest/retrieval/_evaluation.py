"""How well a ranking finds the images of the query's class."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from okforest._typing import Booleans
from okforest.retrieval._pictures import DEFAULT_LIMITS, Picture, content_hash
from okforest.retrieval._scoring import Lookup, Words, rank
from okforest.retrieval._sources import Source
from okforest.retrieval._store import Snapshot


@dataclass(frozen=True)
class RetrievalQuality:
    """Means over queries.

    Parameters
    ----------
    n_queries : int
        Number of queries with at least one image of their class in the index.
    n_left_out : int
        Number of queries without such an image.
    top_1 : float
        Share of queries whose first hit is of their class.
    mean_average_precision : float
        The mean of the precision at each image of the class, over the ranking of all images.
    precision, recall : dict of int to float
        Share of the first k hits that are of the query's class, and share of the images of the
        class that are among the first k hits.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_digits
    >>> from okforest.retrieval import SubwindowIndex
    >>> digits = load_digits()
    >>> images, labels = (digits.images[:60] * 15).astype("uint8"), digits.target[:60].astype(str)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index = SubwindowIndex.build(f"{folder}/index", images[:40], labels=labels[:40])
    ...     quality = index.evaluate(images[40:], labels[40:])
    >>> quality.n_queries, quality.top_1 > 0.5
    (20, True)
    """

    n_queries: int
    n_left_out: int
    top_1: float
    mean_average_precision: float
    precision: dict[int, float]
    recall: dict[int, float]


def evaluate_queries(
    snapshot: Snapshot,
    sources: Sequence[Source],
    ks: Sequence[int],
    n_subwindows: int | None,
    random_state: int,
    progress: Callable[[int], None],
) -> RetrievalQuality:
    """Rank all images for each query, and summarise how those of its class are ranked."""
    names, codes = snapshot.labels
    known = snapshot.positions_by_hash()
    rankings: list[Booleans] = []
    for source in sources:
        picture = source.read(DEFAULT_LIMITS)
        reached = snapshot.vocabulary.reach([picture], n_subwindows, query=True)
        itself = known.get(content_hash(picture), [])
        order = rank_others(snapshot, Words.count(reached.leaves), picture, itself, random_state)
        label = source.label_after(None)  # images without a label are of no class
        relevant = np.array([bool(name) and name == label for name in names], dtype=bool)[codes]
        rankings.append(relevant[order])
        progress(len(rankings))
    return quality_of(rankings, ks)


def rank_others(
    snapshot: Snapshot, words: Words, picture: Picture, itself: Sequence[int], random_state: int
) -> npt.NDArray[np.intp]:
    """Return the positions of all images, the best first, as if a query were not in the index.

    ``itself`` are the positions of images with the pixels of the query.
    """
    lookup = Lookup(snapshot, words.leaves)
    sizes, allowed = lookup.sizes, snapshot.live.copy()
    for position in itself:
        allowed[position] = False
        n_own = snapshot.row(position).n_subwindows
        own = Words.count(snapshot.vocabulary.reach([picture], n_own).leaves)
        sizes = sizes - own.times_of(words.leaves)
    scores = lookup.scores(words, sizes)
    return rank(scores, snapshot.keys, allowed, len(scores), random_state)


def quality_of(rankings: Sequence[Booleans], ks: Sequence[int]) -> RetrievalQuality:
    """Summarise rankings, each given as which of the ranked images are relevant."""
    used = [relevant for relevant in rankings if relevant.any()]
    if not used:
        raise ValueError(
            "no query has an image of its class in the index; pass labels that the index has."
        )
    at = {k: [relevant[:k].sum() for relevant in used] for k in ks}
    return RetrievalQuality(
        n_queries=len(used),
        n_left_out=len(rankings) - len(used),
        top_1=float(np.mean([relevant[0] for relevant in used])),
        mean_average_precision=float(np.mean([average_precision(r) for r in used])),
        precision={k: float(np.mean([n / k for n in at[k]])) for k in ks},
        recall={
            k: float(np.mean([n / r.sum() for n, r in zip(at[k], used, strict=True)])) for k in ks
        },
    )


def average_precision(relevant: Booleans) -> float:
    """Return the mean, over the relevant items of a ranking, of the precision at their ranks."""
    ranks = np.flatnonzero(relevant) + 1
    return float(np.mean(np.arange(1, len(ranks) + 1) / ranks))
