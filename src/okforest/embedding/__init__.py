"""Outputs as numbers: embeddings to grow trees from, and the span of the training outputs."""

from okforest.embedding.alike import check_alike
from okforest.embedding.choice import Embedding, embed
from okforest.embedding.principal import principal_directions
from okforest.embedding.products import DenseWeights, ProductWeights
from okforest.embedding.span import Span, entries

__all__ = [
    "DenseWeights",
    "Embedding",
    "ProductWeights",
    "Span",
    "check_alike",
    "embed",
    "entries",
    "principal_directions",
]
