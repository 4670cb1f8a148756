"""Predictions of a partition, summed over the parts of a forest, and what follows from them."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from okforest._utils.arrays import Floats, Outputs
from okforest.dask._parts import Weighted
from okforest.decode import Decoder
from okforest.kernels import OutputKernel
from okforest.weights import Span, SparseWeights, SummedWeights, WeightMatrix

Known = tuple[OutputKernel, Outputs]
Predicted = tuple[Span, WeightMatrix]  # weights, and the outputs that they refer to


def predicted_by_sums(known: Known, sums: Floats) -> Predicted:
    """Return predictions known by their sums of explicit features."""
    return Span(*known), SummedWeights(sums, len(known[1]))


def predicted_by_weights(known: Known, W: Weighted) -> Predicted:
    """Return predictions known by their weights over all training outputs."""
    return Span(*known), SparseWeights(W.matrix)


def predicted_by_support(known: Known, W: Weighted) -> Predicted:
    """Return predictions known by the weights and the outputs that have one."""
    return Span(known[0], W.outputs), SparseWeights(W.support())


def decoded(predicted: Predicted, decoder: Decoder, empty: Outputs) -> Outputs:
    """Decode predictions; without any, return the empty array."""
    span, W = predicted
    return as_array(span.kernel.in_form(decoder.decode(W, span))) if W.shape[0] else empty


def as_array(outputs: Any) -> Outputs:
    """Return predicted outputs as an array, of which Dask makes one collection."""
    return outputs.toarray() if hasattr(outputs, "toarray") else np.asarray(outputs)


def columns_of(W: Weighted, begin: int, end: int) -> sp.csr_array:
    """Return the weights of some training rows."""
    return W.matrix[:, begin:end]


def inner_products(left: Predicted, right: Predicted) -> Floats:
    """Return the inner products of predictions, which may have different outputs."""
    (span, W), (other, V) = left, right
    if W.shape[0] == 0 or V.shape[0] == 0:
        return np.zeros((W.shape[0], V.shape[0]))
    if isinstance(W, SummedWeights) and isinstance(V, SummedWeights):
        return W.sums @ V.sums.T
    both = Span(span.kernel, np.concatenate([span.outputs, other.outputs]))
    n, m = len(span), len(other)
    wide = sp.hstack([W.tocsr(), sp.csr_array((W.shape[0], m))], format="csr")
    far = sp.hstack([sp.csr_array((V.shape[0], n)), V.tocsr()], format="csr")
    return both.gram(wide, far)
