"""Kernels on strings and other sequences of symbols."""

from collections.abc import Iterable
from math import comb
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.distinct import distinct
from okforest._utils.errors import warn
from okforest.kernels.base import OutputKernel
from okforest.kernels.curves import check_count
from okforest.kernels.sequences import (
    Kmer,
    count_kmers,
    different_kmers,
    edit_distances,
    gap_weighted,
    mismatch,
    read_sequences,
    sorted_kmers,
)

MANY_SHORT = 0.1  # of the outputs, from which there is a warning


class SequenceKernel(OutputKernel):
    """A kernel on strings, or on tuples of symbols.

    Examples
    --------
    >>> from okforest.kernels import SequenceKernel, Spectrum
    >>> isinstance(Spectrum(), SequenceKernel)
    True
    """

    known_psd = True

    def check(self, y: Any) -> Outputs:
        """Return strings as they are, and other sequences as an array of tuples."""
        return read_sequences(y)


def _warn_if_short(y: Outputs, k: int, remedy: str = "a smaller k") -> None:
    """Warn if many different sequences have fewer than k symbols: the kernel is 0 on all."""
    short = [sequence for sequence in y if len(sequence) < k]
    if len(short) > MANY_SHORT * len(y) and len(set(short)) > 1:
        warn(
            f"{len(short)} of {len(y)} outputs, such as {short[0]!r}, have fewer than k={k} "
            f"symbols. The kernel is 0 for them, so that a model cannot tell them apart; use "
            f"{remedy}.",
            UserWarning,
        )


