"""Scores of images, S(q, i) = mean over trees and query subwindows of count(i, leaf) / size(leaf).

Counts and sizes are integers. The terms of an image are added in the order of leaves, whatever
segment or index the image is in: the same images have the same scores, to the last bit, in one
segment, in several, and in several indexes that share a vocabulary.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from okforest._utils.arrays import Booleans, Floats
from okforest.engine import FoundPostings
from okforest.retrieval._postings import UInt32s, UInt64s
from okforest.retrieval._store import Snapshot

GAMMA = 0x9E3779B97F4A7C15


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
        ascending = np.sort(leaves, axis=None)
        first = np.flatnonzero(ascending[1:] != ascending[:-1]) + 1
        bounds = np.concatenate([[0], first, [len(ascending)]])
        return cls(ascending[bounds[:-1]], np.diff(bounds).astype(np.uint32))

    def times_of(self, leaves: UInt32s) -> UInt64s:
        """Return how often each of some leaves is reached."""
        if len(self.leaves) == 0:
            return np.zeros(len(leaves), dtype=np.uint64)
        where = np.minimum(np.searchsorted(self.leaves, leaves), len(self.leaves) - 1)
        return np.where(self.leaves[where] == leaves, self.times[where], 0).astype(np.uint64)

    def n_used(self, sizes: UInt64s) -> int:
        """Return the number of pairs of a tree and a subwindow whose leaf is not empty."""
        return int(self.times[sizes > 0].sum(dtype=np.uint64))


class Lookup:
    """The postings of a query in a snapshot.

    Parameters
    ----------
    snapshot : Snapshot
        The index.
    leaves : ndarray of shape (n,), uint32
        Leaves, ascending.
    """

    def __init__(self, snapshot: Snapshot, leaves: UInt32s):
        self.snapshot = snapshot
        self.found: list[FoundPostings] = [
            segment.postings.find(leaves) for segment in snapshot.segments
        ]
        self.sizes: UInt64s = np.zeros(len(leaves), dtype=np.uint64)
        for found, removed in zip(self.found, snapshot.removed, strict=True):
            found.add_sizes(removed, self.sizes)

    def scores(self, words: Words, sizes: UInt64s) -> Floats:
        """Return the scores of all images of the snapshot, removed ones included.

        ``sizes`` are those of the leaves in all indexes that are searched together.
        """
        snapshot = self.snapshot
        scores = np.zeros(int(snapshot.starts[-1]))
        for s, found in enumerate(self.found):
            part = scores[snapshot.starts[s] : snapshot.starts[s + 1]]
            found.add_scores(words.times, sizes, part)
        n_used = words.n_used(sizes)
        if n_used:
            scores /= n_used
        return scores


def rank(
    scores: Floats, keys: UInt64s, allowed: Booleans, top: int, random_state: int
) -> npt.NDArray[np.intp]:
    """Return the positions of the largest scores among those allowed, the largest first.

    Ties are broken at random: by a hash of the name and the seed.
    """
    positions = np.flatnonzero(allowed)
    values = scores[positions]
    if top < len(positions):
        least = np.partition(values, len(values) - top)[len(values) - top]
        positions = positions[values >= least]
        values = scores[positions]
    order = np.lexsort((mix(keys[positions], random_state), -values))
    return positions[order[:top]]


def mix(keys: UInt64s, seed: int) -> UInt64s:
    """Return numbers that look random, one for each key, another set for each seed (SplitMix64)."""
    z = keys + np.uint64((seed + 1) * GAMMA % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
