"""Sequences of symbols or numbers: reading them, k-mers, and comparisons of all pairs."""

from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import chain
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._utils.arrays import Floats, Outputs
from okforest.kernels.outputs import array_of_objects, check_collection, is_missing, refuse_missing

END = None  # what k-mers have beyond the ends of a sequence
Kmer = tuple[Any, ...]
MOST_COUNTS = 2**22  # sequences times words, of which all counts are kept
Ragged = tuple[npt.NDArray[Any], npt.NDArray[np.int64]]  # values, and where each sequence begins


def read_sequences(y: Any) -> Outputs:
    """Return strings as they are, and other sequences as an array of tuples."""
    y = check_collection(y)
    values = y if isinstance(y, np.ndarray) and y.ndim == 1 else list(y)
    if isinstance(values, np.ndarray) and values.dtype.kind == "U":
        return values
    kinds = {isinstance(value, str) for value in values}
    if len(kinds) > 1:
        other = next(value for value in values if not isinstance(value, str))
        refuse_missing(other)
        raise ValueError(
            f"y mixes strings and other values, such as {other!r}; pass strings, or tuples of "
            "symbols."
        )
    if kinds == {True}:
        return array_of_objects([str(value) for value in values])
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 0:
        raise ValueError(
            f"y has shape {y.shape}, so no sequence has a symbol; pass strings, or sequences of "
            "symbols such as ('a', 'b')."
        )
    for value in values:
        refuse_missing(value)
        if not isinstance(value, tuple | list | np.ndarray):
            raise ValueError(
                f"y holds {value!r}; pass strings, or sequences of symbols such as ('a', 'b')."
            )
    plain = [value.tolist() if isinstance(value, np.ndarray) else value for value in values]
    for i, sequence in enumerate(plain):
        missing = next((symbol for symbol in sequence if is_missing(symbol)), "")
        if is_missing(missing):
            raise ValueError(
                f"y[{i}] holds {missing!r}, a missing symbol; leave missing symbols out of "
                "sequences, or use a symbol of their own, such as '?'."
            )
    return array_of_objects([tuple(value) for value in plain])


def kmers(sequence: Any, k: int, boundaries: bool) -> list[Kmer]:
    """Return the subsequences of k adjacent symbols; with boundaries, also those over the ends."""
    symbols = tuple(sequence)
    if boundaries:
        symbols = (END,) * (k - 1) + symbols + (END,) * (k - 1)
    return [symbols[i : i + k] for i in range(len(symbols) - k + 1)]


def count_kmers(sequences: Outputs, k: int, boundaries: bool) -> sp.csr_array:
    """Return how often each sequence has each k-mer, in the order in which they are found first."""
    numbers, starts = _number_kmers(sequences, k, boundaries)
    shape = (len(sequences), int(numbers.max(initial=-1)) + 1)
    counts = sp.csr_array((np.ones(len(numbers)), numbers, starts), shape=shape)
    counts.sum_duplicates()
    return counts


def different_kmers(sequences: Outputs, k: int, boundaries: bool) -> list[Kmer]:
    """Return the different k-mers of some sequences, in the order in which they are found first."""
    numbers, starts = _number_kmers(sequences, k, boundaries)
    first = np.unique(numbers, return_index=True)[1]
    rows = np.searchsorted(starts, first, side="right") - 1
    places = first - starts[rows] - (k - 1 if boundaries else 0)
    found = []
    for i, place in zip(rows.tolist(), places.tolist(), strict=True):
        before = (END,) * -min(place, 0)
        inside = tuple(sequences[i][max(place, 0) : place + k])
        found.append(before + inside + (END,) * (k - len(before) - len(inside)))
    return found


def sorted_kmers(found: Iterable[Kmer]) -> list[Kmer]:
    """Return k-mers in an order that does not depend on hashes."""
    return sorted(found, key=lambda kmer: tuple((s is not None, str(s)) for s in kmer))


def mismatch(a: Outputs, b: Outputs, k: int, m: int, alphabet: Sequence[Any]) -> Floats:
    """Return the number of common k-mers within m mismatches, for all pairs of sequences.

    K-mers with a symbol that is not in the alphabet are left out. If there are few words of k
    symbols, each sequence counts the k-mers near each of them; else k-mers are compared. The
    result is the same.
    """
    number, size = {symbol: i for i, symbol in enumerate(alphabet)}, len(alphabet)
    groups = [_encode_known(sequences, number) for sequences in ((a,) if b is a else (a, b))]
    n_pairs = len(groups[0][0]) * len(groups[-1][0])
    n_counts = max(len(a), len(b)) * size**k
    if 0 < n_counts <= MOST_COUNTS and _n_steps(len(a), len(b), size**k) < n_pairs:
        near = [_count_near(sequences, k, m, size) for sequences in groups]
        return near[0] @ near[-1].T
    common = np.array([_n_common(d, k, m, size) for d in range(k + 1)], dtype=np.float64)
    return _compiled().mismatch(groups[0], None if b is a else groups[1], k, common)


