"""Pre-images in closed form."""

import numpy as np

from okforest._typing import Outputs
from okforest.decode._base import Decoder
from okforest.kernels import Dirac, Linear
from okforest.kernels._description import describe_kernel
from okforest.weights import LeafWeights, Span, WeightMatrix, as_weights


class Mean(Decoder):
    """The weighted mean of the training outputs: exact for the linear kernel on vectors.

    Examples
    --------
    >>> from okforest import OKTree
    >>> tree = OKTree(kernel="rbf", decoder="mean").fit([[0]] * 3, [1.0, 2.0, 6.0])
    >>> tree.predict([[0]])
    array([3.])
    """

    def check(self, span: Span) -> None:
        """Check that outputs are numbers."""
        if span.outputs.dtype.kind not in "fiu":
            raise ValueError(
                f"decoder 'mean' needs numeric outputs, got type {span.outputs.dtype}; use "
                "decoder='auto'."
            )
        if span.outputs.dtype.kind in "iu" and not span.kernel.numeric:
            raise ValueError(
                f"decoder 'mean' averages numbers, and {describe_kernel(span.kernel)} treats the "
                "integers in y as positions or labels; use decoder='auto', or pass floats if they "
                "are numbers."
            )

    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return W y."""
        W = as_weights(W)
        if isinstance(span.kernel, Linear) and span.features is not None:  # these are the outputs
            means = None
            if isinstance(W, LeafWeights):  # others know these sums
                means = span.computed_on_device(W, lambda there: there.feature_sums(W))
            means = W.feature_sums(span) if means is None else means
            return means.reshape(W.shape[0], *span.outputs.shape[1:])
        return W @ span.outputs


class Majority(Decoder):
    """The label with the largest total weight, the first of equals: exact for the Dirac kernel.

    Examples
    --------
    >>> from okforest import OKTree
    >>> tree = OKTree(kernel="dirac", decoder="majority").fit([[0]] * 3, ["a", "b", "b"])
    >>> tree.predict([[0]])
    array(['b'], dtype='<U1')
    """

    def check(self, span: Span) -> None:
        """Check that there is one label per row."""
        if span.outputs.ndim != 1:
            raise ValueError(
                f"decoder 'majority' needs one label per row, got outputs of shape "
                f"{span.outputs.shape}; use decoder='auto'."
            )

    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return the label that wins each row's vote."""
        classes = span.kernel.classes if isinstance(span.kernel, Dirac) else None
        if classes is not None and span.features is not None:  # features indicate the classes
            labels, votes = classes, as_weights(W).feature_sums(span)
        else:
            (weights,), positions = span.terms(as_weights(W))
            order = np.argsort(span.training.outputs, kind="stable")
            labels = span.training.outputs[order]
            votes = (weights @ np.eye(len(labels))[positions])[:, order]
        most = votes.max(axis=1, keepdims=True)
        # Votes that differ by rounding are equal; the largest may be negative.
        return labels[np.argmax(votes >= most - 1e-12 * np.abs(most), axis=1)]
