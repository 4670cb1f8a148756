"""The folder of an index: immutable files, and a manifest that lists those in use.

A change writes new files, then replaces the manifest, which makes the change visible at once or not
at all. Files are on the disk before the manifest names them. Readers map the files of the manifest
that they have read; they keep them, whatever writers do. docs/index_format.md has the format.
"""

import errno
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from okforest._utils.arrays import Booleans
from okforest.persistence import FileFormatError
from okforest.persistence.atomic import remove_leftovers, replacing
from okforest.persistence.container import write
from okforest.retrieval.decoder import Decoder, PictureError
from okforest.retrieval.pictures import Picture, content_hash, read_picture
from okforest.retrieval.postings import Lookup, Postings, UInt64s
from okforest.retrieval.segment import Hit, ImageTable, Row, Segment, read_segment, write_segment
from okforest.retrieval.vocabulary import VERSION, UInt32s, Vocabulary, reading

if sys.platform != "win32":
    from fcntl import LOCK_EX, LOCK_NB, flock

KIND, REMOVED_KIND = "okforest image index", "okforest removed images"
MANIFEST, VOCABULARY, LOCK = "manifest.okf", "vocabulary.okf", "write.lock"
OPEN_ATTEMPTS = 5  # opening fails while another process compacts the index
NONE_REMOVED = np.empty(0, dtype=bool)


class IndexBusyError(OSError):
    """Another process or thread is writing to the index.

    Examples
    --------
    >>> from okforest.retrieval import IndexBusyError
    >>> def add_or_wait(index, images):
    ...     try:
    ...         return index.add(images)
    ...     except IndexBusyError:
    ...         return None  # another process is writing; try again later
    """


@dataclass(frozen=True)
class Manifest:
    """The parts of an index.

    Parameters
    ----------
    generation : int
        Number of changes since the index was made.
    vocabulary : str
        The key of the vocabulary.
    segments : list of str
        Files of segments.
    removed : str
        The file of removed images; empty if there are none.
    next_id : int
        The number of the next image.
    root : str
        Names of files in this folder are relative to it; empty for none.
    thumbnail_side : int
        Pixels of the longer side of thumbnails; 0 for none.
    """

    generation: int
    vocabulary: str
    segments: list[str]
    removed: str
    next_id: int
    root: str
    thumbnail_side: int

    @classmethod
    def read(cls, path: Path) -> "Manifest":
        """Read a manifest, or raise a FileFormatError."""
        title = "the manifest of an index"
        with reading(path, KIND, title, mapped=False, verify=True) as (content, _):
            manifest = cls(**{field.name: content[field.name] for field in fields(cls)})
            numbers = (manifest.generation, manifest.next_id, manifest.thumbnail_side)
            texts = (manifest.vocabulary, manifest.removed, manifest.root, *manifest.segments)
            if not all(type(number) is int and number >= 0 for number in numbers):
                raise ValueError("a number is not an integer from 0")
            if not all(isinstance(text, str) for text in texts):
                raise ValueError("a name is not text")
            if any(Path(name).name != name for name in (*manifest.segments, manifest.removed)):
                raise ValueError("a file is outside the folder of the index")
            return manifest

    def write(self, path: Path) -> None:
        """Replace a manifest, and see that it is on the disk."""
        with replacing(path) as file:
            write(file, {"kind": KIND, "version": VERSION} | asdict(self), [])
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """See that the names of the files of a folder are on the disk."""
    if sys.platform != "win32":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@dataclass(frozen=True)
