"""Strings and other sequences of symbols: reading them, k-mers, and comparisons of all pairs."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._typing import Floats, Ints, Outputs
from okforest.kernels._outputs import array_of_objects, check_collection

END = None  # what k-mers have beyond the ends of a sequence
BLOCK_STEPS = 2**26  # of comparisons of symbols between two chances to hear Ctrl-C
Kmer = tuple[Any, ...]


def read_sequences(y: Any) -> Outputs:
    """Return strings as they are, and other sequences as an array of tuples."""
    y = check_collection(y)
    values = y if isinstance(y, np.ndarray) and y.ndim == 1 else list(y)
    if isinstance(values, np.ndarray) and values.dtype.kind == "U":
        return values
    kinds = {isinstance(value, str) for value in values}
    if len(kinds) > 1:
        raise ValueError("y mixes strings and other values; pass strings, or tuples of symbols.")
    if kinds == {True}:
        return array_of_objects([str(value) for value in values])
    for value in values:
        if not isinstance(value, tuple | list | np.ndarray):
            raise ValueError(
                f"y holds {value!r}; pass strings, or sequences of symbols such as ('a', 'b')."
            )
    plain = [value.tolist() if isinstance(value, np.ndarray) else value for value in values]
    return array_of_objects([tuple(value) for value in plain])


def kmers(sequence: Any, k: int, boundaries: bool) -> list[Kmer]:
    """Return the subsequences of k adjacent symbols; with boundaries, also those over the ends."""
    symbols = tuple(sequence)
    if boundaries:
        symbols = (END,) * (k - 1) + symbols + (END,) * (k - 1)
    return [symbols[i : i + k] for i in range(len(symbols) - k + 1)]


def sorted_kmers(found: set[Kmer]) -> list[Kmer]:
    """Return k-mers in an order that does not depend on hashes."""
    return sorted(found, key=lambda kmer: tuple((s is not None, str(s)) for s in kmer))


def count_kmers(lists: Sequence[Sequence[Kmer]], vocabulary: dict[Kmer, int]) -> sp.csr_array:
    """Return how often each sequence has each k-mer; others are added to the vocabulary."""
    indices: list[int] = []
    starts = [0]
    for own in lists:
        indices.extend(vocabulary.setdefault(kmer, len(vocabulary)) for kmer in own)
        starts.append(len(indices))
    data = np.ones(len(indices))
    counts = sp.csr_array((data, indices, starts), shape=(len(lists), len(vocabulary)))
    counts.sum_duplicates()
    return counts


def gap_weighted(a: Outputs, b: Outputs, k: int, decay: float) -> Floats:
    """Return the gap-weighted kernel of common subsequences of k symbols, for all pairs."""
    return _compare(a, b, lambda u, v: _compiled().gap_weighted(u, v, k, decay), cost=k)


def edit_distances(a: Outputs, b: Outputs) -> Floats:
    """Return the Levenshtein distances of all pairs."""
    return _compare(a, b, lambda u, v: _compiled().edit_distances(u, v), cost=1)


def _compare(a: Outputs, b: Outputs, function: Callable[..., Floats], cost: int) -> Floats:
    """Compare all pairs of sequences, some rows at a time, so that Ctrl-C is heard."""
    codes: dict[Any, int] = {}
    symbols, offsets = _encode(b, codes)
    result = np.empty((len(a), len(b)))
    lengths = np.array([len(sequence) for sequence in a], dtype=np.int64)
    steps = cost * (lengths.max(initial=1) + 1) * (len(symbols) + len(b))
    size = max(1, int(BLOCK_STEPS // steps))
    for begin in range(0, len(a), size):
        rows = slice(begin, begin + size)
        start = begin if b is a else 0  # the rest is known by symmetry
        own = symbols[offsets[start] :], offsets[start:] - offsets[start]
        result[rows, start:] = function(_encode(a[rows], codes), own)
        if b is a:
            result[start:, rows] = result[rows, start:].T
    return result


def _encode(sequences: Outputs, codes: dict[Any, int]) -> tuple[Ints, npt.NDArray[np.int64]]:
    """Return the symbols of all sequences as integers, and where each sequence begins."""
    symbols = [codes.setdefault(s, len(codes)) for sequence in sequences for s in sequence]
    lengths = [len(sequence) for sequence in sequences]
    return np.array(symbols, dtype=np.int32), np.cumsum([0, *lengths], dtype=np.int64)


def _compiled() -> Any:
    return import_module("okforest._strings")