def _n_steps(n: int, n_others: int, n_words: int) -> int:
    """Return how many comparisons of k-mers take as long as counting words. Measured."""
    return n * n_others * n_words // 16 + 16 * (n + n_others) * n_words


def _count_near(sequences: Ragged, k: int, m: int, size: int) -> Floats:
    """Return how many k-mers of each sequence are within m mismatches of each word."""
    values, starts = sequences
    n, row = len(starts) - 1, np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    windows = np.lib.stride_tricks.sliding_window_view(values, k) if len(values) >= k else None
    if windows is None:
        return np.zeros((n, size**k))
    first, last = row[: len(windows)], row[k - 1 :]
    known = (first == last) & (windows >= 0).all(axis=1)
    words = windows[known] @ size ** np.arange(k)
    counts = np.bincount(first[known] * size**k + words, minlength=n * size**k).astype(np.float64)
    # near[d] counts k-mers with d mismatches at the places so far, any of the other symbols each.
    near = [counts, *(np.zeros_like(counts) for _ in range(m))]
    for place in range(k):
        shape = (-1, size, size**place)
        for d in range(m, 0, -1):
            before, after = near[d - 1].reshape(shape), near[d].reshape(shape)
            after += before.sum(axis=1, keepdims=True)
            after -= before
    return sum(near[1:], near[0]).reshape(n, -1)


def _n_common(d: int, k: int, m: int, size: int) -> int:
    """Count the words within m mismatches of two words at Hamming distance d.

    At the d places where the two differ, i symbols are those of the first word, j those of the
    second; at the others, e symbols differ from both.
    """
    total = 0
    for i in range(d + 1):
        for j in range(d - i + 1):
            others = max(size - 2, 0) ** (d - i - j)
            ways = comb(d, i) * comb(d - i, j) * others
            for e in range(min(m - d + min(i, j), k - d) + 1):
                total += ways * comb(k - d, e) * (size - 1) ** e
    return total


def gap_weighted(a: Outputs, b: Outputs, k: int, decay: float) -> Floats:
    """Return the gap-weighted kernel of common subsequences of k symbols, for all pairs."""
    return _compiled().gap_weighted(*_encode_both(a, b), k, decay)


def edit_distances(a: Outputs, b: Outputs) -> Floats:
    """Return the Levenshtein distances of all pairs."""
    return _compiled().edit_distances(*_encode_both(a, b))


def log_alignments(a: Outputs, b: Outputs, sigma: float) -> Floats:
    """Return the logarithms of sums over all alignments of two curves, for all pairs."""
    others = None if b is a else _join(b, np.float64)
    return _compiled().log_alignments(_join(a, np.float64), others, sigma)


def log_own_alignments(a: Outputs, sigma: float) -> Floats:
    """Return the logarithm of the sum over all alignments of each curve with itself."""
    curves = [_join([curve], np.float64) for curve in a]
    return np.array([_compiled().log_alignments(u, u, sigma)[0, 0] for u in curves])


def _number_kmers(
    sequences: Outputs, k: int, boundaries: bool
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Return the numbers of the k-mers of all sequences, and where those of each begin."""
    numbers, starts = _compiled().number_kmers(*encode(sequences), k, boundaries)
    return numbers, starts


def _encode_both(a: Outputs, b: Outputs) -> tuple[Ragged, Ragged | None]:
    """Return two groups of sequences as integers; None for the second if it is the first."""
    if b is a:
        return encode(a)[0], None
    first, second = encode(a, b)
    return first, second


def encode(*groups: Outputs) -> list[Ragged]:
    """Return the symbols of sequences as integers, equal for equal symbols of all groups."""
    if all(isinstance(sequence, str) for sequences in groups for sequence in sequences):
        return [_code_points(sequences) for sequences in groups]
    codes: dict[Any, int] = {}
    return [
        _join([[codes.setdefault(s, len(codes)) for s in one] for one in sequences], np.int32)
        for sequences in groups
    ]


def _code_points(texts: Outputs) -> Ragged:
    encoded = "".join(texts).encode("utf-32-le", "surrogatepass")
    lengths = [len(text) for text in texts]
    return np.frombuffer(encoded, dtype=np.int32), np.cumsum([0, *lengths], dtype=np.int64)


def _encode_known(sequences: Outputs, number: dict[Any, int]) -> Ragged:
    """Return the numbers of symbols, -1 for others."""
    return _join([[number.get(s, -1) for s in one] for one in sequences], np.int32)


def _join(sequences: Sequence[Any] | Outputs, kind: Any) -> Ragged:
    """Return the values of all sequences, one after the other, and where each sequence begins."""
    values = np.fromiter(chain.from_iterable(sequences), dtype=kind)
    return values, np.cumsum([0, *map(len, sequences)], dtype=np.int64)


def _compiled() -> Any:
    return import_module("okforest._strings")