class Snapshot:
    """An index at one moment; later changes do not affect it.

    Parameters
    ----------
    manifest : Manifest
        What it consists of.
    vocabulary : Vocabulary
        The trees.
    segments : list of Segment
        The images.
    removed : list of ndarray of bool
        For each segment, which images are removed; empty if none is.
    file_bytes : dict of str to int
        The size of each mapped file.
    """

    manifest: Manifest
    vocabulary: Vocabulary
    segments: list[Segment]
    removed: list[Booleans]
    file_bytes: dict[str, int]

    @cached_property
    def starts(self) -> npt.NDArray[np.intp]:
        """Where the images of each segment begin among all images."""
        return np.cumsum([0, *(len(segment.table) for segment in self.segments)])

    @cached_property
    def live(self) -> Booleans:
        """Which images are not removed."""
        return ~np.concatenate([NONE_REMOVED, *map(self.removed_of, range(len(self.segments)))])

    def removed_of(self, s: int) -> Booleans:
        """Return which images of a segment are removed."""
        if len(self.removed[s]):
            return self.removed[s]
        return np.zeros(len(self.segments[s].table), dtype=bool)

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return a column of the tables of all segments."""
        columns = [segment.table.columns[name] for segment in self.segments]
        return np.concatenate(columns) if columns else np.empty(0, np.uint64)

    @cached_property
    def ids(self) -> UInt64s:
        """The numbers of all images."""
        return self.column("id")

    @cached_property
    def keys(self) -> UInt64s:
        """The hashes of all names."""
        return self.column("key")

    @cached_property
    def labels(self) -> tuple[list[str], npt.NDArray[np.intp]]:
        """The names of all labels, sorted, and the position of each image's among them."""
        tables = [segment.table for segment in self.segments]
        names = sorted({label for table in tables for label in table.labels()})
        code = {name: i for i, name in enumerate(names)}
        codes = [
            np.array([code[label] for label in table.labels()], dtype=np.intp)[
                table.columns["label"]
            ]
            for table in tables
        ]
        return names, np.concatenate([np.empty(0, np.intp), *codes])

    @property
    def used_labels(self) -> list[str]:
        """The labels of the images that were not removed, sorted."""
        names, codes = self.labels
        return [names[i] for i in np.unique(codes[self.live]) if names[i]]

    def positions_by_hash(self) -> dict[bytes, list[int]]:
        """Return the positions of the images with each hash of pixels, without removed ones."""
        found: dict[bytes, list[int]] = {}
        for s, segment in enumerate(self.segments):
            for i in np.flatnonzero(~self.removed_of(s)):
                key = segment.table.hash[i].tobytes()
                found.setdefault(key, []).append(int(self.starts[s] + i))
        return found

    def locate(self, position: int) -> tuple[int, int]:
        """Return the segment of an image, and its row there."""
        s = int(np.searchsorted(self.starts, position, side="right")) - 1
        return s, position - int(self.starts[s])

    def row(self, position: int) -> Row:
        """Return the record of an image in the index."""
        s, i = self.locate(position)
        return self.segments[s].table[i]

    def hit(self, position: int, score: float) -> Hit:
        """Return an image with its score, without reading its thumbnail."""
        s, i = self.locate(position)
        return self.segments[s].table.hit(i, score)

    def look_up(self, leaves: UInt32s) -> Lookup:
        """Find the postings of leaves, given in ascending order."""
        postings = [segment.postings for segment in self.segments]
        return Lookup(postings, self.removed, self.starts, leaves)

    def original(self, row: Row, decoder: Decoder | None = None) -> Picture:
        """Return the pixels of an image, read from its file, or raise a ValueError."""
        if row.file_bytes < 0:
            raise PictureError(
                f"image {row.name!r} was not indexed from a file; pass its pixels, which an index "
                "does not keep."
            )
        path = Path(self.manifest.root) / row.name
        picture = read_picture(path, name=row.name, decoder=decoder)
        if content_hash(picture) != row.hash:
            raise PictureError(f"the file of image {row.name!r} has changed; add it again.")
        return picture

    def likeness(self, row: Row, decoder: Decoder | None = None) -> Picture:
        """Return the pixels of an image or, without its file, the enlarged thumbnail."""
        try:
            return self.original(row, decoder)
        except (OSError, ValueError):
            if not row.thumbnail:
                raise
        small = read_picture(row.thumbnail)
        rows = np.arange(row.height) * small.shape[0] // row.height
        cols = np.arange(row.width) * small.shape[1] // row.width
        return np.ascontiguousarray(small[rows][:, cols])


