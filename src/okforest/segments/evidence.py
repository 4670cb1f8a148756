"""Which segments decided, and where they are in the object."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from okforest._utils.arrays import Floats, Ints, Outputs
from okforest._utils.parameters import as_integer
from okforest._utils.plotting import new_axes
from okforest.kernels import Dirac
from okforest.segments.base import Segmenter
from okforest.weights import Span

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CLASSES_IN_MESSAGE = 10


@dataclass(frozen=True, repr=False)
class Evidence:
    """How much each segment of an object supports an output.

    Parameters
    ----------
    segmenter : Segmenter
        The segmenter that has cut the object.
    item : object
        The object, in the segmenter's canonical form.
    places : ndarray of shape (n_segments, k), int32
        Where each segment lies.
    support : ndarray of shape (n_segments,)
        The inner product of each segment's prediction and the output in feature space: for
        classes, the probability of the class. Of a :class:`SegmentRegressor`, the number that is
        predicted for each segment.
    shares : ndarray of shape (n_segments,)
        The share of each segment in the prediction, with sum one.
    output : object
        The output that is explained.
    name : str, optional
        What the support is, for the title of a plot; by default "evidence for" the output.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from okforest.segments import RandomSubwindows, SegmentClassifier
    >>> digits = load_digits()
    >>> model = SegmentClassifier(RandomSubwindows(20), random_state=0)
    >>> evidence = model.fit(digits.images[:100], digits.target[:100]).evidence(digits.images[100])
    >>> evidence.output, evidence.map.shape
    (np.int64(4), (8, 8))
    """

    segmenter: Segmenter
    item: Any
    places: Ints
    support: Floats
    shares: Floats
    output: Any
    name: str | None = None

    def __repr__(self) -> str:
        return f"<Evidence of {len(self.support)} segments for {self.output}>"

    @property
    def total(self) -> float:
        """The support of the object: the mean over segments, weighted by their shares."""
        return float(self.shares @ self.support)

    @cached_property
    def map(self) -> Floats:
        """The mean support of the segments that cover each pixel, time, letter or vertex."""
        return self.segmenter.spread(self.item, self.places, self.support[:, None])[..., 0]

    def top(self, k: int = 10) -> npt.NDArray[np.intp]:
        """Return the positions of the k segments with the largest support, the largest first.

        Parameters
        ----------
        k : int, default=10
            Number of segments.

        Returns
        -------
        positions : ndarray of at most k integers
            Rows of ``places``.
        """
        k = as_integer("k", k, 1)
        return np.argsort(-self.support, kind="stable")[:k]

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the object and the map: a heat map, a coloured band, or coloured letters.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default new axes.

        Returns
        -------
        ax : matplotlib Axes
            The axes.
        """
        ax = new_axes(ax)
        self.segmenter.plot(self.item, self.map, ax)
        ax.set_title(f"{self.name or f'evidence for {self.output}'}: {self.total:.3g}")
        return ax


def read_output(span: Span, output: Any) -> Outputs:
    """Return an output as an array of one in canonical form, or raise an error with the reason."""
    try:
        read = span.kernel.check([output])
    except ValueError as error:
        raise ValueError(f"output={output!r} is not one output of this model: {error}") from None
    if isinstance(span.kernel, Dirac):
        known = np.unique(span.outputs).tolist()
        if read.tolist()[0] not in known:
            shown = ", ".join(map(repr, known[:CLASSES_IN_MESSAGE])) + ", …" * (
                len(known) > CLASSES_IN_MESSAGE
            )
            raise ValueError(
                f"output={output!r} is not a class of the training objects; pass one of {shown}."
            )
    elif read.shape[1:] != span.outputs.shape[1:]:
        raise ValueError(
            f"output has shape {read.shape[1:]} and the training outputs have shape "
            f"{span.outputs.shape[1:]}; pass one output like those."
        )
    return read
