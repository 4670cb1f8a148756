"""Changes of an index: adding images in batches, removing them, merging segments."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from okforest._typing import Booleans
from okforest.retrieval._pictures import DEFAULT_LIMITS, Picture, content_hash
from okforest.retrieval._segment import SegmentBuilder, merge_segments
from okforest.retrieval._sources import Source, Unreadable, read_batches
from okforest.retrieval._store import Manifest, Snapshot, Store
from okforest.retrieval._table import Row, name_key

KEYS_PER_SEGMENT = 2**23  # subwindows times trees that are held in memory, 8 bytes each


class Added(NamedTuple):
    """What became of the images that were to be added.

    Parameters
    ----------
    n_added : int
        New images.
    n_replaced : int
        Images whose name was in the index, with other pixels or another label.
    n_unchanged : int
        Images that were in the index already.
    skipped : list of Unreadable
        Images that could not be read: ``name`` and ``reason``.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_digits
    >>> from okforest.retrieval import SubwindowIndex
    >>> images = (load_digits().images[:4] * 15).astype("uint8")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index = SubwindowIndex.build(f"{folder}/index", images[:3], names=list("abc"))
    ...     added = index.add(images[2:], names=list("cd"))
    >>> added.n_added, added.n_unchanged
    (1, 1)
    """

    n_added: int
    n_replaced: int
    n_unchanged: int
    skipped: list[Unreadable]


class Directory:
    """Finds images of a snapshot by their names.

    Parameters
    ----------
    snapshot : Snapshot
        The index.
    """

    def __init__(self, snapshot: Snapshot):
        self.snapshot = snapshot
        positions = np.flatnonzero(snapshot.live)
        self.positions = dict(zip(snapshot.keys[positions].tolist(), positions, strict=True))

    def find(self, name: str) -> tuple[int, Row] | None:
        """Return the position and the row of an image, or None."""
        position = self.positions.get(name_key(name))
        if position is None:
            return None
        row = self.snapshot.row(int(position))
        return (int(position), row) if row.name == name else None


class Adder:
    """Adds images to an index, a segment at a time.

    Parameters
    ----------
    store : Store
        The folder, locked by the caller.
    reopen : callable
        Returns a snapshot of the index as it is now.
    n_threads : int
        Number of threads.
    commit_every : int, optional
        Number of images in a segment, at most.
    """

    def __init__(
        self,
        store: Store,
        reopen: Callable[[], Snapshot],
        n_threads: int,
        commit_every: int | None,
    ):
        self.store, self.reopen, self.n_threads = store, reopen, n_threads
        self.commit_every = commit_every
        self.snapshot = reopen()
        self.directory = Directory(self.snapshot)
        self.builder = self._new_builder()
        self.replaced: list[int] = []  # positions of images whose successors are in the builder
        self.n_replaced = self.n_unchanged = self.n_added = 0
        self.skipped: list[Unreadable] = []

    def add(self, sources: Sequence[Source], progress: Callable[[int], None]) -> Added:
        """Add images, and report the number of those that are done."""
        n_done = 0
        changed = [source for source in sources if not self._is_unchanged_file(source)]
        n_done = self.n_unchanged = len(sources) - len(changed)
        progress(n_done)
        for pictures, unreadable in read_batches(changed, DEFAULT_LIMITS, self.n_threads):
            self.skipped += unreadable
            new = [pair for pair in pictures if self._is_new(*pair)]
            self._index(new)
            n_done += len(pictures) + len(unreadable)
            progress(n_done)
        self.commit()
        return Added(self.n_added, self.n_replaced, self.n_unchanged, self.skipped)

    def _is_unchanged_file(self, source: Source) -> bool:
        """Return whether the index has this file, with this size and time: it is not read then."""
        if source.path is None or not (found := self.directory.find(source.name)):
            return False
        try:
            status = source.path.stat()
        except OSError:
            return False  # reading it tells why
        row = found[1]
        known = (row.file_bytes, row.file_time, row.label)
        return known == (status.st_size, status.st_mtime_ns, source.label)

    def _is_new(self, source: Source, picture: Picture) -> bool:
        found = self.directory.find(source.name) if source.name else None
        if not found:
            self.n_added += 1
            return True
        position, row = found
        if row.label == source.label and row.hash == content_hash(picture):
            self.n_unchanged += 1
            return False
        self.replaced.append(position)
        self.n_replaced += 1
        return True

    def _index(self, pictures: list[tuple[Source, Picture]]) -> None:
        if not pictures:
            return
        vocabulary = self.snapshot.vocabulary
        leaves = vocabulary.reach([picture for _, picture in pictures], None, self.n_threads).leaves
        parts = leaves.reshape(len(pictures), -1, vocabulary.n_trees)
        for (source, picture), part in zip(pictures, parts, strict=True):
            self.builder.add(source, picture, part)
            full = self.builder.n_keys >= KEYS_PER_SEGMENT
            if full or len(self.builder.rows) == self.commit_every:
                self.commit()

    def commit(self) -> None:
        """Make the images that have been collected part of the index."""
        if not self.builder.rows:
            return
        old = self.snapshot.manifest
        generation = old.generation + 1
        name = self.store.write_segment(
            *self.builder.finish(), self.snapshot.vocabulary, generation
        )
        manifest = replace(
            old,
            generation=generation,
            segments=[*old.segments, name],
            next_id=old.next_id + len(self.builder.rows),
        )
        # Those replaced by images that are still to come stay until these are committed.
        names = {row.name for row in self.builder.rows}
        done = {p for p in self.replaced if self._name(p) in names}
        self.replaced = [p for p in self.replaced if p not in done]
        self.store.commit(manifest, _with_removed(self.snapshot, sorted(done)))
        self.snapshot = self.reopen()
        self.directory.snapshot = self.snapshot  # positions stay: segments are appended
        self.builder = self._new_builder()

    def _name(self, position: int) -> str:
        s, i = self.snapshot.locate(position)
        return self.snapshot.segments[s].table.texts["name"].text(i)

    def _new_builder(self) -> SegmentBuilder:
        manifest = self.snapshot.manifest
        return SegmentBuilder(self.snapshot.vocabulary, manifest.next_id, manifest.thumbnail_side)


def remove_images(store: Store, snapshot: Snapshot, positions: Sequence[int]) -> None:
    """Mark images as removed."""
    manifest = replace(snapshot.manifest, generation=snapshot.manifest.generation + 1)
    store.commit(manifest, _with_removed(snapshot, positions))


def compact_segments(store: Store, snapshot: Snapshot, at_most: int | None) -> None:
    """Replace segments of at most so many images by one, without the images that are removed."""
    old = snapshot.manifest
    merged = [
        s
        for s, segment in enumerate(snapshot.segments)
        if at_most is None or len(segment.table) <= at_most
    ]
    removed = [snapshot.removed[s] for s in merged]
    if len(merged) < 2 and not any(mask.any() for mask in removed):
        return
    generation = old.generation + 1
    segments = [snapshot.segments[s] for s in merged]
    parts = merge_segments(segments, removed, snapshot.vocabulary)
    replaced = {segment.file for segment in segments}
    names = [name for name in old.segments if name not in replaced]
    if len(parts[1]):
        names.append(store.write_segment(*parts, snapshot.vocabulary, generation))
    masks = _with_removed(snapshot, [])
    store.commit(
        replace(old, generation=generation, segments=names),
        {name: mask for name, mask in masks.items() if name in names},
    )


def import_segments(store: Store, snapshot: Snapshot, others: Iterable[Snapshot]) -> None:
    """Copy the images of other indexes on the same vocabulary, one segment for each index."""
    manifest = snapshot.manifest
    next_id, generation = manifest.next_id, manifest.generation + 1
    names = [*manifest.segments]
    for other in others:
        if not other.live.any():
            continue
        postings, table = merge_segments(other.segments, other.removed, other.vocabulary)
        table.columns["id"] = np.arange(next_id, next_id + len(table), dtype=np.uint64)
        next_id += len(table)
        names.append(store.write_segment(postings, table, snapshot.vocabulary, generation))
    manifest = Manifest(**vars(manifest) | {"segments": names, "next_id": next_id})
    store.commit(replace(manifest, generation=generation), _with_removed(snapshot, []))


def relative_names(sources: Sequence[Source], root: str) -> list[Source]:
    """Name the files in the root folder by their paths relative to it."""
    if not root:
        return list(sources)
    named = []
    for source in sources:
        path = source.path
        if path is not None and source.name == str(path) and path.is_relative_to(root):
            source = replace(source, name=path.relative_to(Path(root)).as_posix())
        named.append(source)
    return named


def _with_removed(snapshot: Snapshot, positions: Any) -> dict[str, Booleans]:
    """Return which images of each segment are removed, with some more."""
    removed = ~snapshot.live
    removed[np.asarray(positions, dtype=np.intp)] = True
    parts = np.split(removed, snapshot.starts[1:-1]) if snapshot.segments else []
    return {seg.file: part for seg, part in zip(snapshot.segments, parts, strict=True)}
