"""Pre-images in closed form."""

import numpy as np

from okforest._typing import Outputs, WeightMatrix
from okforest.decode._base import Decoder
from okforest.embedding import Span


class Mean(Decoder):
    """The weighted mean of the training outputs: exact for the linear kernel on vectors."""

    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return W y."""
        if span.outputs.dtype.kind not in "fiu":
            raise ValueError(
                f"decoder 'mean' needs numeric outputs, and these are of type {span.outputs.dtype};"
                " use decoder='auto'."
            )
        return W @ span.outputs


class Majority(Decoder):
    """The label with the largest total weight (the first of equals): exact for the Dirac kernel."""

    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return the winner of each row's vote."""
        classes, codes = np.unique(span.outputs, return_inverse=True)
        if codes.ndim != 1:
            raise ValueError(
                f"decoder 'majority' needs one label per row, and outputs have shape "
                f"{span.outputs.shape}; use decoder='auto'."
            )
        votes = W @ np.eye(len(classes))[codes]
        most = votes.max(axis=1, keepdims=True)
        # Votes equal up to rounding are equal; the most may be below zero, as weights may.
        return classes[np.argmax(votes >= most - 1e-12 * np.abs(most), axis=1)]
