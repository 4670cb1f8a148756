"""The principal directions of embedded outputs, in which splits can be searched.

A grown tree keeps the members of its leaves alone: what it is grown from decides which splits are
chosen, while predictions stay exact. A node costs n·rank per feature, so that few directions
of a large variance are a cheap stand-in for all.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
import scipy.linalg as sla

from okforest._typing import Floats
from okforest.embedding.choice import Embedding

# "auto" tries these ranks, up to this part of N, and takes the first that keeps this much of the
# variance.
RANKS = (16, 32, 64, 128)
LARGEST_PART = 1 / 8
LEAST_SHARE = 0.95

# The subspace is sought with some more directions than are asked for, by so many products with the
# Gram matrix beside the last one.
MORE = 10
PASSES = 2


def principal_directions(
    embedding: Embedding, rank: int | Literal["auto"] | None, weight: Floats, seed: int
) -> tuple[Embedding, float]:
    """Return outputs in their first principal directions, and the share of variance kept there.

    Directions and variance are those of the outputs weighted by ``weight``. The embedding itself is
    returned where it has no more columns than are asked for or, with "auto", where few directions
    do not keep enough.
    """
    if rank is None:
        return embedding, 1.0
    weight = weight / weight.sum()
    cross, total = _cross_products(embedding, weight)
    ranks = [r for r in RANKS if r <= LARGEST_PART * len(weight)] if rank == "auto" else [rank]
    for tried in ranks:
        if tried >= embedding.rank or total == 0.0:
            break
        values, variance = _top(cross, np.sqrt(weight), tried, seed)
        share = min(1.0, variance / total)
        if rank != "auto" or share >= LEAST_SHARE:
            return replace(embedding, kind="factor", values=values), share
    return embedding, 1.0


def _cross_products(
    embedding: Embedding, weight: Floats
) -> tuple[Callable[[Floats], Floats], float]:
    """Return the product with the Gram matrix of the outputs around their mean, and their variance.

    Weights sum to one.
    """
    values = embedding.values
    if embedding.kind == "gram":
        squares = np.diagonal(values)
        variance = weight @ squares - weight @ values @ weight

        def cross(Q: Floats) -> Floats:
            product = values @ (Q - weight[:, None] * Q.sum(axis=0))
            product -= weight @ product
            return product
    else:
        squares = np.einsum("ij,ij->i", values, values)
        centred = values - weight @ values
        variance = weight @ np.einsum("ij,ij->i", centred, centred)

        def cross(Q: Floats) -> Floats:
            return centred @ (centred.T @ Q)

    # Embeddings have their origin among the outputs: a far smaller variance is rounding.
    return cross, float(variance) if variance > 1e-9 * (weight @ squares) else 0.0


def _top(
    cross: Callable[[Floats], Floats], root: Floats, rank: int, seed: int
) -> tuple[Floats, float]:
    """Return outputs in ``rank`` directions, and their variance, by subspace iteration.

    Every direction is a sum Σ_i √ω_i q_i φ(y_i). The subspace is approximate, by so little that it
    does not show where the spectrum falls; coordinates and variance in it are exact.
    """
    n_columns = min(rank + MORE, len(root))
    Q: Floats = np.random.default_rng(seed).standard_normal((len(root), n_columns))
    for _ in range(PASSES):
        product = root[:, None] * cross(root[:, None] * Q)
        Q = np.asarray(sla.qr(product, mode="economic", check_finite=False)[0], dtype=np.float64)
    products = cross(root[:, None] * Q)
    # The directions' own Gram matrix makes them orthonormal, and the variance in them puts the
    # largest first.
    norms, basis = np.linalg.eigh(Q.T @ (root[:, None] * products))
    sound = norms > 1e-12 * norms[-1]
    values = products @ (basis[:, sound] / np.sqrt(norms[sound]))
    weighted = root[:, None] * values
    variances, rotation = np.linalg.eigh(weighted.T @ weighted)
    values = values @ rotation[:, ::-1][:, :rank]
    return np.ascontiguousarray(values), float(variances[::-1][:rank].sum())
