"""How well a ranking finds the images of the query's class."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from okforest._utils.arrays import Booleans
from okforest.retrieval.pictures import Picture, Source, content_hash
from okforest.retrieval.postings import Words, rank
from okforest.retrieval.store import Snapshot


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
    n_unreadable : int
        Number of images of the index that were no queries because their pixels are not at hand:
        they were not indexed from files, or their files are missing or have changed.

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
    n_unreadable: int = 0


# The pixels and the class of a query; no pixels if they cannot be read.
LabelledQuery = tuple[Picture | None, str]


def read_queries(sources: Sequence[Source]) -> Iterator[LabelledQuery]:
    """Return queries that a user has passed; those that cannot be read are errors."""
    return ((source.read(), source.label_after(None)) for source in sources)


def labelled_images(snapshot: Snapshot) -> tuple[int, Iterator[LabelledQuery]]:
    """Return the number of labelled images of an index, and these images."""
    names, codes = snapshot.labels
    labelled = np.array([bool(name) for name in names], dtype=bool)[codes]
    positions = np.flatnonzero(labelled & snapshot.live)

    def read() -> Iterator[LabelledQuery]:
        for position in positions:
            row = snapshot.row(int(position))
            try:
                yield snapshot.original(row), row.label
            except (OSError, ValueError):
                yield None, row.label

    return len(positions), read()


def evaluate_queries(
    snapshot: Snapshot,
    queries: Iterable[LabelledQuery],
    ks: Sequence[int],
    n_subwindows: int | None,
    random_state: int,
    progress: Callable[[int], None],
) -> RetrievalQuality:
    """Rank all images for each query, and summarise the ranks of images of its class."""
    names, codes = snapshot.labels
    known = snapshot.positions_by_hash()
    rankings: list[Booleans] = []
    n_done = 0
    for n_done, (picture, label) in enumerate(queries, 1):
        if picture is not None:
            reached = snapshot.vocabulary.reach([picture], n_subwindows, query=True)
            words = Words.count(reached.leaves)
            itself = known.get(content_hash(picture), [])
            order = rank_others(snapshot, words, picture, itself, random_state)
            # Images without a label are of no class.
            relevant = np.array([bool(name) and name == label for name in names], dtype=bool)[codes]
            rankings.append(relevant[order])
        progress(n_done)
    n_unreadable = n_done - len(rankings)
    if n_unreadable and not rankings:
        raise ValueError(
            f"none of the {n_unreadable} labelled images of the index can be read from its file; "
            "pass images and their labels."
        )
    return replace(quality_of(rankings, ks), n_unreadable=n_unreadable)


def rank_others(
    snapshot: Snapshot, words: Words, picture: Picture, itself: Sequence[int], random_state: int
) -> npt.NDArray[np.intp]:
    """Return the positions of all images, the best first, as if a query were not in the index.

    ``itself`` are the positions of images with the pixels of the query.
    """
    lookup = snapshot.look_up(words.leaves)
    sizes, allowed = lookup.sizes, snapshot.live.copy()
    for position in itself:
        allowed[position] = False
        n_subwindows = snapshot.row(position).n_subwindows
        indexed = Words.count(snapshot.vocabulary.reach([picture], n_subwindows).leaves)
        sizes = sizes - indexed.times_of(words.leaves)
    scores = lookup.scores(words, sizes)
    return rank(scores, snapshot.keys, allowed, len(scores), random_state)


def quality_of(rankings: Sequence[Booleans], ks: Sequence[int]) -> RetrievalQuality:
    """Summarise rankings: for each query, which of the ranked images are relevant."""
    used = [relevant for relevant in rankings if relevant.any()]
    if not used:
        raise ValueError(
            "no query has an image of its class in the index; pass labels that the index has."
        )
    n_relevant = np.array([relevant.sum() for relevant in used])
    n_found = {k: np.array([relevant[:k].sum() for relevant in used]) for k in ks}
    return RetrievalQuality(
        n_queries=len(used),
        n_left_out=len(rankings) - len(used),
        top_1=float(np.mean([relevant[0] for relevant in used])),
        mean_average_precision=float(np.mean([average_precision(r) for r in used])),
        precision={k: float(np.mean(n_found[k] / k)) for k in ks},
        recall={k: float(np.mean(n_found[k] / n_relevant)) for k in ks},
    )


def average_precision(relevant: Booleans) -> float:
    """Return the mean, over the relevant items of a ranking, of the precision at their ranks."""
    ranks = np.flatnonzero(relevant) + 1
    return float(np.mean(np.arange(1, len(ranks) + 1) / ranks))
