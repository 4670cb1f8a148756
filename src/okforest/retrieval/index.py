"""An index of images that can be built, searched and changed."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from okforest._utils.errors import warn
from okforest._utils.parameters import as_integer
from okforest._utils.progress import progress_of
from okforest._utils.resources import thread_count
from okforest.retrieval.changes import (
    Added,
    Adder,
    compact_segments,
    import_segments,
    live_names,
    positions_of,
    remove_images,
)
from okforest.retrieval.pictures import Sources, as_list, as_sources, place
from okforest.retrieval.reader import IndexReader
from okforest.retrieval.segment import Hit
from okforest.retrieval.store import Snapshot, Store
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
        once. A file that is damaged when it is opened is an error, with or without it. Nobody may
        overwrite or cut off the files of an index that is open; okforest itself never does.
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
    ...     [hit.name for hit in index.search(images[3], k=1)]
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
        max_segments: int = 100_000,
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
            A folder of image files (those in its folders are labelled by them), or files or arrays
            of bytes in any iterable; none for an empty index on a given vocabulary. Images that
            cannot be read are left out, with a warning.
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
        max_segments : int, default=100_000
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
        root = os.path.realpath(root) if root else ""
        store = Store(Path(path))
        # All that the caller may have got wrong is checked before anything is read or written.
        store.check_free()
        sources = as_sources(images, names, labels)
        thumbnail_side = as_integer("thumbnail_side", thumbnail_side, 0)
        _check_commit_every(commit_every)
        if vocabulary is None:
            vocabulary = Vocabulary.grow(
                sources,
                segmenter=segmenter,
                n_trees=n_trees,
                min_samples_split=min_samples_split,
                max_segments=max_segments,
                random_state=random_state,
                n_jobs=n_jobs,
                verbose=verbose,
            )
        elif not isinstance(vocabulary, Vocabulary):
            vocabulary = Vocabulary.load(vocabulary)
        store.create(vocabulary, root, thumbnail_side)
        index = cls(path, n_jobs=n_jobs)
        try:
            added = index._add(sources, commit_every, verbose, callback)
        except BaseException:
            if not len(index):  # there is nothing to go on with
                store.delete()
            raise
        if added.skipped:
            warn(
                f"{_left_out(added, sources)} Calling add with the same images lists all of them.",
            )
        return index

    @contextmanager
    def _writing(self) -> Iterator[Snapshot]:
        """Keep other writers out; the snapshot is the index as it is now."""
        with self._store.lock():
            try:
                yield self._reopen()
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
            A folder, or image files or arrays of bytes. Images that cannot be read are left out;
            if these are all, and they are arrays, there is a warning.
        names : sequence of str, optional
            Unique names; by default the paths of files, and new names for arrays.
        labels : sequence of str, optional
            Classes of the images. By default the files in a folder are labelled by their folders,
            relative to the root folder of the index if they are in it; other images keep the label
            that they have in the index, or have none.
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
        _check_commit_every(commit_every)
        sources = as_sources(images, names, labels)
        added = self._add(sources, commit_every, verbose, callback)
        if sources and len(added.skipped) == len(sources) and sources[0].path is None:
            warn(_left_out(added, sources))
        return added

    def _add(
        self,
        sources: Sources,
        commit_every: int | None,
        verbose: int,
        callback: Callable[[int], None] | None,
    ) -> Added:
        watchers = progress_of(0, max(1, len(sources)), verbose, callback, "indexing images")
        with self._writing() as snapshot, closing(watchers) as progress:
            placed = place(sources, snapshot.manifest.root)
            adder = Adder(self._store, self._reopen, thread_count(self.n_jobs), commit_every)
            return adder.add(placed, progress)

    def remove(self, images: Iterable[int | str | Hit]) -> int:
        """Remove images: they are found no more. :meth:`compact` frees their place.

        Parameters
        ----------
        images : iterable of int, str or Hit
            Numbers, names or hits.

        Returns
        -------
        n_removed : int
            Number of images; one that is listed twice counts once.
        """
        wanted = as_list("images", images)
        with self._writing() as snapshot:
            positions = set(positions_of(snapshot, wanted))
            if positions:
                remove_images(self._store, snapshot, sorted(positions))
        return len(positions)

    def compact(self, at_most: int | None = None) -> None:
        """Merge segments into one, without removed images; results stay the same.

        Parameters
        ----------
        at_most : int, optional
            Only segments of at most so many images are merged; by default all are.
        """
        with self._writing() as snapshot:
            compact_segments(self._store, snapshot, at_most)

    def merge(self, others: Iterable["SubwindowIndex"]) -> None:
        """Add the images of other indexes on the same vocabulary, without reading the images.

        Parameters
        ----------
        others : iterable of SubwindowIndex
            Indexes; none of their names may be in this index. If they have another root folder,
            their files are renamed: relative to the root folder of this index, or by their paths.
        """
        others = as_list("others", others)
        for other in others:
            if not isinstance(other, SubwindowIndex):
                raise TypeError(
                    f"{other!r} is not a SubwindowIndex, and only these can be merged; open the "
                    "folder of an index by SubwindowIndex(folder)."
                )
            if other.vocabulary.key != self.vocabulary.key:
                raise ValueError(
                    f"{other.path} has another vocabulary than {self.path}; only indexes on the "
                    "same trees can be merged. Build it again on the vocabulary of the other."
                )
        with self._writing() as snapshot:
            snapshots = [other.snapshot for other in others]
            names = [live_names(one, snapshot.manifest.root) for one in (snapshot, *snapshots)]
            twice = [name for name, n in Counter(chain(*names)).items() if n > 1]
            if twice:
                raise ValueError(
                    f"{len(twice)} names are in several of the indexes, such as {twice[0]!r}; "
                    "remove one of each."
                )
            import_segments(self._store, snapshot, snapshots)


def _left_out(added: Added, sources: Sources) -> str:
    n, first = len(added.skipped), added.skipped[0].reason
    return f"{n} of {len(sources)} images were left out; the first: {first}"


def _check_commit_every(commit_every: int | None) -> None:
    if commit_every is not None:
        as_integer("commit_every", commit_every, 1)
