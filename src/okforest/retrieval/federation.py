"""Several indexes that are searched as one."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from okforest.retrieval.index import SubwindowIndex
from okforest.retrieval.pictures import as_list, load_query
from okforest.retrieval.postings import Words, mix
from okforest.retrieval.reader import IndexChangedError
from okforest.retrieval.segment import Hit
from okforest.retrieval.vocabulary import Vocabulary

ATTEMPTS = 4  # a search starts again if an index changes meanwhile


class FederatedIndex:
    """Indexes on the same vocabulary, local or on servers, that are searched as one.

    A search takes two steps. First, every index counts the subwindows in the leaves of the query.
    The sums are the sizes of the leaves in all indexes together. Then every index ranks its images
    with these sizes. Scores and ranks equal exactly those in one index of all images.

    Parameters
    ----------
    shards : sequence of SubwindowIndex or RemoteIndex
        The indexes.

    See Also
    --------
    SubwindowIndex : An index in a folder.
    RemoteIndex : An index that a server has opened.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from okforest.retrieval import FederatedIndex, SubwindowIndex
    >>> images = (load_digits().images * 15).astype(np.uint8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = SubwindowIndex.build(f"{folder}/first", images[:3], thumbnail_side=0)
    ...     second = SubwindowIndex.build(
    ...         f"{folder}/second", images[3:6], vocabulary=first.vocabulary, thumbnail_side=0
    ...     )
    ...     hit = FederatedIndex([first, second]).search(images[4], k=1)[0]
    >>> hit.shard, hit.name
    (1, 'image-1')
    """

    def __init__(self, shards: Sequence[Any]):
        self.shards = as_list("shards", shards)
        if not self.shards:
            raise ValueError("there are no indexes; pass at least one.")
        for shard in self.shards:
            if not hasattr(shard, "leaf_sizes"):
                raise TypeError(
                    f"{shard!r} is not an index; pass SubwindowIndex(folder) or RemoteIndex(url)."
                )
        local = [shard for shard in self.shards if isinstance(shard, SubwindowIndex)]
        self.vocabulary: Vocabulary = (local or self.shards)[0].vocabulary
        for shard in self.shards:
            # A remote index has the key, so that its trees need not be downloaded.
            key = getattr(shard, "vocabulary_key", None) or shard.vocabulary.key
            if key != self.vocabulary.key:
                raise ValueError(
                    f"{shard!r} has another vocabulary than the other indexes; only indexes on the "
                    "same trees can be searched together. Build it again on their vocabulary."
                )

    def __repr__(self) -> str:
        return f"<FederatedIndex of {len(self.shards)} indexes>"

    def search(
        self,
        query: Any,
        k: int = 10,
        *,
        labels: Iterable[str] | None = None,
        n_subwindows: int | None = None,
        random_state: int = 0,
    ) -> list[Hit]:
        """Return the images with the largest scores in all indexes.

        Parameters
        ----------
        query : ndarray, path-like or bytes
            A picture, as an array of bytes, a file or its content.
        k : int, default=10
            Number of hits, at most.
        labels : iterable of str, optional
            Only images with these labels are hits; scores do not change.
        n_subwindows : int, optional
            Number of subwindows of the query; by default as many as each image has.
        random_state : int, default=0
            Ties are broken at random, by this seed.

        Returns
        -------
        hits : list of Hit
            The hits, the best first; ``shard`` is the position of their index.
        """
        picture = load_query(query)
        reached = self.vocabulary.reach([picture], n_subwindows, query=True)
        words = Words.count(reached.leaves)
        labels = None if labels is None else as_list("labels", labels)
        for attempt in range(ATTEMPTS):
            counted = [shard.leaf_sizes(words.leaves) for shard in self.shards]
            sizes = np.array([sizes for sizes, _ in counted]).sum(axis=0, dtype=np.uint64)
            try:
                ranked = [
                    shard.best_hits(
                        words,
                        sizes,
                        k,
                        labels=labels,
                        random_state=random_state,
                        generation=generation,
                    )
                    for shard, (_, generation) in zip(self.shards, counted, strict=True)
                ]
                break
            except IndexChangedError:
                if attempt == ATTEMPTS - 1:
                    raise
        hits = [replace(hit, shard=s) for s, one in enumerate(ranked) for hit in one.hits]
        keys = mix(
            np.array([key for one in ranked for key in one.keys], dtype=np.uint64), random_state
        )
        order = sorted(range(len(hits)), key=lambda i: (-hits[i].score, int(keys[i])))
        return [hits[i] for i in order[:k]]