class Spectrum(SequenceKernel):
    """The number of common k-mers, subsequences of k adjacent symbols, counted with repetition.

    A sequence of less than k symbols, such as an empty string, has no k-mers: its kernel is 0, and
    so is its cosine similarity by :class:`Normalized`.

    Parameters
    ----------
    k : int, default=3
        The number of symbols.
    boundaries : bool, default=False
        Whether to count the k-mers over the ends as well, with a mark for what is beyond them. They
        tell how a sequence begins and ends; every sequence then has k-mers.
    vocabulary : list of tuples, optional
        The k-mers of the training outputs; filled in when a model is fitted.

    See Also
    --------
    okforest.decode.EulerianPath : Puts predicted k-mers together.

    References
    ----------
    C. Leslie, E. Eskin, W. Noble, "The spectrum kernel", PSB 2002.

    Examples
    --------
    >>> from okforest.kernels import Spectrum
    >>> kernel = Spectrum(k=2)
    >>> kernel(kernel.check(["banana", "ananas", "b"]))
    array([[9., 8., 0.],
           [8., 9., 0.],
           [0., 0., 0.]])
    """

    def __init__(self, k: int = 3, boundaries: bool = False, vocabulary: list[Kmer] | None = None):
        self.k = k
        self.boundaries = boundaries
        self.vocabulary = vocabulary

    def resolve(self, y: Outputs) -> Self:
        """Fill in the k-mers."""
        check_count("k", self.k, 1)
        if self.vocabulary is not None:
            return self
        if not self.boundaries:
            _warn_if_short(y, self.k, "boundaries=True, or a smaller k")
        found = sorted_kmers(different_kmers(y, self.k, self.boundaries))
        return type(self)(**self.get_params(deep=False) | {"vocabulary": found})

    def __call__(self, a: Outputs, b: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        counts = self._counts(a if b is None else np.concatenate([a, b]))
        second = counts if b is None else counts[len(a) :]
        return np.asarray((counts[: len(a)] @ second.T).toarray())

    def diag(self, a: Outputs) -> Floats:
        """Return k(a_i, a_i)."""
        return np.asarray(self._counts(a).power(2).sum(axis=1), dtype=np.float64).ravel()

    def feature_dim(self, y: Outputs) -> int:
        """Return the number of k-mers of the training outputs."""
        return len(self.resolve(y).vocabulary or [])

    def features(self, a: Outputs) -> Floats:
        """Return how often each output has each k-mer of the training outputs."""
        known = self.vocabulary if self.vocabulary is not None else self.resolve(a).vocabulary
        column = {kmer: j for j, kmer in enumerate(known or [])}
        found = different_kmers(a, self.k, self.boundaries)
        pairs = [(i, column[kmer]) for i, kmer in enumerate(found) if kmer in column]
        features = np.zeros((len(a), len(column)))
        if pairs:
            own, columns = np.array(pairs).T
            features[:, columns] = self._counts(a)[:, own].toarray()
        return features

    def _counts(self, a: Outputs) -> sp.csr_array:
        return count_kmers(a, self.k, self.boundaries)


class Mismatch(SequenceKernel):
    """The number of common k-mers, where a k-mer counts for all that differ in at most m symbols.

    The cost is the product of the lengths, for every pair of sequences.

    Parameters
    ----------
    k : int, default=3
        The number of symbols.
    m : int, default=1
        The largest number of different symbols.
    alphabet : list, optional
        All symbols; by default those of the training outputs, filled in when a model is fitted. The
        kernel depends on their number. K-mers with another symbol are not counted.

    References
    ----------
    C. Leslie, E. Eskin, A. Cohen, J. Weston, W. Noble, "Mismatch string kernels for discriminative
    protein classification", Bioinformatics 20 (2004).

    Examples
    --------
    >>> from okforest.kernels import Mismatch
    >>> kernel = Mismatch(k=2, m=1, alphabet=["a", "b"])
    >>> kernel(kernel.check(["aa", "ab", "bb"]))
    array([[3., 2., 2.],
           [2., 3., 2.],
           [2., 2., 3.]])
    """

    def __init__(self, k: int = 3, m: int = 1, alphabet: list[Any] | None = None):
        self.k = k
        self.m = m
        self.alphabet = alphabet

    def resolve(self, y: Outputs) -> Self:
        """Fill in the alphabet."""
        check_count("k", self.k, 1)
        check_count("m", self.m, 0)
        if self.m >= self.k:
            raise ValueError(f"m={self.m!r} with k={self.k!r}; use an m below k.")
        _warn_if_short(y, self.k)
        if self.alphabet is not None:
            return self
        return type(self)(self.k, self.m, _symbols(y))

    def __call__(self, a: Outputs, b: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        b = a if b is None else b
        alphabet = self.alphabet if self.alphabet is not None else _symbols([*a, *b])
        common = [_common(d, self.k, self.m, len(alphabet)) for d in range(self.k + 1)]
        return mismatch(a, b, self.k, np.array(common, dtype=np.float64), alphabet)


def _symbols(sequences: Iterable[Any]) -> list[Any]:
    """Return the different symbols, in an order that does not depend on hashes."""
    return sorted({symbol for sequence in sequences for symbol in sequence}, key=str)


def _common(d: int, k: int, m: int, size: int) -> int:
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


class GapWeighted(SequenceKernel):
    """Common subsequences of k symbols with gaps, each weighted by ``decay`` to its length.

    The length of an occurrence is that from its first to its last symbol, so that gaps reduce its
    weight. The cost is k times the product of the lengths, for every pair of sequences.

    Parameters
    ----------
    k : int, default=2
        The number of symbols of a subsequence.
    decay : float, default=0.5
        The weight of every symbol that an occurrence spans, between 0 and 1.

    References
    ----------
    H. Lodhi, C. Saunders, J. Shawe-Taylor, N. Cristianini, C. Watkins, "Text classification using
    string kernels", Journal of Machine Learning Research 2 (2002).

    Examples
    --------
    "cat" and "car" share "ca", of length 2 in both; "ct" and "cr" differ:

    >>> from okforest.kernels import GapWeighted
    >>> kernel = GapWeighted(k=2, decay=0.5)
    >>> kernel(kernel.check(["cat", "car"]))
    array([[0.140625, 0.0625  ],
           [0.0625  , 0.140625]])
    """

    def __init__(self, k: int = 2, decay: float = 0.5):
        self.k = k
        self.decay = decay

    def resolve(self, y: Outputs) -> Self:
        """Check the parameters."""
        check_count("k", self.k, 1)
        if not 0 < self.decay <= 1:
            raise ValueError(f"decay={self.decay!r}; use a number above 0 and at most 1.")
        _warn_if_short(y, self.k)
        return self

    def __call__(self, a: Outputs, b: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        return gap_weighted(a, a if b is None else b, self.k, self.decay)


class EditDistance(SequenceKernel):
    """exp(−‖d − d'‖² / 2σ²), with d the edit distances of a sequence to some landmarks.

    A function of the edit distance of two sequences alone is not positive semi-definite in general.
    Sequences are therefore described by their distances to landmarks, divided by the square root of
    the number of landmarks.

    Parameters
    ----------
    sigma : float or "median", default="median"
        The width σ; "median" is the median distance ‖d − d'‖ between landmarks.
    n_landmarks : int, default=64
        The number of landmarks, evenly spaced among the different training outputs.
    landmarks : ndarray, optional
        The landmarks; filled in when a model is fitted.

    Examples
    --------
    >>> from okforest.kernels import EditDistance
    >>> kernel = EditDistance(sigma=1.0)
    >>> y = kernel.check(["tree", "three", "forest"])
    >>> kernel.resolve(y)(y).round(3)
    array([[1.   , 0.717, 0.001],
           [0.717, 1.   , 0.001],
           [0.001, 0.001, 1.   ]])
    """

    def __init__(
        self,
        sigma: float | Literal["median"] = "median",
        n_landmarks: int = 64,
        landmarks: Outputs | None = None,
    ):
        self.sigma = sigma
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks

    def resolve(self, y: Outputs) -> Self:
        """Fill in the landmarks and the width."""
        check_count("n_landmarks", self.n_landmarks, 1)
        landmarks, sigma = self.landmarks, self.sigma
        if landmarks is None:
            different = y[distinct(y).first]
            n = min(len(different), self.n_landmarks)
            landmarks = different[np.linspace(0, len(different) - 1, n).astype(int)]
        if isinstance(sigma, str) and sigma == "median":
            d = edit_distances(landmarks, landmarks)
            between = _squares(d, d)[np.triu_indices(len(d), k=1)] / len(landmarks)
            between = between[between > 0]
            sigma = float(np.sqrt(np.median(between))) if len(between) else 1.0
        if isinstance(sigma, str) or not 0 < sigma < np.inf:
            raise ValueError(f"sigma={sigma!r}; use a positive number or 'median'.")
        return type(self)(sigma, self.n_landmarks, landmarks)

    def __call__(self, a: Outputs, b: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        first = self._distances(a)
        squares = _squares(first, first if b is None else self._distances(b))
        return np.exp(squares / (-2.0 * float(self.sigma) ** 2 * first.shape[1]))

    def diag(self, a: Outputs) -> Floats:
        """Return ones."""
        return np.ones(len(a))

    def _distances(self, a: Outputs) -> Floats:
        if self.landmarks is None:
            raise ValueError(
                "EditDistance learns its landmarks from the training outputs; fit a model with it, "
                "or call resolve(y) first."
            )
        return edit_distances(a, self.landmarks)


def _squares(a: Floats, b: Floats) -> Floats:
    squares = np.add.outer((a**2).sum(axis=1), (b**2).sum(axis=1)) - 2.0 * a @ b.T
    return np.maximum(squares, 0.0)
