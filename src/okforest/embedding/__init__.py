"""Outputs as numbers: embeddings to grow trees from, and the span of the training outputs."""

from okforest.embedding.alike import check_alike
from okforest.embedding.choice import Embedding, embed
from okforest.embedding.principal import principal_directions
from okforest.embedding.products import ProductWeights
from okforest.embedding.span import Span

__all__ = ["Embedding", "ProductWeights", "Span", "check_alike", "embed", "principal_directions"]
