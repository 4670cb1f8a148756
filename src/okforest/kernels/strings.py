"""Kernels on strings and other sequences of symbols."""

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.compat import Interval, StrOptions
from okforest._utils.distinct import distinct
from okforest._utils.errors import warn
from okforest._utils.parameters import COUNT, POSITIVE, check_parameters
from okforest.kernels.base import OutputKernel
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


def _warn_if_short(y: Outputs, length: int, remedy: str = "a smaller length") -> None:
    """Warn if many different sequences have fewer symbols: the kernel is 0 on all."""
    short = [sequence for sequence in y if len(sequence) < length]
    if len(short) > MANY_SHORT * len(y) and len(set(short)) > 1:
        warn(
            f"{len(short)} of {len(y)} outputs, such as {short[0]!r}, have fewer than "
            f"length={length} symbols. The kernel is 0 for them, so that a model cannot tell them "
            f"apart; use {remedy}.",
            UserWarning,
        )


class Spectrum(SequenceKernel):
    """The number of common k-mers, subsequences of k adjacent symbols, counted with repetition.

    A sequence of less than k symbols, such as an empty string, has no k-mers: its kernel is 0, and
    so is its cosine similarity by :class:`Normalized`.

    Parameters
    ----------
    length : int, default=3
        The number k of symbols.
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
    >>> kernel = Spectrum(length=2)
    >>> kernel(kernel.check(["banana", "ananas", "b"]))
    array([[9., 8., 0.],
           [8., 9., 0.],
           [0., 0., 0.]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "length": [COUNT],
        "boundaries": ["boolean"],
    }

    def __init__(
        self, length: int = 3, boundaries: bool = False, vocabulary: list[Kmer] | None = None
    ):
        self.length = length
        self.boundaries = boundaries
        self.vocabulary = vocabulary

    def resolve(self, y: Outputs) -> Self:
        """Fill in the k-mers."""
        check_parameters(self)
        if self.vocabulary is not None:
            return self
        if not self.boundaries:
            _warn_if_short(y, self.length, "boundaries=True, or a smaller length")
        found = sorted_kmers(different_kmers(y, self.length, self.boundaries))
        return type(self)(**self.get_params(deep=False) | {"vocabulary": found})

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        counts = self._counts(y if z is None else np.concatenate([y, z]))
        second = counts if z is None else counts[len(y) :]
        return np.asarray((counts[: len(y)] @ second.T).toarray())

    def diag(self, y: Outputs) -> Floats:
        """Return k(y_i, y_i)."""
        return np.asarray(self._counts(y).power(2).sum(axis=1), dtype=np.float64).ravel()

    def feature_dim(self, y: Outputs) -> int:
        """Return the number of k-mers of the training outputs."""
        return len(self.resolve(y).vocabulary or [])

    def features(self, y: Outputs) -> Floats:
        """Return how often each output has each k-mer of the training outputs."""
        known = self.vocabulary if self.vocabulary is not None else self.resolve(y).vocabulary
        column = {kmer: j for j, kmer in enumerate(known or [])}
        found = different_kmers(y, self.length, self.boundaries)
        pairs = [(i, column[kmer]) for i, kmer in enumerate(found) if kmer in column]
        features = np.zeros((len(y), len(column)))
        if pairs:
            own, columns = np.array(pairs).T
            features[:, columns] = self._counts(y)[:, own].toarray()
        return features

    def _counts(self, y: Outputs) -> sp.csr_array:
        return count_kmers(y, self.length, self.boundaries)


class Mismatch(SequenceKernel):
    """The number of common k-mers, where a k-mer counts for all that differ in at most m symbols.

    If there are few words of k symbols, as in DNA, the k-mers near each word are counted, once for
    every sequence. Else the cost is the product of the lengths, for every pair of sequences.

    Parameters
    ----------
    length : int, default=3
        The number k of symbols.
    mismatches : int, default=1
        The largest number m of different symbols.
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
    >>> kernel = Mismatch(length=2, mismatches=1, alphabet=["a", "b"])
    >>> kernel(kernel.check(["aa", "ab", "bb"]))
    array([[3., 2., 2.],
           [2., 3., 2.],
           [2., 2., 3.]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "length": [COUNT],
        "mismatches": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(self, length: int = 3, mismatches: int = 1, alphabet: list[Any] | None = None):
        self.length = length
        self.mismatches = mismatches
        self.alphabet = alphabet

    def resolve(self, y: Outputs) -> Self:
        """Fill in the alphabet."""
        check_parameters(self)
        if self.mismatches >= self.length:
            raise ValueError(
                f"Mismatch got mismatches={self.mismatches!r} with length={self.length!r}; use "
                "fewer mismatches than symbols."
            )
        _warn_if_short(y, self.length)
        if self.alphabet is not None:
            return self
        return type(self)(self.length, self.mismatches, _symbols(y))

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        z = y if z is None else z
        alphabet = self.alphabet if self.alphabet is not None else _symbols([*y, *z])
        return mismatch(y, z, self.length, self.mismatches, alphabet)


def _symbols(sequences: Iterable[Any]) -> list[Any]:
    """Return the different symbols, in an order that does not depend on hashes."""
    return sorted({symbol for sequence in sequences for symbol in sequence}, key=str)


class GapWeighted(SequenceKernel):
    """Common subsequences of k symbols with gaps, each weighted by ``decay`` to its length.

    The length of an occurrence is that from its first to its last symbol, so that gaps reduce its
    weight. The cost is k times the product of the lengths, for every pair of sequences.

    Parameters
    ----------
    length : int, default=2
        The number k of symbols of a subsequence.
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
    >>> kernel = GapWeighted(length=2, decay=0.5)
    >>> kernel(kernel.check(["cat", "car"]))
    array([[0.140625, 0.0625  ],
           [0.0625  , 0.140625]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "length": [COUNT],
        "decay": [Interval(Real, 0, 1, closed="right")],
    }

    def __init__(self, length: int = 2, decay: float = 0.5):
        self.length = length
        self.decay = decay

    def resolve(self, y: Outputs) -> Self:
        """Check the parameters."""
        check_parameters(self)
        _warn_if_short(y, self.length)
        return self

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        return gap_weighted(y, y if z is None else z, self.length, self.decay)


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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "sigma": [POSITIVE, StrOptions({"median"})],
        "n_landmarks": [COUNT],
    }

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
        check_parameters(self)
        landmarks, sigma = self.landmarks, self.sigma
        if landmarks is None:
            different = y[distinct(y).first]
            n = min(len(different), self.n_landmarks)
            landmarks = different[np.linspace(0, len(different) - 1, n).astype(int)]
        if isinstance(sigma, str):
            d = edit_distances(landmarks, landmarks)
            between = _squares(d, d)[np.triu_indices(len(d), k=1)] / len(landmarks)
            between = between[between > 0]
            sigma = float(np.sqrt(np.median(between))) if len(between) else 1.0
        return type(self)(sigma, self.n_landmarks, landmarks)

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        first = self._distances(y)
        squares = _squares(first, first if z is None else self._distances(z))
        return np.exp(squares / (-2.0 * float(self.sigma) ** 2 * first.shape[1]))

    def diag(self, y: Outputs) -> Floats:
        """Return ones."""
        return np.ones(len(y))

    def _distances(self, y: Outputs) -> Floats:
        if self.landmarks is None:
            raise ValueError(
                "EditDistance learns its landmarks from the training outputs; fit a model with it, "
                "or call resolve(y) first."
            )
        return edit_distances(y, self.landmarks)


def _squares(a: Floats, b: Floats) -> Floats:
    squares = np.add.outer((a**2).sum(axis=1), (b**2).sum(axis=1)) - 2.0 * a @ b.T
    return np.maximum(squares, 0.0)
