"""Which segments decided, and where they are in the object."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from okforest._plotting import new_axes
from okforest._typing import Floats, Ints
from okforest.segments._base import Segmenter

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class Evidence:
    """How much each segment of an object speaks for an output.

    Parameters
    ----------
    segmenter : Segmenter
        The segmenter that has cut the object.
    item : object
        The object, in the segmenter's canonical form.
    places : ndarray of shape (n_segments, k), int32
        Where each segment lies.
    support : ndarray of shape (n_segments,)
        The inner product of each segment's prediction and the output in feature space; for
        classes, the probability of the class.
    shares : ndarray of shape (n_segments,)
        The share of each segment in the prediction, with sum one.
    output : object
        The output that is explained.

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

    def __repr__(self) -> str:
        return f"<Evidence of {len(self.support)} segments for {self.output!r}>"

    @property
    def total(self) -> float:
        """The mean of the support: that of the object."""
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
        ax.set_title(f"evidence for {self.output}, {self.total:.3g}")
        return ax
