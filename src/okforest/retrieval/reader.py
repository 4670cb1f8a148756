"""Reading an index: search, explanation and evaluation."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from okforest._utils.arrays import Floats
from okforest._utils.parameters import as_integer
from okforest._utils.progress import progress_of
from okforest.retrieval.changes import positions_of
from okforest.retrieval.evaluation import (
    RetrievalQuality,
    evaluate_queries,
    labelled_images,
    read_queries,
)
from okforest.retrieval.pictures import (
    Picture,
    as_list,
    as_sources,
    content_hash,
    load_query,
    place,
)
from okforest.retrieval.postings import Explanation, UInt64s, Words, explain_pair, rank
from okforest.retrieval.segment import Hit, Row
from okforest.retrieval.store import Store
from okforest.retrieval.vocabulary import Reached, UInt32s, Vocabulary


class IndexChangedError(RuntimeError):
    """The index has changed between the two steps of a search over several indexes.

    Examples
    --------
    >>> from okforest.retrieval import IndexChangedError
    >>> def search_again(index, image):
    ...     try:
    ...         return index.search(image)
    ...     except IndexChangedError:
    ...         return index.search(image)
    """


class RankedHits(NamedTuple):
    """Hits, the best first, and the hashes of their names, by which ties are broken."""

    hits: list[Hit]
    keys: list[int]


class IndexReader:
    """An index as those who search see it: a snapshot, which stays as it is until it is refreshed.

    Parameters
    ----------
    path : str or path-like
        The folder of the index.
    verify : bool, default=True
        Whether to compare all files with their checksums when they are opened.
    n_jobs : int, optional
        Number of threads, as in scikit-learn.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, verify: bool = True, n_jobs: int | None = None
    ):
        self.path = Path(path)
        self.verify = verify
        self.n_jobs = n_jobs
        self._store = Store(self.path)
        self._refreshing = Lock()  # threads may share an index
        self._stamp = self._store.stamp()
        self.snapshot = self._store.open(verify)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), verify=self.verify, n_jobs=self.n_jobs), (self.path,)

    def __repr__(self) -> str:
        return f"<SubwindowIndex of {len(self)} images in {self.path}>"

    def __len__(self) -> int:
        return int(self.snapshot.live.sum())

    @property
    def vocabulary(self) -> Vocabulary:
        """The trees."""
        return self.snapshot.vocabulary

    @property
    def labels(self) -> list[str]:
        """The labels of the images, sorted."""
        return self.snapshot.used_labels

    def refresh(self) -> bool:
        """Open the index as it is now; until then, changes by other processes are not seen.

        Threads may share an index: searches use the state that they began with.

        Returns
        -------
        changed : bool
            Whether it has changed.
        """
        if self._store.stamp() == self._stamp:
            self._store.check_sizes(self.snapshot)
            return False
        # One thread after the other: none puts back an older state than another has opened.
        with self._refreshing:
            stamp = self._store.stamp()
            if stamp == self._stamp:
                return False
            before = self.snapshot
            self.snapshot = self._store.open(self.verify, before)
            self._stamp = stamp
        return self.snapshot.manifest.generation != before.manifest.generation

    def row(self, image: int | str | Hit) -> Row:
        """Return the record of an image in the index.

        Parameters
        ----------
        image : int, str or Hit
            Its number, its name, or a hit.

        Returns
        -------
        row : Row
            Name, label, size, hash and thumbnail.
        """
        snapshot = self.snapshot
        return snapshot.row(positions_of(snapshot, [image])[0])

    def rows(self) -> Iterator[Row]:
        """Return all images.

        Returns
        -------
        rows : iterator of Row
            Names, labels, sizes, hashes and thumbnails.
        """
        snapshot = self.snapshot
        return (snapshot.row(int(p)) for p in np.flatnonzero(snapshot.live))

    def picture(self, image: int | str | Hit) -> Picture:
        """Return the pixels of an image, read from its file.

        Parameters
        ----------
        image : int, str or Hit
            Its number, its name, or a hit.

        Returns
        -------
        picture : ndarray of shape (height, width, channels), uint8
            The pixels. If the file is missing or has changed, an error is raised.
        """
        return self.snapshot.original(self.row(image))

    def reach(self, query: Any, n_subwindows: int | None = None) -> Reached:
        """Return the subwindows of a query and the leaves that they reach.

        Parameters
        ----------
        query : ndarray, path-like, bytes, int or Hit
            As in :meth:`search`.
        n_subwindows : int, optional
            Number of subwindows; by default as many as each image has.

        Returns
        -------
        reached : Reached
            Leaves and squares.
        """
        if isinstance(query, int | np.integer | Hit):
            image = query if isinstance(query, Hit) else int(query)
            query = self.snapshot.likeness(self.row(image))
        # One picture is too little work for threads.
        return self.vocabulary.reach([load_query(query)], n_subwindows, query=True)

    def search(
        self,
        query: Any,
        k: int = 10,
        *,
        labels: Iterable[str] | None = None,
        n_subwindows: int | None = None,
        random_state: int = 0,
    ) -> list[Hit]:
        """Return the images with the largest scores.

        Parameters
        ----------
        query : ndarray, path-like, bytes, int or Hit
            A picture, as an array of bytes, a file or its content, or an image of the index, as its
            number or a hit. Its file is read; without it, its thumbnail is searched for.
        k : int, default=10
            Number of hits, at most. Images that share no leaf with the query are no hits.
        labels : iterable of str, optional
            Only images with these labels are hits; scores do not change. :attr:`labels` are
            those that the images have.
        n_subwindows : int, optional
            Number of subwindows of the query; by default as many as each image has.
        random_state : int, default=0
            Ties are broken at random, by this seed.

        Returns
        -------
        hits : list of Hit
            The hits, the best first.
        """
        words = Words.count(self.reach(query, n_subwindows).leaves)
        return self.best_hits(
            words, None, k, labels=labels, random_state=random_state, generation=None
        ).hits

    def leaf_sizes(self, leaves: UInt32s) -> tuple[UInt64s, int]:
        """Return the number of subwindows in leaves: the first step of a federated search.

        Leaves ascend. The second value is the state of the index, for :meth:`best_hits`.
        """
        snapshot = self.snapshot
        return snapshot.look_up(leaves).sizes, snapshot.manifest.generation

    def best_hits(
        self,
        words: Words,
        sizes: UInt64s | None,
        k: int,
        *,
        labels: Iterable[str] | None,
        random_state: int,
        generation: int | None,
    ) -> RankedHits:
        """Return the best images for the leaves of a query: the second step of a federated search.

        The sizes of the leaves are sums over all indexes; None stands for this index alone. If the
        index is no longer in the state (``generation``) in which its leaves were counted, an
        IndexChangedError is raised.
        """
        snapshot = self.snapshot
        if generation is not None and generation != snapshot.manifest.generation:
            raise IndexChangedError(f"{self.path} has changed since its leaves were counted.")
        k = as_integer("k", k, 1)
        random_state = as_integer("random_state", random_state, 0)
        lookup = snapshot.look_up(words.leaves)
        scores = lookup.scores(words, lookup.sizes if sizes is None else sizes)
        allowed = snapshot.live & (scores > 0)
        if labels is not None:
            names, codes = snapshot.labels
            wanted = set(as_list("labels", labels))
            allowed &= np.array([name in wanted for name in names], dtype=bool)[codes]
        best = rank(scores, snapshot.keys, allowed, k, random_state)
        found = zip(best.tolist(), scores[best].tolist(), strict=True)
        hits = [snapshot.hit(position, score) for position, score in found]
        return RankedHits(hits, snapshot.keys[best].tolist())

    def scores(self, query: Any, n_subwindows: int | None = None) -> tuple[UInt64s, Floats]:
        """Return the scores of all images.

        Parameters
        ----------
        query : ndarray, path-like, bytes, int or Hit
            As in :meth:`search`.
        n_subwindows : int, optional
            Number of subwindows of the query.

        Returns
        -------
        ids : ndarray of shape (n,), uint64
            The numbers of the images.
        scores : ndarray of shape (n,)
            Their scores, with sum one (or zero, if no leaf of the query has an image).
        """
        words = Words.count(self.reach(query, n_subwindows).leaves)
        snapshot = self.snapshot
        lookup = snapshot.look_up(words.leaves)
        return snapshot.ids[snapshot.live], lookup.scores(words, lookup.sizes)[snapshot.live]

    def explain(
        self,
        query: Any,
        hit: Hit | int | str,
        k: int = 20,
        *,
        hit_picture: Any = None,
        n_subwindows: int | None = None,
    ) -> Explanation:
        """Return the pairs of subwindows that a score is made of.

        Parameters
        ----------
        query : ndarray, path-like, bytes, int or Hit
            As in :meth:`search`.
        hit : Hit, int or str
            A hit, or the number or name of an image.
        k : int, default=20
            Number of pairs, at most.
        hit_picture : ndarray, path-like or bytes, optional
            The pixels of the hit; by default they are read from its file. An image that was not
            indexed from a file, such as one sent to a server, needs them.
        n_subwindows : int, optional
            Number of subwindows of the query.

        Returns
        -------
        explanation : Explanation
            Pairs of boxes and their weights, the largest first.
        """
        row = self.row(hit)
        pixels = self.picture(row.id) if hit_picture is None else load_query(hit_picture)
        if content_hash(pixels) != row.hash:
            raise ValueError(f"hit_picture is not the image {row.name!r} of the index.")
        mine = self.reach(query, n_subwindows)
        its = self.vocabulary.reach([pixels], row.n_subwindows)
        words = Words.count(mine.leaves)
        sizes, _ = self.leaf_sizes(words.leaves)
        return explain_pair(mine, its, words.leaves, sizes, words.n_used(sizes), k)

    def evaluate(
        self,
        images: Any = None,
        labels: Sequence[str] | None = None,
        *,
        k: Sequence[int] = (1, 5, 10),
        n_subwindows: int | None = None,
        random_state: int = 0,
        verbose: int = 0,
        callback: Callable[[int], None] | None = None,
    ) -> RetrievalQuality:
        """Measure how well images of the same class are found.

        Parameters
        ----------
        images : path-like, array-like or list, optional
            Queries; by default the files of all labelled images of the index; those without a
            file, or whose file has changed, are left out and counted (``n_unreadable``). A query
            that is in the index, with the same pixels, is searched for as if it were not.
        labels : sequence of str, optional
            Classes of the queries; by default the folders of files in a folder. Queries without a
            class are left out.
        k : sequence of int, default=(1, 5, 10)
            Numbers of hits for precision and recall.
        n_subwindows : int, optional
            Number of subwindows of a query.
        random_state : int, default=0
            Ties are broken at random, by this seed.
        verbose : int, default=0
            Whether to show progress.
        callback : callable, optional
            Called with the number of queries that are done.

        Returns
        -------
        quality : RetrievalQuality
            Top-1, precision and recall at k, and mean average precision.
        """
        snapshot = self.snapshot
        cutoffs = [as_integer("k", n, 1) for n in as_list("k", k)]
        random_state = as_integer("random_state", random_state, 0)
        if images is None:
            n, queries = labelled_images(snapshot)
        else:
            sources = place(as_sources(images, None, labels), snapshot.manifest.root)
            n, queries = len(sources), read_queries(sources)
        with closing(progress_of(0, max(1, n), verbose, callback, "searching")) as progress:
            return evaluate_queries(
                snapshot, queries, cutoffs, n_subwindows, random_state, progress
            )

    def info(self) -> dict[str, Any]:
        """Return what the index holds, and how large it is.

        Returns
        -------
        info : dict
            Numbers of images, subwindows, postings, trees and leaves; bytes; parameters.
        """
        snapshot = self.snapshot
        vocabulary = snapshot.vocabulary
        n_subwindows = snapshot.column("n_subwindows").astype(np.int64)
        posting_bytes = sum(segment.postings.nbytes for segment in snapshot.segments)
        indexed = int(n_subwindows.sum()) * vocabulary.n_trees
        return {
            "images": int(snapshot.live.sum()),
            "removed": int((~snapshot.live).sum()),
            "labels": len(snapshot.used_labels),
            "segments": len(snapshot.segments),
            "subwindows": int(n_subwindows[snapshot.live].sum()),
            "postings": sum(len(segment.postings) for segment in snapshot.segments),
            "trees": vocabulary.n_trees,
            "leaves": vocabulary.n_leaves,
            "vocabulary": vocabulary.key,
            "posting_bytes": posting_bytes,
            "tree_bytes": vocabulary.nodes.nbytes,
            "thumbnail_bytes": sum(len(s.table.texts["thumbnail"].data) for s in snapshot.segments),
            "bytes_per_subwindow_and_tree": (posting_bytes + vocabulary.nodes.nbytes)
            / max(1, indexed),
            "generation": snapshot.manifest.generation,
            "segmenter": repr(vocabulary.segmenter),
            "random_state": vocabulary.seed,
            "root": snapshot.manifest.root,
            "thumbnail_side": snapshot.manifest.thumbnail_side,
            "bytes": self._store.nbytes(),
        }