class Store:
    """The folder of an index.

    Parameters
    ----------
    folder : Path
        The folder.
    """

    def __init__(self, folder: Path):
        self.folder = folder

    def exists(self) -> bool:
        """Return whether the folder has an index."""
        return (self.folder / MANIFEST).is_file()

    def check_free(self) -> None:
        """Raise a FileExistsError unless an index can be made in the folder."""
        if self.exists():
            raise FileExistsError(
                f"{self.folder} already has an index; add images to it, or choose another folder."
            )
        if self.folder.exists() and not self.folder.is_dir():
            raise FileExistsError(f"{self.folder} is a file; choose a folder for the index.")
        remove_leftovers(self.folder)
        if {path.name for path in self.folder.glob("*")} - {LOCK, VOCABULARY}:
            raise FileExistsError(f"{self.folder} has other files; choose an empty folder.")

    def create(self, vocabulary: Vocabulary, root: str, thumbnail_side: int) -> None:
        """Make an empty index."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.lock(), clear_errors(self.folder, "no index was made in {}"):
            self.check_free()
            vocabulary.save(self.folder / VOCABULARY)
            manifest = Manifest(0, vocabulary.key, [], "", 0, root, thumbnail_side)
            manifest.write(self.folder / MANIFEST)

    def delete(self) -> None:
        """Delete an index that is still empty, and the folder if it has no other files."""
        self._delete_others(set())
        for name in (MANIFEST, VOCABULARY, LOCK):
            (self.folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # it has other files
            self.folder.rmdir()

    def stamp(self) -> tuple[int, int]:
        """Return what changes with the manifest."""
        try:
            status = os.stat(self.folder / MANIFEST)
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"{self.folder} has no index; build one first, or pass another folder."
            ) from error
        return status.st_ino, status.st_mtime_ns

    def open(self, verify: bool, previous: Snapshot | None = None) -> Snapshot:
        """Open the index; what the previous snapshot has open is not opened again."""
        self.stamp()
        for attempt in range(OPEN_ATTEMPTS):
            manifest = Manifest.read(self.folder / MANIFEST)
            try:
                return self._open(manifest, verify, previous)
            except FileNotFoundError as error:  # compacted since the manifest was read
                if attempt == OPEN_ATTEMPTS - 1:
                    raise FileFormatError(
                        f"{error.filename}, a file of the index, is missing. Restore it from a "
                        "copy, or build the index again."
                    ) from error
        raise AssertionError("the loop returns or raises")

    def _open(self, manifest: Manifest, verify: bool, previous: Snapshot | None) -> Snapshot:
        known = {segment.file: segment for segment in previous.segments} if previous else {}
        if previous and previous.vocabulary.key == manifest.vocabulary:
            vocabulary = previous.vocabulary
        else:
            vocabulary = Vocabulary.load(self.folder / VOCABULARY, verify=verify)
        if vocabulary.key != manifest.vocabulary:
            raise FileFormatError(f"{self.folder / VOCABULARY} is not the vocabulary of the index.")
        segments = [
            known.get(name) or read_segment(self.folder / name, vocabulary, verify)
            for name in manifest.segments
        ]
        before = previous.file_bytes if previous else {}
        sizes = {
            name: before.get(name) or os.stat(self.folder / name).st_size
            for name in (VOCABULARY, *manifest.segments)
        }
        removed = self._read_removed(manifest, segments)
        return Snapshot(manifest, vocabulary, segments, removed, sizes)

    def check_sizes(self, snapshot: Snapshot) -> None:
        """Raise a FileFormatError if a mapped file was cut off: reading it would end the process.

        Files that were deleted are still there for those who have mapped them.
        """
        for name, size in snapshot.file_bytes.items():
            with suppress(FileNotFoundError):
                now = os.stat(self.folder / name).st_size
                if now < size:
                    raise FileFormatError(
                        f"{self.folder / name} was cut off while it was in use: it has {now} of "
                        f"{size} bytes. Restore it from a copy, or build the index again."
                    )

    def _read_removed(self, manifest: Manifest, segments: list[Segment]) -> list[Booleans]:
        if not manifest.removed:
            return [NONE_REMOVED] * len(segments)
        path = self.folder / manifest.removed
        title = "a list of removed images"
        file = reading(path, REMOVED_KIND, title, mapped=False, verify=True, version=None)
        with file as (content, arrays):
            rows = dict(zip(content["segments"], arrays, strict=True))
            return [_as_mask(rows.get(segment.file), len(segment.table)) for segment in segments]

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other writers out."""
        with open(self.folder / LOCK, "a") as file:
            if sys.platform != "win32":
                try:
                    flock(file, LOCK_EX | LOCK_NB)
                except BlockingIOError as error:
                    raise IndexBusyError(
                        f"another process is writing to {self.folder}; wait until it has finished."
                    ) from error
            yield

    def write_segment(
        self, postings: Postings, table: ImageTable, vocabulary: Vocabulary, generation: int
    ) -> str:
        """Write a segment; it becomes part of the index by a commit."""
        name = f"segment-{generation:08d}-{secrets.token_hex(4)}.okf"
        with clear_errors(self.folder):
            write_segment(self.folder / name, postings, table, vocabulary)
        return name

    def commit(self, manifest: Manifest, removed: dict[str, Booleans]) -> None:
        """Replace the manifest, and delete the files that it does not name.

        ``removed`` has the images of each segment that are removed.
        """
        with clear_errors(self.folder):
            listed = {name: mask for name, mask in removed.items() if mask.any()}
            name = f"removed-{manifest.generation:08d}-{secrets.token_hex(4)}.okf" if listed else ""
            if listed:
                rows = [np.flatnonzero(mask).astype(np.uint32) for mask in listed.values()]
                with replacing(self.folder / name) as file:
                    write(file, {"kind": REMOVED_KIND, "segments": list(listed)}, rows)
            sync_folder(self.folder)
            replace(manifest, removed=name).write(self.folder / MANIFEST)
        self._delete_others({*manifest.segments, name})

    def _delete_others(self, named: set[str]) -> None:
        remove_leftovers(self.folder)
        for pattern in ("segment-*.okf", "removed-*.okf"):
            for path in self.folder.glob(pattern):
                if path.name not in named:
                    with suppress(OSError):  # it is tried again by the next commit
                        path.unlink()

    def nbytes(self) -> int:
        """Return the bytes of all files."""
        total = 0
        for path in self.folder.iterdir():
            with suppress(FileNotFoundError):  # deleted meanwhile
                total += path.stat().st_size
        return total


@contextmanager
def clear_errors(
    folder: Path, outcome: str = "the index in {} is as it was before this change"
) -> Iterator[None]:
    """Say what became of the index if the disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise OSError(
            error.errno,
            f"{os.strerror(error.errno)}: {outcome.format(folder)}. Make room, then repeat it",
        ) from error


def _as_mask(rows: npt.NDArray[Any] | None, n: int) -> Booleans:
    if rows is None:
        return NONE_REMOVED
    if rows.dtype != np.uint32 or rows.ndim != 1 or (len(rows) and rows.max() >= n):
        raise ValueError("a removed image is not in its segment")
    mask = np.zeros(n, dtype=bool)
    mask[rows] = True
    return mask
