"""The contract of a segmenter, and what segmenters share."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone

from okforest._utils.arrays import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Objects in canonical form: a list, or a sequence whose slices are lists that are read when needed.
Objects = Sequence[Any]

MEANS = "mean over segments"  # the label of the colours of a plot


@dataclass(frozen=True)
class Segments:
    """Segments of some objects.

    Parameters
    ----------
    values : ndarray of shape (n, p), uint8 or float32
        The features of the segments, object by object.
    offsets : ndarray of shape (n_objects + 1,)
        Where the segments of each object begin.
    places : ndarray of shape (n, k), int32
        Where each segment lies in its object; the segmenter documents the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.segments import Segments
    >>> two_objects = Segments(
    ...     values=np.zeros((5, 3), np.float32),
    ...     offsets=np.array([0, 2, 5]),  # two segments, then three
    ...     places=np.array([[0], [1], [0], [1], [2]], np.int32),
    ... )
    >>> two_objects.values.shape
    (5, 3)
    """

    values: npt.NDArray[Any]
    offsets: npt.NDArray[np.intp]
    places: Ints

    @property
    def owner(self) -> npt.NDArray[np.intp]:
        """The object of each segment."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


class Segmenter(ABC, BaseEstimator):
    """Cuts objects into segments of a fixed number of features.

    To add a segmenter, subclass it and write :meth:`check`, :meth:`cut` and :meth:`spread`.
    Parameters are the arguments of ``__init__``, stored unchanged; they can be searched as
    ``segmenter__n_segments``. What it learns from the training objects, such as an alphabet,
    :meth:`resolve` stores in attributes whose names end in an underscore.

    Attributes
    ----------
    tabular : bool
        Whether the rows of a numeric array with two axes are objects.

    Examples
    --------
    >>> from okforest.segments import RandomSubwindows, Segmenter
    >>> isinstance(RandomSubwindows(20), Segmenter)
    True
    >>> RandomSubwindows(20).get_params()["n_segments"]
    20
    """

    tabular: bool = False
    n_segments: Any

    @abstractmethod
    def check(self, X: Any) -> Objects:
        """Return objects in canonical form.

        Parameters
        ----------
        X : array-like, list or other collection
            Objects, as users pass them.

        Returns
        -------
        objects : sequence
            One entry per object. A slice of it is a list.
        """

    def resolve(self, objects: Objects) -> "Segmenter":
        """Return a copy that has learnt what it needs from the training objects.

        Parameters
        ----------
        objects : sequence
            Objects in canonical form.

        Returns
        -------
        segmenter : Segmenter
            The copy.
        """
        return clone(self)

    def count(self, objects: Objects) -> int:
        """Return the number of segments of all objects.

        Parameters
        ----------
        objects : sequence
            Objects in canonical form.

        Returns
        -------
        n : int
            By default ``n_segments`` for each object.
        """
        return len(objects) * int(self.n_segments)

    @abstractmethod
    def cut(self, objects: Objects, seed: int = 0, n_threads: int = 1) -> Segments:
        """Cut objects into segments.

        Parameters
        ----------
        objects : list
            Objects in canonical form.
        seed : int, default=0
            The seed. The segments of an object depend on it and on the object alone.
        n_threads : int, default=1
            Number of threads; it does not change the result.

        Returns
        -------
        segments : Segments
            The segments, object by object.
        """

    @abstractmethod
    def spread(self, item: Any, places: Ints, values: Floats) -> Floats:
        """Return the mean over the segments that cover each part of an object.

        Parameters
        ----------
        item : object
            An object in canonical form.
        places : ndarray of shape (n, k), int32
            Where its segments lie.
        values : ndarray of shape (n, q)
            Values of the segments.

        Returns
        -------
        means : ndarray of shape (..., q)
            A value for each pixel, time, letter or vertex; NaN where no segment is.
        """

    def plot(self, item: Any, means: Floats, ax: "Axes") -> None:
        """Draw an object with a value for each of its parts.

        Parameters
        ----------
        item : object
            An object in canonical form.
        means : ndarray
            One value for each pixel, time, letter or vertex.
        ax : matplotlib Axes
            Where to draw.
        """
        raise TypeError(f"{type(self).__name__} has no plot; use the values of evidence().")


def mean_of(sums: Floats, counts: Floats) -> Floats:
    """Return sums divided by counts, NaN where there are none."""
    n = counts[..., None]
    return np.divide(sums, n, out=np.full_like(sums, np.nan), where=n > 0)


def some_of_each(owner: Any, k: int) -> Any:
    """Return the positions of at most k segments of each object, spread evenly."""
    ends = np.append(np.flatnonzero(np.diff(owner)) + 1, len(owner))
    begins = np.append(0, ends[:-1])
    places = [np.linspace(a, b - 1, min(k, b - a)) for a, b in zip(begins, ends, strict=True)]
    return np.concatenate(places).astype(np.intp)


def check_range(owner: Any, name: str) -> None:
    """Check that a parameter is a pair of fractions, 0 < low <= high <= 1."""
    value = getattr(owner, name)
    pair = isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2
    if not pair or not all(isinstance(end, Real) for end in value):
        raise ValueError(f"{name}={value!r} of {type(owner).__name__}; expected two numbers.")
    if not 0.0 < value[0] <= value[1] <= 1.0:
        raise ValueError(
            f"{name}={value!r} of {type(owner).__name__}; expected 0 < low <= high <= 1."
        )


Seeds = npt.NDArray[np.uint64]

GAMMA = 0x9E3779B97F4A7C15


def content_seed(seed: int, parts: Iterable[npt.NDArray[np.generic] | bytes]) -> int:
    """Return a hash of the seed and the content of an object, 64 bits."""
    digest = blake2b(digest_size=8, key=int(seed).to_bytes(8, "little"))
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype.str}{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(part)
    return int.from_bytes(digest.digest(), "little")


def uniforms(seeds: Seeds, n_segments: int, n_draws: int) -> Floats:
    """Return numbers in [0, 1), shape (n_objects, n_segments, n_draws), by SplitMix64.

    The first segments of an object are the same for any number of segments.
    """
    counter = np.arange(1, n_segments * n_draws + 1, dtype=np.uint64)
    z = seeds[:, None] + counter * np.uint64(GAMMA)  # wraps around, as it should
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    z >>= np.uint64(11)
    return (z * 2.0**-53).reshape(len(seeds), n_segments, n_draws)


def below(u: Floats, n: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Turn numbers u in [0, 1) into integers from 0 to n − 1."""
    return (u * n).astype(np.intp)


def as_table(X: Any) -> Any:
    """Return a list of lists of numbers, all of one length, as an array, and anything else as is.

    Lists that only look like one, such as pairs of arrays, are left to the segmenter.
    """
    if hasattr(X, "__array__"):
        return X if hasattr(X, "shape") else np.asarray(X)
    if not isinstance(X, list | tuple) or not all(isinstance(row, list | tuple) for row in X):
        return X
    if len({len(row) for row in X}) != 1:
        return X
    try:
        return np.asarray(X)
    except ValueError:  # entries of different shapes
        return X


def is_vector(X: Any) -> bool:
    """Return whether X is a vector of numbers, for which scikit-learn has an error."""
    return len(getattr(X, "shape", ())) == 1 and np.asarray(X).dtype.kind in "buifc"


def listed(X: Any, kind: str) -> list[Any]:
    """Return objects as a list, or raise a ValueError that names the expected form."""
    try:
        return list(X)
    except TypeError:
        raise ValueError(f"X is of type {type(X).__name__}; expected a list of {kind}.") from None
