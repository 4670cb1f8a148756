"""Changes of an index: adding images in batches, removing them, merging segments."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from okforest._utils.arrays import Booleans
from okforest._utils.parameters import is_integer
from okforest.retrieval.pictures import (
    Loaded,
    Source,
    Unreadable,
    content_hash,
    is_utf8,
    read_batches,
    shown,
)
from okforest.retrieval.segment import (
    Hit,
    ImageTable,
    Row,
    SegmentBuilder,
    merge_segments,
    name_key,
)
from okforest.retrieval.store import Snapshot, Store

KEYS_PER_SEGMENT = 2**23  # subwindows times trees that are held in memory, 8 bytes each


class Added(NamedTuple):
    """The outcome of adding images.

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


class UnknownImageError(ValueError):
    """An image that an index does not have."""

    def __init__(self, image: Any):
        super().__init__(f"the index has no image {image!r}; rows() lists those that it has.")
        self.image = image


def positions_of(snapshot: Snapshot, images: Sequence[int | str | Hit]) -> list[int]:
    """Return the positions of images; each is a number, a name or a hit."""
    keys = [image.id if isinstance(image, Hit) else image for image in images]
    named = any(isinstance(key, str) for key in keys)
    directory = Directory(snapshot) if named else None
    positions = []
    for key in keys:
        where: Any = ()
        if isinstance(key, str):
            where = directory.find(key) if directory else ()
        elif is_integer(key) and 0 <= key < 2**63:
            where = np.flatnonzero((snapshot.ids == key) & snapshot.live)
        if where is None or not len(where):
            raise UnknownImageError(key)
        positions.append(int(where[0]))
    return positions


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
        self.names_in_call: set[str] = set()
        self.committing = False
        self.n_replaced = self.n_unchanged = self.n_added = 0
        self.skipped: list[Unreadable] = []

    def add(self, sources: Sequence[Source], progress: Callable[[int], None]) -> Added:
        """Add images, and report the number of those that are done."""
        self.names_in_call = {source.name for source in sources}
        changed = [source for source in sources if not self._is_done(source)]
        n_done = len(sources) - len(changed)
        progress(n_done)
        try:
            for images, unreadable in read_batches(changed, self.n_threads):
                self.skipped += unreadable
                self._index([image for image in images if self._is_new(image)])
                n_done += len(images) + len(unreadable)
                progress(n_done)
        except KeyboardInterrupt:
            if not self.committing:  # keep the images indexed so far
                self.commit()
            raise
        self.commit()
        return Added(self.n_added, self.n_replaced, self.n_unchanged, self.skipped)

    def _is_done(self, source: Source) -> bool:
        """Return whether a file need not be read: the index has it, or its name is not text."""
        if source.path is None:
            return False
        if not is_utf8(source.name):
            name = shown(source.name)
            self.skipped.append(
                Unreadable(name, f"{name} has a name that is not UTF-8; rename it.")
            )
            return True
        if not (found := self.directory.find(source.name)):
            return False
        try:
            status = source.path.stat()
        except OSError:
            return False  # reading it raises the error
        row = found[1]
        unchanged = (row.file_bytes, row.file_time, row.label) == (
            status.st_size,
            status.st_mtime_ns,
            source.label_after(row.label),
        )
        self.n_unchanged += unchanged
        return unchanged

    def _is_new(self, image: Loaded) -> bool:
        source = image.source
        found = self.directory.find(source.name) if source.name else None
        if not found:
            self.n_added += 1
            return True
        position, row = found
        same_label = row.label == source.label_after(row.label)
        if same_label and row.hash == content_hash(image.picture):
            self.n_unchanged += 1
            return False
        self.replaced.append(position)
        self.n_replaced += 1
        return True

    def _index(self, images: list[Loaded]) -> None:
        if not images:
            return
        vocabulary = self.snapshot.vocabulary
        pictures = [image.picture for image in images]
        leaves = vocabulary.reach(pictures, None, self.n_threads).leaves
        parts = leaves.reshape(len(images), -1, vocabulary.n_trees)
        for image, part in zip(images, parts, strict=True):
            name = image.source.name or self._free_name()
            found = self.directory.find(name)
            label = image.source.label_after(found[1].label if found else None)
            self.builder.add(name, label, image, part)
            full = self.builder.n_keys >= KEYS_PER_SEGMENT
            if full or len(self.builder.rows) == self.commit_every:
                self.commit()

    def _free_name(self) -> str:
        """Return a name that no image has: the number of the next one, and another if needed."""
        name = first = f"image-{self.builder.next_id}"
        more = count(1)
        while name in self.names_in_call or self.directory.find(name):
            name = f"{first}-{next(more)}"
        return name

    def commit(self) -> None:
        """Make the images that have been collected part of the index."""
        if not self.builder.rows:
            return
        self.committing = True
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
        done = {p for p in self.replaced if self.snapshot.row(p).name in names}
        self.replaced = [p for p in self.replaced if p not in done]
        self.store.commit(manifest, _with_removed(self.snapshot, sorted(done)))
        self.snapshot = self.reopen()
        self.directory.snapshot = self.snapshot  # positions stay: segments are appended
        self.builder = self._new_builder()
        self.committing = False

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
    """Add the images of other indexes on the same vocabulary, one segment for each index."""
    manifest = snapshot.manifest
    next_id, generation = manifest.next_id, manifest.generation + 1
    names = [*manifest.segments]
    for other in others:
        if not other.live.any():
            continue
        postings, table = merge_segments(other.segments, other.removed, other.vocabulary)
        if other.manifest.root != manifest.root:
            renamed = zip(table.rows(), live_names(other, manifest.root), strict=True)
            table = ImageTable.of_rows([replace(row, name=name) for row, name in renamed])
        table.columns["id"] = np.arange(next_id, next_id + len(table), dtype=np.uint64)
        next_id += len(table)
        names.append(store.write_segment(postings, table, snapshot.vocabulary, generation))
    manifest = replace(manifest, segments=names, next_id=next_id, generation=generation)
    store.commit(manifest, _with_removed(snapshot, []))


def live_names(snapshot: Snapshot, root: str) -> list[str]:
    """Return the names that the images of an index have in one with this root folder.

    Files are named relative to the root folder if they are in it, and otherwise by their paths.
    """
    return [
        _name_in(root, snapshot.manifest.root, snapshot.row(int(p)))
        for p in np.flatnonzero(snapshot.live)
    ]


def _name_in(root: str, old_root: str, row: Row) -> str:
    if row.file_bytes < 0 or old_root == root:
        return row.name
    path = Path(old_root) / row.name
    inside = bool(root) and path.is_relative_to(root)
    return path.relative_to(root).as_posix() if inside else str(path)


def _with_removed(snapshot: Snapshot, positions: Any) -> dict[str, Booleans]:
    """Return which images of each segment are removed, including those at these positions."""
    removed = ~snapshot.live
    removed[np.asarray(positions, dtype=np.intp)] = True
    parts = np.split(removed, snapshot.starts[1:-1]) if snapshot.segments else []
    return {seg.file: part for seg, part in zip(snapshot.segments, parts, strict=True)}
