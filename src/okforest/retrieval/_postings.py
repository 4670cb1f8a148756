"""Postings: which images have subwindows in each leaf, and how many; sorted by leaf."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from okforest.engine import FoundPostings

UInt8s = npt.NDArray[np.uint8]
UInt16s = npt.NDArray[np.uint16]
UInt32s = npt.NDArray[np.uint32]
UInt64s = npt.NDArray[np.uint64]

PER_BUCKET = 16  # postings, on average: the offsets take half a byte for each
MOST_BITS = 16  # of a leaf's number in its bucket
MOST_COUNT = 255  # a larger count is the sum of several postings
PER_CHUNK = 2**22  # postings that are merged at a time


@dataclass(frozen=True)
class Postings:
    """The postings of some images, in ascending order of leaves, then of images.

    Parameters
    ----------
    offsets : ndarray of shape (n_buckets + 1,), uint64
        Where the postings of each bucket begin: bucket b has the leaves from ``b << shift`` on.
    low : ndarray of shape (n,), uint16
        The leaf of each posting, counted from the first one of its bucket.
    image : ndarray of shape (n,), uint32
        The image of each posting.
    count : ndarray of shape (n,), uint8
        Its number of subwindows in the leaf.
    shift : int
        Binary logarithm of the number of leaves in a bucket, at most 16.
    """

    offsets: UInt64s
    low: UInt16s
    image: UInt32s
    count: UInt8s
    shift: int

    @classmethod
    def sorted_by_leaf(
        cls, leaf: UInt32s, image: UInt32s, count: npt.NDArray[Any], n_leaves: int
    ) -> Self:
        """Make postings from columns in the order of leaves."""
        shift = _shift(n_leaves, len(leaf))
        n_buckets = (n_leaves - 1 >> shift) + 1
        offsets = np.zeros(n_buckets + 1, dtype=np.uint64)
        np.cumsum(np.bincount(leaf >> shift, minlength=n_buckets), out=offsets[1:])
        low = (leaf & np.uint32((1 << shift) - 1)).astype(np.uint16)
        return cls(offsets, low, image, count.astype(np.uint8, copy=False), shift)

    @classmethod
    def of_subwindows(cls, keys: UInt64s, n_leaves: int) -> Self:
        """Count subwindows, given as ``leaf << 32 | image``; the array is sorted in place."""
        keys.sort()
        first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)])
        total = np.diff(np.append(first, len(keys)))
        n_parts = (total + MOST_COUNT - 1) // MOST_COUNT
        count = np.full(n_parts.sum(), MOST_COUNT, dtype=np.uint8)
        last = np.cumsum(n_parts) - 1
        count[last] = total - MOST_COUNT * (n_parts - 1)
        key = np.repeat(keys[first], n_parts)
        leaf, image = (key >> np.uint64(32)).astype(np.uint32), key.astype(np.uint32)
        return cls.sorted_by_leaf(leaf, image, count, n_leaves)

    def __len__(self) -> int:
        return len(self.low)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.offsets.nbytes + self.low.nbytes + self.image.nbytes + self.count.nbytes

    def check(self, n_leaves: int) -> None:
        """Raise a ValueError unless the arrays fit each other; images are checked when read."""
        if not 0 <= self.shift <= MOST_BITS:
            raise ValueError(f"shift is {self.shift}, not 0 to {MOST_BITS}")
        if len(self.offsets) != (n_leaves - 1 >> self.shift) + 2:
            raise ValueError(f"{len(self.offsets)} offsets do not fit {n_leaves} leaves")
        if not len(self.low) == len(self.image) == len(self.count):
            raise ValueError("the columns of postings have different lengths")
        ascending = (self.offsets[1:] >= self.offsets[:-1]).all()
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.low) or not ascending:
            raise ValueError(f"the offsets of postings do not ascend from 0 to {len(self.low)}")

    def check_entries(self, n_images: int, n_leaves: int) -> None:
        """Raise a ValueError unless every posting is of an image and a leaf that exist."""
        if int(self.image.max(initial=0)) >= max(n_images, 1):
            raise ValueError("a posting is of no image")
        last = slice(len(self.offsets) - 2, None)  # other buckets are full: they end by their size
        beyond = int(self.leaves(last).max(initial=0)) >= n_leaves
        if beyond or int(self.low.max(initial=0)) >> self.shift:
            raise ValueError("a posting is of no leaf")

    def find(self, leaves: UInt32s) -> FoundPostings:
        """Find the postings of leaves, given in ascending order."""
        return FoundPostings(
            self.offsets, self.low, self.image, self.count, shift=self.shift, leaves=leaves
        )

    def leaves(self, buckets: slice = slice(None)) -> UInt32s:
        """Return the leaf of each posting of some buckets."""
        numbers = np.arange(len(self.offsets) - 1, dtype=np.uint32)[buckets]
        sizes = np.diff(self.offsets)[buckets].astype(np.intp)
        first = np.repeat(numbers << np.uint32(self.shift), sizes)
        return first | self.low[self._positions(buckets)]

    def columns(self, buckets: slice) -> tuple[UInt32s, UInt32s, UInt8s]:
        """Return the leaves, images and counts of some buckets."""
        positions = self._positions(buckets)
        return self.leaves(buckets), self.image[positions], self.count[positions]

    def _positions(self, buckets: slice) -> slice:
        begin, end, _ = buckets.indices(len(self.offsets) - 1)
        return slice(int(self.offsets[begin]), int(self.offsets[end]))


def merge(parts: Sequence[tuple[Postings, npt.NDArray[np.int64]]], n_leaves: int) -> Postings:
    """Merge postings. Each comes with the new numbers of its images; those below 0 are left out."""
    total = sum(len(postings) for postings, _ in parts)
    columns: list[npt.NDArray[Any]] = [
        np.empty(total, dtype) for dtype in (np.uint32, np.uint32, np.uint8)
    ]
    n = 0
    for begin, end in pairwise(_boundaries(n_leaves, total)):
        chunk = list(zip(*(_renumbered(*part, begin, end) for part in parts), strict=True))
        leaf, image, count = (np.concatenate(column) for column in chunk)
        order = np.argsort(leaf, kind="stable")
        for column, values in zip(columns, (leaf, image, count), strict=True):
            column[n : n + len(order)] = values[order]
        n += len(order)
    leaf, image, count = (column[:n] for column in columns)
    return Postings.sorted_by_leaf(leaf, image, count, n_leaves)


def _renumbered(
    postings: Postings, numbers: npt.NDArray[np.int64], begin: int, end: int
) -> tuple[UInt32s, UInt32s, UInt8s]:
    """Return the columns of the leaves from begin to end, both multiples of a bucket."""
    buckets = slice(begin >> postings.shift, end >> postings.shift)
    leaf, image, count = postings.columns(buckets)
    new = numbers[image]
    kept = new >= 0
    return leaf[kept], new[kept].astype(np.uint32), count[kept]


def _boundaries(n_leaves: int, n_postings: int) -> Iterator[int]:
    """Divide the leaves into ranges of about as many postings as are merged at a time."""
    unit = 1 << MOST_BITS
    n_chunks = max(1, n_postings // PER_CHUNK)
    step = max(1, n_leaves // n_chunks // unit) * unit
    yield from range(0, n_leaves, step)
    yield -(-n_leaves // unit) * unit


def _shift(n_leaves: int, n_postings: int) -> int:
    wanted = n_leaves * PER_BUCKET / max(n_postings, 1)
    return int(np.clip(np.floor(np.log2(wanted)), 0, MOST_BITS)) if wanted > 1 else 0
