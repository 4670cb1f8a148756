"""The principal directions of embedded outputs, in which splits can be searched.

A tree stores only the members of its leaves. The outputs it is grown from determine which splits
are chosen, while predictions stay exact. The cost of a node is n·rank per feature: a few directions
with most of the variance are a cheap substitute for all. For thousands of outputs they are found
without the Gram matrix.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
import scipy.linalg as sla

from okforest._utils.arrays import Floats, Outputs, namespace, on_gpu, to_host
from okforest.embedding.choice import (
    ENTRY_ERROR,
    Embedding,
    EmbeddingKind,
    centred_factor,
    embed,
    factor_errors,
)
from okforest.embedding.low_rank import low_rank_factor
from okforest.kernels import OutputKernel

SearchRank = int | float | Literal["auto"] | None

# A share of the variance is sought with these ranks, up to this fraction of N.
RANKS = (16, 32, 64, 128)
LARGEST_PART = 1 / 8

# "auto" searches above this number of outputs without few explicit features, in the first of these
# ranks that keeps this share of the variance. benchmarks/search_rank.py is the evidence.
MANY = 2000
AUTO_RANKS = (64, 128)
AUTO_SHARE = 0.8

# Directions in which means of outputs are compared.
LEADING = 16

# Subspace iteration: additional directions, and passes over the Gram matrix before the last one.
MORE = 10
PASSES = 2


def embed_for_search(
    kernel: OutputKernel,
    y: Outputs,
    kind: EmbeddingKind | Literal["auto"],
    embedding_rank: int | None,
    search_rank: SearchRank,
    weight: Floats,
    seed: int,
    *,
    classes: bool = False,
) -> tuple[Embedding, Embedding, float]:
    """Return embedded outputs, the same in the directions to search, and their share of variance.

    With "auto" and many outputs, these may be a Nyström embedding and its first directions; the
    share is that of the variance of the outputs themselves then. ``classes`` allows numbers of
    classes instead of vectors.
    """
    if classes and search_rank in (None, "auto") and embedding_rank is None:
        dim = kernel.feature_dim(y)
        if kind == "features" or (kind == "auto" and dim is not None and dim <= len(y)):
            numbers = kernel.class_numbers(y)
            if numbers is not None and dim is not None:
                embedding = Embedding("features", numbers, n_classes=dim)
                return embedding, embedding, 1.0
    if search_rank == "auto" and kind == "auto" and _are_many(kernel, y):
        embedding, hidden = _nystrom(kernel, y, weight, seed)
        _, variance = _cross_products(embedding, _shares(embedding.values, weight))
        whole = variance / (variance + hidden) if variance > 0.0 else 0.0
        if whole >= AUTO_SHARE:
            for rank in AUTO_RANKS:
                search, share = principal_directions(embedding, rank, weight, seed)
                if share * whole >= AUTO_SHARE:
                    return embedding, search, share * whole
    embedding = embed(kernel, y, kind, embedding_rank, seed, weight)
    return embedding, *principal_directions(embedding, search_rank, weight, seed)


def _are_many(kernel: OutputKernel, y: Outputs) -> bool:
    """Return whether there are many outputs, and no explicit features in fewer dimensions."""
    if len(y) <= MANY:
        return False
    dim = kernel.feature_dim(y)
    return dim is None or dim > len(y)


def _nystrom(
    kernel: OutputKernel, y: Outputs, weight: Floats, seed: int
) -> tuple[Embedding, float]:
    """Return a Nyström embedding, and the mean square that it leaves out."""
    diag = kernel.diag(y)
    factor, residual = low_rank_factor(kernel, y, "nystrom", None, seed)
    squares = namespace(factor).maximum(diag - _squares(factor), 0.0)
    hidden = float(_shares(factor, weight) @ squares)
    return replace(centred_factor("nystrom", factor, diag, weight), residual=residual), hidden


def principal_directions(
    embedding: Embedding, rank: SearchRank, weight: Floats, seed: int
) -> tuple[Embedding, float]:
    """Return outputs in their first principal directions, and the share of variance they keep.

    Directions and variance are those of the outputs weighted by ``weight``. A ``rank`` below one is
    the share to keep. The embedding itself is returned if it has at most ``rank`` columns, if a few
    directions do not keep that share, and with "auto".
    """
    if rank is None or isinstance(rank, str):
        return embedding, 1.0
    weight = _shares(embedding.values, weight)
    cross, total = _cross_products(embedding, weight)
    least = rank if rank < 1 else 0.0
    ranks = [r for r in RANKS if r <= LARGEST_PART * len(weight)] if rank < 1 else [int(rank)]
    for tried in ranks:
        if tried >= embedding.rank or total == 0.0:
            break
        values, variance = _top(cross, np.sqrt(weight), tried, seed)
        share = min(1.0, variance / total)
        if share >= least:
            errors = embedding.errors  # of vectors, which a projection does not increase
            if embedding.kind == "gram" and errors is not None:
                errors = factor_errors(values, errors / ENTRY_ERROR)
            return replace(embedding, kind="factor", values=values, errors=errors), share
    return embedding, 1.0


def leading_coordinates(embedding: Embedding, weight: Floats, seed: int) -> Floats:
    """Return outputs, around their mean, in at most ``LEADING`` principal directions, on the host.

    Outputs that are vectors of so few numbers are returned as they are, in any basis.
    """
    embedding, share = embedding.as_matrix(), weight / weight.sum()
    if embedding.rank > LEADING:
        reduced = principal_directions(embedding, LEADING, weight, seed)[0]
        values = to_host(reduced.values)
        return np.zeros((len(values), 1)) if reduced.rank > LEADING else values - share @ values
    values = to_host(embedding.values)
    if embedding.kind == "gram":
        lengths, basis = np.linalg.eigh(values - share @ values)
        values = basis * np.sqrt(np.maximum(lengths, 0.0))
    return values - share @ values if values.shape[1] else np.zeros((len(values), 1))


def _shares(values: Floats, weight: Floats) -> Floats:
    """Return weights that sum to one, where these values are."""
    shares: Floats = namespace(values).asarray(weight / weight.sum())
    return shares


def _squares(values: Floats) -> Floats:
    squares: Floats = np.einsum("ij,ij->i", values, values)
    return squares


def _cross_products(
    embedding: Embedding, weight: Floats
) -> tuple[Callable[[Floats], Floats], float]:
    """Return the product with the Gram matrix of centred outputs as a function, and their variance.

    Weights must sum to one.
    """
    values = embedding.values
    if embedding.kind == "gram":
        squares = np.diagonal(values)
        variance = weight @ squares - weight @ values @ weight

        def cross(Q: Floats) -> Floats:
            # K is symmetric, and BLAS is faster with K on the right of a product.
            product = ((Q - weight[:, None] * Q.sum(axis=0)).T @ values).T
            product -= weight @ product
            return product
    else:
        squares = _squares(values)
        centred = values - weight @ values
        variance = weight @ _squares(centred)

        def cross(Q: Floats) -> Floats:
            return centred @ (centred.T @ Q)

    # The origin of an embedding is among the outputs: a much smaller variance is rounding.
    return cross, float(variance) if variance > 1e-9 * (weight @ squares) else 0.0


def _top(
    cross: Callable[[Floats], Floats], root: Floats, rank: int, seed: int
) -> tuple[Floats, float]:
    """Return outputs in ``rank`` directions, and their variance, by subspace iteration.

    Every direction is a sum Σ_i √ω_i q_i φ(y_i). The subspace is approximate, with a small error if
    the spectrum decays; coordinates and variance in it are exact.
    """
    n_columns = min(rank + MORE, len(root))
    xp = namespace(root)
    Q: Floats = xp.asarray(np.random.default_rng(seed).standard_normal((len(root), n_columns)))
    for _ in range(PASSES):
        product = root[:, None] * cross(root[:, None] * Q)
        if on_gpu(product):
            Q = xp.linalg.qr(product)[0]
        else:  # the same span as that of a QR decomposition, in less time
            Q = sla.lu(product, permute_l=True, overwrite_a=True, check_finite=False)[0]
    products = cross(root[:, None] * Q)
    # Make the directions orthonormal by their Gram matrix, then sort them by variance.
    norms, basis = np.linalg.eigh(Q.T @ (root[:, None] * products))
    sound = norms > 1e-12 * norms[-1]
    values = products @ (basis[:, sound] / np.sqrt(norms[sound]))
    weighted = root[:, None] * values
    variances, rotation = np.linalg.eigh(weighted.T @ weighted)
    values = values @ rotation[:, ::-1][:, :rank]
    return xp.ascontiguousarray(values), float(variances[::-1][:rank].sum())
