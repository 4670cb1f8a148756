"""Windows of sequences of letters."""

from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from okforest._utils.arrays import Floats, Ints
from okforest._utils.compat import StrOptions
from okforest._utils.parameters import COUNT, check_parameters
from okforest.segments.base import (
    MEANS,
    Objects,
    Segmenter,
    Segments,
    below,
    content_seed,
    listed,
    uniforms,
)
from okforest.segments.subseries import spread_intervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_COUNTED = 2**16  # k-mers whose numbers are features
LETTERS_PER_LINE = 60
DARK = 0.6  # above this share of the colour range, letters are white


class KmerWindows(Segmenter):
    """Windows of a fixed number of letters of sequences, one-hot or as counts of k-mers.

    Sequences are a list or array of strings of any length, or lists or rows of an array of single
    letters. Numbers are not letters: give each symbol a letter of its own, for example by
    ``"".join(chr(97 + i) for i in sequence)`` for symbols from 0, or cut series of measurements by
    :class:`RandomSubseries`.

    Parameters
    ----------
    length : int, default=6
        Number of letters of a window.
    n_segments : int, optional
        Number of windows per sequence, drawn at random with replacement; by default all windows.
    encoding : {"one_hot", "counts"}, default="one_hot"
        Features of a window: which letter is at each place, or how often each string of ``k``
        letters occurs in it.
    k : int, default=2
        Number of letters of the strings that are counted.
    alphabet : str, optional
        All letters that may occur; by default the letters of the training sequences.
    position : bool, default=True
        Whether the place of the window, from 0 at the beginning of the sequence to 1 at its end, is
        a feature.

    Attributes
    ----------
    alphabet_ : str
        The letters, sorted; set when a model is fitted.

    See Also
    --------
    SegmentClassifier : Classifies sequences by their windows.

    Notes
    -----
    The columns of ``places`` are the first letter of the window and its number of letters.

    Examples
    --------
    >>> from okforest.segments import KmerWindows
    >>> segmenter = KmerWindows(length=2, position=False)
    >>> sequences = segmenter.check(["abba", "baa"])
    >>> segmenter.resolve(sequences).cut(sequences).values
    array([[1, 0, 0, 1],
           [0, 1, 0, 1],
           [0, 1, 1, 0],
           [0, 1, 1, 0],
           [1, 0, 1, 0]], dtype=uint8)
    """

    alphabet_: str

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "length": [COUNT],
        "n_segments": [COUNT, None],
        "encoding": [StrOptions({"one_hot", "counts"})],
        "k": [COUNT],
        "position": ["boolean"],
    }

    def __init__(
        self,
        length: int = 6,
        n_segments: int | None = None,
        *,
        encoding: Literal["one_hot", "counts"] = "one_hot",
        k: int = 2,
        alphabet: str | None = None,
        position: bool = True,
    ):
        self.length = length
        self.n_segments = n_segments
        self.encoding = encoding
        self.k = k
        self.alphabet = alphabet
        self.position = position

    def check(self, X: Any) -> Objects:
        """Return sequences as a list of strings.

        Parameters
        ----------
        X : array-like or list
            Strings, or an array of letters.

        Returns
        -------
        sequences : list of str
            One string per sequence.
        """
        self._check_parameters()
        if isinstance(X, str):
            raise ValueError(f"X is a single string; pass a list of strings: [{X[:20]!r}].")
        if len(getattr(X, "shape", ())) == 2:
            X = np.asarray(X)
        items = listed(X, "strings")
        sequences = [_as_text(item, f"sequence {i}") for i, item in enumerate(items)]
        for i, sequence in enumerate(sequences):
            if len(sequence) < self.length:
                raise ValueError(
                    f"sequence {i} has {len(sequence)} letters, fewer than a window "
                    f"(length={self.length}). Use shorter windows, or leave it out."
                )
            self._check_letters(sequence, i)
        return sequences

    def _check_parameters(self) -> None:
        check_parameters(self)
        if self.encoding == "counts" and self.k > self.length:
            raise ValueError(
                f"k={self.k} is larger than length={self.length}: no window has such a string. "
                f"Set k to at most {self.length}."
            )
        if self.alphabet is not None and not isinstance(self.alphabet, str):
            raise ValueError(
                f"alphabet={self.alphabet!r}; expected a string of all letters, such as 'acgt'."
            )

    def _check_letters(self, sequence: str, i: int) -> None:
        alphabet = getattr(self, "alphabet_", self.alphabet)
        if alphabet is None:
            return
        unknown = sorted(set(sequence) - set(alphabet))
        if unknown:
            raise ValueError(
                f"sequence {i} has the letter {unknown[0]!r}, which is not in the alphabet "
                f"{alphabet!r}. Pass alphabet= with all letters, or replace it in the sequence."
            )

    def resolve(self, objects: Objects) -> "KmerWindows":
        """Return a copy that has learnt the alphabet.

        Parameters
        ----------
        objects : list of str
            The training sequences.

        Returns
        -------
        segmenter : KmerWindows
            The copy.
        """
        resolved: KmerWindows = clone(self)
        letters = set().union(*objects) if self.alphabet is None else set(self.alphabet)
        resolved.alphabet_ = "".join(sorted(letters))
        if self.encoding == "counts" and len(letters) ** self.k > MAX_COUNTED:
            raise ValueError(
                f"there are {len(letters)}^{self.k} strings of k={self.k} letters, more than "
                f"{MAX_COUNTED}; use a smaller k, or encoding='one_hot'."
            )
        return resolved

    def count(self, objects: Objects) -> int:
        """Return the number of windows of all sequences.

        Parameters
        ----------
        objects : list of str
            Sequences.

        Returns
        -------
        n : int
            ``n_segments`` per sequence, or all windows.
        """
        if self.n_segments is not None:
            return super().count(objects)
        return sum(len(sequence) - self.length + 1 for sequence in objects)

    def cut(self, objects: Objects, seed: int = 0, n_threads: int = 1) -> Segments:
        """Cut sequences into windows.

        Parameters
        ----------
        objects : list of str
            Sequences.
        seed : int, default=0
            The seed. The windows of a sequence depend on it and on its letters alone.
        n_threads : int, default=1
            Not used: this takes little time.

        Returns
        -------
        segments : Segments
            The windows, sequence by sequence.
        """
        sequences = list(objects)
        begins = self._draw(sequences, seed)
        sizes = [len(begin) for begin in begins]
        lengths = np.array([len(sequence) for sequence in sequences])
        first = np.repeat(np.cumsum(lengths) - lengths, sizes)
        begin = np.concatenate(begins)
        codes = self._codes("".join(sequences))
        windows = codes[(first + begin)[:, None] + np.arange(self.length)]
        values = self._encode(windows)
        if self.position:
            places_left = np.repeat(lengths - self.length, sizes)
            relative = begin / np.maximum(places_left, 1)
            values = np.column_stack([values, relative]).astype(np.float32)
        places = np.column_stack([begin, np.full(len(begin), self.length)]).astype(np.int32)
        return Segments(values, np.append(0, np.cumsum(sizes)), places)

    def _draw(self, sequences: list[str], seed: int) -> list[npt.NDArray[np.intp]]:
        """Return where the windows of each sequence begin."""
        n_windows = np.array([len(sequence) - self.length + 1 for sequence in sequences])
        if self.n_segments is None:
            return [np.arange(n) for n in n_windows]
        seeds = [content_seed(seed, [sequence.encode()]) for sequence in sequences]
        u = uniforms(np.array(seeds, dtype=np.uint64), self.n_segments, 1)[:, :, 0]
        return list(below(u, n_windows[:, None]))

    def _codes(self, text: str) -> npt.NDArray[np.intp]:
        """Return the positions of letters in the alphabet."""
        points = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
        known = np.frombuffer(self.alphabet_.encode("utf-32-le"), dtype="<u4")
        return np.searchsorted(known, points)

    def _encode(self, windows: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
        n, n_letters = len(windows), len(self.alphabet_)
        if self.encoding == "one_hot":
            return (windows[:, :, None] == np.arange(n_letters)).reshape(n, -1).astype(np.uint8)
        powers = n_letters ** np.arange(self.k)[::-1]
        strings = np.lib.stride_tricks.sliding_window_view(windows, self.k, axis=1) @ powers
        dtype = np.uint8 if strings.shape[1] < 256 else np.float32  # a byte counts to 255
        counts = np.zeros((n, n_letters**self.k), dtype=dtype)
        np.add.at(counts, (np.arange(n)[:, None], strings), 1)
        return counts

    def spread(self, item: str, places: Ints, values: Floats) -> Floats:
        """Return the mean over the windows that cover each letter.

        Parameters
        ----------
        item : str
            A sequence.
        places : ndarray of shape (n, 2), int32
            Its windows.
        values : ndarray of shape (n, q)
            Values of the windows.

        Returns
        -------
        means : ndarray of shape (len(item), q)
            NaN where no window is.
        """
        return spread_intervals(len(item), places, values)

    def plot(self, item: str, means: Floats, ax: "Axes") -> None:
        """Draw the letters on coloured cells, in lines of 60.

        Parameters
        ----------
        item : str
            A sequence.
        means : ndarray of shape (len(item),)
            A value for each letter.
        ax : matplotlib Axes
            Where to draw.
        """
        width = min(len(item), LETTERS_PER_LINE)
        cells = np.full(ceil(len(item) / width) * width, np.nan)
        cells[: len(item)] = means
        colours = ax.imshow(cells.reshape(-1, width), cmap="YlOrBr", aspect="equal")
        ax.figure.colorbar(colours, ax=ax, orientation="horizontal", shrink=0.4, aspect=30,
                           label=MEANS)  # fmt: skip
        low, high = np.nanmin(means), np.nanmax(means)
        dark = cells > low + DARK * (high - low)
        for i, letter in enumerate(item):
            ax.text(i % width, i // width, letter, ha="center", va="center", fontsize="small",
                    color="white" if dark[i] else "black")  # fmt: skip
        ax.set_axis_off()


def _as_text(item: Any, name: str) -> str:
    """Return a string, or letters in a list or array as one."""
    if isinstance(item, str):
        return str(item)
    if not isinstance(item, list | tuple | np.ndarray):
        remedy = "; call decode on it" if isinstance(item, bytes) else ""
        raise ValueError(
            f"{name} is a {type(item).__name__}; expected a string of letters{remedy}."
        )
    letters = list(item)
    other = [entry for entry in letters if not isinstance(entry, str) or len(entry) != 1]
    if other:
        value = other[0].item() if isinstance(other[0], np.generic) else other[0]
        raise ValueError(
            f"{name} has the entry {value!r}; expected a string, or single letters. Give each "
            "symbol a letter, for example by ''.join(chr(97 + i) for i in sequence) for symbols "
            "from 0, or use RandomSubseries for series of measurements."
        )
    return "".join(letters)
