"""Postings, which images have subwindows in each leaf, and the scores that they give.

S(q, i) is the mean over trees and query subwindows of count(i, leaf) / size(leaf). Counts and sizes
are integers. The terms of an image are added in the order of leaves, whatever segment or index the
image is in: the same images have the same scores, to the last bit, in one segment, in several, and
in several indexes that share a vocabulary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from okforest._utils.arrays import Booleans, Floats, Ints
from okforest.engine import FoundPostings
from okforest.retrieval.vocabulary import Reached, UInt32s

UInt8s = npt.NDArray[np.uint8]
UInt16s = npt.NDArray[np.uint16]
UInt64s = npt.NDArray[np.uint64]

POSTINGS_PER_BUCKET = 16  # on average, so that offsets take half a byte per posting
MOST_BITS = 16  # a leaf's number within its bucket has at most this many bits
MOST_COUNT = 255  # a larger count is the sum of several postings
POSTINGS_PER_CHUNK = 2**22  # chunks are merged one at a time
GAMMA = 0x9E3779B97F4A7C15


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
        """Return the leaf of each posting of these buckets."""
        numbers = np.arange(len(self.offsets) - 1, dtype=np.uint32)[buckets]
        sizes = np.diff(self.offsets)[buckets].astype(np.intp)
        first = np.repeat(numbers << np.uint32(self.shift), sizes)
        return first | self.low[self._positions(buckets)]

    def columns(self, buckets: slice) -> tuple[UInt32s, UInt32s, UInt8s]:
        """Return the leaves, images and counts of these buckets."""
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
    n_chunks = max(1, n_postings // POSTINGS_PER_CHUNK)
    step = max(1, n_leaves // n_chunks // unit) * unit
    yield from range(0, n_leaves, step)
    yield -(-n_leaves // unit) * unit


def _shift(n_leaves: int, n_postings: int) -> int:
    wanted = n_leaves * POSTINGS_PER_BUCKET / max(n_postings, 1)
    return int(np.clip(np.floor(np.log2(wanted)), 0, MOST_BITS)) if wanted > 1 else 0


@dataclass(frozen=True)
class Words:
    """The leaves of a query.

    Parameters
    ----------
    leaves : ndarray of shape (n,), uint32
        Different leaves of all trees, ascending.
    times : ndarray of shape (n,), uint32
        Number of subwindows in each.
    """

    leaves: UInt32s
    times: UInt32s

    @classmethod
    def count(cls, leaves: UInt32s) -> "Words":
        """Count leaves."""
        different, times = np.unique(leaves, return_counts=True)
        return cls(different, times.astype(np.uint32))

    def times_of(self, leaves: UInt32s) -> UInt64s:
        """Return how often each of these leaves is reached."""
        if len(self.leaves) == 0:
            return np.zeros(len(leaves), dtype=np.uint64)
        where = np.minimum(np.searchsorted(self.leaves, leaves), len(self.leaves) - 1)
        return np.where(self.leaves[where] == leaves, self.times[where], 0).astype(np.uint64)

    def n_used(self, sizes: UInt64s) -> int:
        """Return the number of pairs of a tree and a subwindow whose leaf is not empty."""
        return int(self.times[sizes > 0].sum(dtype=np.uint64))


class Lookup:
    """The postings of a query in the segments of an index.

    Parameters
    ----------
    postings : list of Postings
        The postings of each segment.
    removed : list of ndarray of bool
        Which images of each segment are removed; empty if none is.
    starts : ndarray of shape (n_segments + 1,)
        Where the images of each segment begin among all images.
    leaves : ndarray of shape (n,), uint32
        Leaves, ascending.
    """

    def __init__(
        self,
        postings: Sequence[Postings],
        removed: Sequence[Booleans],
        starts: npt.NDArray[np.intp],
        leaves: UInt32s,
    ):
        self.starts = starts
        self.found = [one.find(leaves) for one in postings]
        self.sizes: UInt64s = np.zeros(len(leaves), dtype=np.uint64)
        for found, mask in zip(self.found, removed, strict=True):
            found.add_sizes(mask, self.sizes)

    def scores(self, words: Words, sizes: UInt64s) -> Floats:
        """Return the scores of all images, including removed ones.

        ``sizes`` are the sizes of the leaves in all indexes that are searched together.
        """
        scores = np.zeros(int(self.starts[-1]))
        for (begin, end), found in zip(pairwise(self.starts), self.found, strict=True):
            found.add_scores(words.times, sizes, scores[begin:end])
        n_used = words.n_used(sizes)
        if n_used:
            scores /= n_used
        return scores


def rank(
    scores: Floats, keys: UInt64s, allowed: Booleans, k: int, random_state: int
) -> npt.NDArray[np.intp]:
    """Return the positions of the largest scores among those allowed, the largest first.

    Ties are broken at random: by a hash of the name and the seed.
    """
    positions = np.flatnonzero(allowed)
    values = scores[positions]
    if k < len(positions):
        least = np.partition(values, len(values) - k)[len(values) - k]
        positions = positions[values >= least]
        values = scores[positions]
    order = np.lexsort((mix(keys[positions], random_state), -values))
    return positions[order[:k]]


def mix(keys: UInt64s, seed: int) -> UInt64s:
    """Return numbers that look random, one for each key, another set for each seed (SplitMix64)."""
    z = keys + np.uint64((seed + 1) * GAMMA % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@dataclass(frozen=True)
class Explanation:
    """The pairs of subwindows that a score is made of.

    Parameters
    ----------
    score : float
        The score of the hit: the sum over all pairs.
    query_boxes, hit_boxes : ndarray of shape (n, 3), int32
        Upper left row and column, and side, of the subwindows of each pair.
    weights : ndarray of shape (n,)
        What each pair adds to the score, the largest first.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_digits
    >>> from okforest.retrieval import SubwindowIndex
    >>> images = (load_digits().images[:4] * 15).astype("uint8")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index = SubwindowIndex.build(f"{folder}/index", images, names=list("abcd"))
    ...     hit = index.search(images[3], k=1)[0]
    ...     explanation = index.explain(images[3], hit, hit_picture=images[3])
    >>> explanation.query_boxes.shape == explanation.hit_boxes.shape
    True
    """

    score: float
    query_boxes: Ints
    hit_boxes: Ints
    weights: Floats


def explain_pair(
    query: Reached, hit: Reached, leaves: UInt32s, sizes: UInt64s, n_used: int, k: int
) -> Explanation:
    """Return the k pairs of subwindows with the largest weights.

    ``leaves`` are all leaves of the query, ascending, and ``sizes`` their sizes.
    """
    pairs, weights = [], []
    for t in range(query.leaves.shape[1]):
        mine, its = query.leaves[:, t], hit.leaves[:, t]
        order = np.argsort(its, kind="stable")
        begin = np.searchsorted(its, mine, side="left", sorter=order)
        n_shared = np.searchsorted(its, mine, side="right", sorter=order) - begin
        q = np.repeat(np.arange(len(mine)), n_shared)
        first = np.cumsum(n_shared) - n_shared
        h = order[np.repeat(begin - first, n_shared) + np.arange(len(q))]
        size = sizes[np.searchsorted(leaves, mine[q])].astype(np.float64)
        pairs.append(q * len(its) + h)
        weights.append(1.0 / (size * n_used))
    pair, position = np.unique(np.concatenate(pairs), return_inverse=True)
    weight: Floats = np.zeros(len(pair))
    np.add.at(weight, position, np.concatenate(weights))
    best = np.argsort(-weight, kind="stable")[:k]
    q, h = np.divmod(pair[best], len(hit.squares))
    return Explanation(float(weight.sum()), query.squares[q], hit.squares[h], weight[best])
