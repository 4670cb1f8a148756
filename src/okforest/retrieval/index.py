"""An index of images that can be built, searched and changed."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from okforest._progress import progress_of
from okforest._threads import thread_count
from okforest.retrieval._changes import (
    Added,
    Adder,
    compact_segments,
    import_segments,
    relative_names,
    remove_images,
)
from okforest.retrieval._postings import UInt64s
from okforest.retrieval._reader import IndexReader
from okforest.retrieval._sources import as_sources
from okforest.retrieval._store import Snapshot, Store
from okforest.retrieval.vocabulary import Vocabulary
from okforest.segments import RandomSubwindows


class SubwindowIndex(IndexReader):
    """An index of images that finds those with similar parts, without labels or training.

    Images are cut into random subwindows, which are sent down totally randomised trees. Each leaf
    lists the images that have subwindows in it, and how many. A query's subwindows go down the
    trees, too, and S(q, i), the mean over trees and query subwindows of count(i, leaf) /
    size(leaf), ranks the images. The mean is over the leaves that are not empty, so that scores sum
    to one.

    The index is a folder. Images can be added and removed at any time; other processes can search
    meanwhile. This opens an index; :meth:`build` makes one.

    Parameters
    ----------
    path : str or path-like
        The folder of the index.
    verify : bool, default=True
        Whether to compare all files with their checksums when they are opened, which reads them
        once. Damaged files never crash the process, with or without it.
    n_jobs : int, optional
        Number of threads, as in scikit-learn.

    See Also
    --------
    Vocabulary : The trees, which several indexes can share.
    FederatedIndex : Several indexes that are searched as one.

    References
    ----------
    R. Marée, P. Geurts, L. Wehenkel, "Content-based image retrieval by indexing random subwindows
    with randomized trees", IPSJ Transactions on Computer Vision and Applications 1 (2009).

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from okforest.retrieval import SubwindowIndex
    >>> images = (load_digits().images * 15).astype(np.uint8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index = SubwindowIndex.build(f"{folder}/index", images[:5], names=list("abcde"))
    ...     [hit.name for hit in index.search(images[3], top=1)]
    ['d']
    """

    @classmethod
    def build(
        cls,
        path: str | os.PathLike[str],
        images: Any = (),
        *,
        names: Sequence[str] | None = None,
        labels: Sequence[str] | None = None,
        vocabulary: Vocabulary | str | os.PathLike[str] | None = None,
        segmenter: RandomSubwindows | None = None,
        n_trees: int = 10,
        min_samples_split: int = 2,
        max_sample: int = 100_000,
        thumbnail_side: int = 192,
        root: str | os.PathLike[str] | None = None,
        commit_every: int | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callable[[int], None] | None = None,
    ) -> "SubwindowIndex":
        """Make an index of images.

        Parameters
        ----------
        path : str or path-like
            The folder of the index: new or empty.
        images : path-like, array-like or list
            A folder of image files (those in its folders are labelled by them), a list of files, or
            arrays of bytes; none for an empty index on a given vocabulary.
        names : sequence of str, optional
            Unique names of the images; by default the paths of files, relative to the folder.
        labels : sequence of str, optional
            Classes of the images, for evaluation and filters.
        vocabulary : Vocabulary or path-like, optional
            Trees to use; by default they are grown on the images.
        segmenter : RandomSubwindows, optional
            How images are cut, if trees are grown; by default ``RandomSubwindows(200)``.
        n_trees : int, default=10
            Number of trees to grow.
        min_samples_split : int, default=2
            Number of subwindows that a node needs to be split.
        max_sample : int, default=100_000
            Number of subwindows that trees are grown on, at most.
        thumbnail_side : int, default=192
            Pixels of the longer side of thumbnails, which need Pillow; 0 for none.
        root : str or path-like, optional
            Names of files in this folder are relative to it; by default the folder of the images.
        commit_every : int, optional
            Number of images that are written at a time; by default so many that eight million pairs
            of a subwindow and a tree are.
        random_state : int, default=0
            The seed of the trees and of the subwindows.
        n_jobs : int, optional
            Number of threads, as in scikit-learn.
        verbose : int, default=0
            Whether to show progress.
        callback : callable, optional
            Called with the number of images that are done.

        Returns
        -------
        index : SubwindowIndex
            The index.
        """
        if root is None and isinstance(images, str | os.PathLike):
            root = images
        store = Store(Path(path))
        if store.exists():
            raise FileExistsError(
                f"{path} already has an index; add images to it, or choose another folder."
            )
        if vocabulary is None:
            vocabulary = Vocabulary.grow(
                images,
                segmenter=segmenter,
                n_trees=n_trees,
                min_samples_split=min_samples_split,
                max_sample=max_sample,
                random_state=random_state,
                n_jobs=n_jobs,
                verbose=verbose,
            )
        elif not isinstance(vocabulary, Vocabulary):
            vocabulary = Vocabulary.load(vocabulary)
        store.create(vocabulary, os.path.abspath(root) if root else "", thumbnail_side)
        index = cls(path, n_jobs=n_jobs)
        index.add(
            images,
            names=names,
            labels=labels,
            commit_every=commit_every,
            verbose=verbose,
            callback=callback,
        )
        return index

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._store.lock():
            try:
                self.refresh()
                yield
            finally:
                self.refresh()

    def _reopen(self) -> Snapshot:
        self.refresh()
        return self.snapshot

    def add(
        self,
        images: Any,
        *,
        names: Sequence[str] | None = None,
        labels: Sequence[str] | None = None,
        commit_every: int | None = None,
        verbose: int = 0,
        callback: Callable[[int], None] | None = None,
    ) -> Added:
        """Add images; the trees stay as they are.

        An image whose name is in the index replaces the old one; if it has the same pixels and
        label, nothing is done. A call that was interrupted can therefore be repeated.

        Parameters
        ----------
        images : path-like, array-like or list
            A folder, image files, or arrays of bytes. Images that cannot be read are left out.
        names : sequence of str, optional
            Unique names; by default the paths of files, and new names for arrays.
        labels : sequence of str, optional
            Classes of the images; by default the folders of the files in a folder.
        commit_every : int, optional
            Number of images that are written at a time.
        verbose : int, default=0
            Whether to show progress.
        callback : callable, optional
            Called with the number of images that are done.

        Returns
        -------
        added : Added
            How many images are new, replaced and unchanged, and which were left out.
        """
        if commit_every is not None and commit_every < 1:
            raise ValueError(f"commit_every={commit_every!r}; expected an integer from 1.")
        sources = as_sources(images, names, labels)
        progress = progress_of(0, max(1, len(sources)), verbose, callback, "indexing images")
        with self._writing():
            sources = relative_names(sources, self.snapshot.manifest.root)
            adder = Adder(self._store, self._reopen, thread_count(self.n_jobs), commit_every)
            try:
                return adder.add(sources, progress)
            finally:
                progress.close()

    def remove(self, images: Iterable[int | str]) -> int:
        """Remove images: they are found no more. :meth:`compact` frees their place.

        Parameters
        ----------
        images : iterable of int or str
            Numbers or names.

        Returns
        -------
        n_removed : int
            Number of images.
        """
        with self._writing():
            positions = [self._position(image) for image in images]
            if positions:
                remove_images(self._store, self.snapshot, positions)
        return len(positions)

    def compact(self, at_most: int | None = None) -> None:
        """Merge segments into one, without removed images; results stay the same.

        Parameters
        ----------
        at_most : int, optional
            Only segments of at most so many images are merged; by default all are.
        """
        with self._writing():
            compact_segments(self._store, self.snapshot, at_most)

    def merge(self, others: Iterable["SubwindowIndex"]) -> None:
        """Add the images of other indexes on the same vocabulary, without reading the images.

        Parameters
        ----------
        others : iterable of SubwindowIndex
            Indexes; none of their names may be in this index.
        """
        others = list(others)
        for other in others:
            if other.vocabulary.key != self.vocabulary.key:
                raise ValueError(
                    f"{other.path} has another vocabulary than {self.path}; only indexes on the "
                    "same trees can be merged. Build it with vocabulary=."
                )
        with self._writing():
            snapshots = [other.snapshot for other in others]
            keys = [s.keys[s.live] for s in (self.snapshot, *snapshots)]
            different, counts = np.unique(np.concatenate(keys), return_counts=True)
            if (counts > 1).any():
                twice = different[counts > 1]
                names = [s.row(p).name for s in snapshots for p in _where(s, twice)]
                raise ValueError(
                    f"{len(twice)} names are in several of the indexes, such as {names[0]!r}; "
                    "remove one of each."
                )
            import_segments(self._store, self.snapshot, snapshots)


def _where(snapshot: Snapshot, keys: UInt64s) -> list[int]:
    return [int(p) for p in np.flatnonzero(np.isin(snapshot.keys, keys) & snapshot.live)]
