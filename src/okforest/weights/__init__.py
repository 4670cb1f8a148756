"""Weights over training outputs: what every model predicts, and what follows from them.

A prediction is a row of weights w over the training outputs y_i; it stands for the vector
F = Σ_i w_i φ(y_i) in the kernel's feature space. :class:`WeightMatrix` is the interface between the
models, which make weights, and everything that uses them. Its forms hold the same matrix in the way
that takes the least memory: sparse, leaves of trees, dense, a product of two matrices, a
combination of other forms, powers of another form, means over the segments of objects, or only sums
of features.
:class:`Span` adds the kernel, and computes what follows for predictions: inner products, losses,
norms.
"""

from okforest.weights.forms import (
    CombinedWeights,
    DenseWeights,
    ProductWeights,
    SharpenedWeights,
    SparseWeights,
    WeightMatrix,
    as_weights,
)
from okforest.weights.grouped import GroupedWeights
from okforest.weights.leaves import LeafWeights, SummedWeights
from okforest.weights.output_set import OutputSet
from okforest.weights.span import Span, hidden_squares

__all__ = [
    "CombinedWeights",
    "DenseWeights",
    "GroupedWeights",
    "LeafWeights",
    "OutputSet",
    "ProductWeights",
    "SharpenedWeights",
    "Span",
    "SparseWeights",
    "SummedWeights",
    "WeightMatrix",
    "as_weights",
    "hidden_squares",
]
