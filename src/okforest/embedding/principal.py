"""The principal directions of embedded outputs, in which splits can be searched.

A tree stores only the members of its leaves. The outputs it is grown from determine which splits
are chosen, while predictions stay exact. The cost of a node is n·rank per feature: a few directions
with most of the variance are a cheap substitute for all.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
import scipy.linalg as sla

from okforest._utils.arrays import Floats, namespace, on_gpu, to_host
from okforest.embedding.choice import ENTRY_ERROR, Embedding, factor_errors

# "auto" tries these ranks, up to this fraction of N, and takes the first that keeps this share of
# the variance.
RANKS = (16, 32, 64, 128)
LARGEST_PART = 1 / 8
LEAST_SHARE = 0.95

# Directions in which means of outputs are compared.
LEADING = 16

# Subspace iteration: additional directions, and passes over the Gram matrix before the last one.
MORE = 10
PASSES = 2


def principal_directions(
    embedding: Embedding, rank: int | Literal["auto"] | None, weight: Floats, seed: int
) -> tuple[Embedding, float]:
    """Return outputs in their first principal directions, and the share of variance they keep.

    Directions and variance are those of the outputs weighted by ``weight``. The embedding itself is
    returned if it has at most ``rank`` columns or, with "auto", if a few directions do not keep
    enough variance.
    """
    if rank is None:
        return embedding, 1.0
    weight = namespace(embedding.values).asarray(weight / weight.sum())
    cross, total = _cross_products(embedding, weight)
    ranks = [r for r in RANKS if r <= LARGEST_PART * len(weight)] if rank == "auto" else [rank]
    for tried in ranks:
        if tried >= embedding.rank or total == 0.0:
            break
        values, variance = _top(cross, np.sqrt(weight), tried, seed)
        share = min(1.0, variance / total)
        if rank != "auto" or share >= LEAST_SHARE:
            errors = embedding.errors  # of vectors, which a projection does not increase
            if embedding.kind == "gram" and errors is not None:
                errors = factor_errors(values, errors / ENTRY_ERROR)
            return replace(embedding, kind="factor", values=values, errors=errors), share
    return embedding, 1.0


def leading_coordinates(embedding: Embedding, weight: Floats, seed: int) -> Floats:
    """Return outputs, around their mean, in at most ``LEADING`` principal directions, on the host.

    Outputs that are vectors of so few numbers are returned as they are, in any basis.
    """
    share = weight / weight.sum()
    if embedding.rank > LEADING:
        reduced = principal_directions(embedding, LEADING, weight, seed)[0]
        values = to_host(reduced.values)
        return np.zeros((len(values), 1)) if reduced.rank > LEADING else values - share @ values
    values = to_host(embedding.values)
    if embedding.kind == "gram":
        lengths, basis = np.linalg.eigh(values - share @ values)
        values = basis * np.sqrt(np.maximum(lengths, 0.0))
    return values - share @ values if values.shape[1] else np.zeros((len(values), 1))


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
        squares = np.einsum("ij,ij->i", values, values)
        centred = values - weight @ values
        variance = weight @ np.einsum("ij,ij->i", centred, centred)

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
