"""Outputs as numbers, from which trees are grown."""

from okforest.embedding.choice import (
    LOW_RANK_KINDS,
    Embedding,
    EmbeddingKind,
    as_factor,
    embed,
    embedding_bytes,
    gram_of,
)
from okforest.embedding.principal import (
    SearchRank,
    embed_for_search,
    leading_coordinates,
    principal_directions,
)

__all__ = [
    "LOW_RANK_KINDS",
    "Embedding",
    "EmbeddingKind",
    "SearchRank",
    "as_factor",
    "embed",
    "embed_for_search",
    "embedding_bytes",
    "gram_of",
    "leading_coordinates",
    "principal_directions",
]
