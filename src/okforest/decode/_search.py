"""Searching candidates for those nearest to predictions: all of them, or with the help of bounds.

Both searches are exact. Bounds come from the projections of F and φ(c) on a small subspace, with
coordinates z and distances ρ from the subspace: ‖φ(c) − F‖² ≥ ‖z_c − z_F‖² + (ρ_c − ρ_F)². They
leave few candidates of many, so that a prediction costs little more than the kernel among the
outputs of its support.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._namespace import namespace, on_gpu
from okforest._typing import Floats, Outputs
from okforest.weights import OutputSet, Span, WeightMatrix
from okforest.weights.on_device import GROUP
from okforest.weights.span import BLOCK_BYTES

Positions = npt.NDArray[np.intp]

FEWEST = 1024  # different candidates from which bounds may pay off
NEAR = 64  # candidates of the smallest bounds, whose distances are computed first
ROW_COST = 2**16  # kernel evaluations that take as long as the other work for a row
SORTED = 8  # times k values: fewer are sorted, of more the k smallest are found first
MARGIN = 1e-6  # relative to the largest norm: bounds may err by this much


def search_all(
    W: WeightMatrix, span: Span, candidates: OutputSet, allowed: sp.csr_array | None, k: int
) -> tuple[Positions, Floats]:
    """Return the k nearest candidates of every row, nearest first, and their distances less ‖F‖².

    Nonzero entries of ``allowed`` are the candidates (columns) of each row; others are infinitely
    far.
    """
    return smallest_of(_distance_blocks(W, span, candidates, allowed), W.shape[0], k)


def search_kept(W: WeightMatrix, span: Span) -> tuple[Positions, Floats]:
    """Return what :func:`search_all` returns for the training outputs and k = 1."""
    (weights,), positions = span.terms(W)
    training, n_threads = span.training, getattr(W, "n_threads", 1)
    nearest, costs = training.kept_gram.nearest(
        weights.tocsr(), positions, training.squares, n_threads
    )
    return nearest[:, None], costs[:, None]


def is_kept(W: WeightMatrix, span: Span, candidates: OutputSet) -> bool:
    """Return whether the candidates are training outputs whose Gram matrix is kept."""
    return (
        candidates is span.training
        and span.features is None
        and candidates.keeps_gram
        and W.is_sparse
        and 12 * W.max_entries <= BLOCK_BYTES
    )


def smallest_of(blocks: Iterable[tuple[slice, Floats]], n: int, k: int) -> tuple[Positions, Floats]:
    """Return the k candidates of least cost for each of n rows, in order, and their costs.

    A block holds the costs of some candidates (columns) for all rows; the k least so far are kept.
    """
    nearest = np.zeros((n, 0), dtype=np.intp)
    least = np.zeros((n, 0))
    for block, costs in blocks:
        places = smallest(costs, k)
        least = np.hstack([least, np.take_along_axis(costs, places, axis=1)])
        nearest = np.hstack([nearest, places + block.start])
        order = smallest(least, k)
        least = np.take_along_axis(least, order, axis=1)
        nearest = np.take_along_axis(nearest, order, axis=1)
    return nearest, least


def _distance_blocks(
    W: WeightMatrix, span: Span, candidates: OutputSet, allowed: sp.csr_array | None
) -> Iterator[tuple[slice, Floats]]:
    """Yield ‖φ(c) − F‖² − ‖F‖² for some candidates c at a time; infinite if not allowed."""
    columns = None if allowed is None else sp.csc_array(allowed)
    for block, inner in span.inner_blocks(W, candidates):
        distances = candidates.squares[block] - 2.0 * inner
        if columns is not None:
            distances[columns[:, block].toarray() == 0] = np.inf
        yield block, distances


def bounds_pay_off(W: WeightMatrix, span: Span, candidates: OutputSet) -> bool:
    """Return whether the training outputs are searched faster with bounds, judged by counts."""
    n, n_train = W.shape
    support = W.max_entries / max(1, n)
    return (
        candidates is span.training
        and span.features is None
        and len(candidates) >= FEWEST
        and not candidates.keeps_gram
        and support >= 1.5 * candidates.n_landmarks  # else finding the subspace costs more
        and 2 * n * (ROW_COST + support**2) <= n_train * len(candidates)
    )


def search_with_bounds(W: WeightMatrix, span: Span, k: int) -> tuple[Positions, Floats]:
    """Return what :func:`search_all` returns for the training outputs, row by row."""
    found = [_search_row(W[i : i + 1], span, k) for i in range(W.shape[0])]
    return np.array([row[0] for row in found]), np.array([row[1] for row in found])


def _search_row(W: WeightMatrix, span: Span, k: int) -> tuple[Positions, Floats]:
    training = span.training
    (terms,), positions = span.terms(W)
    weights: Floats = np.asarray(terms.tocsr().toarray()[0])
    support = training.outputs[positions]
    square = float(weights @ span.kernel(support) @ weights)
    coordinates, residuals = training.projection
    z = weights @ coordinates[positions]
    residual = np.sqrt(max(0.0, square - float(z @ z)))
    # Less ‖F‖², as distances are.
    bounds = np.einsum("ij,ij->i", coordinates, coordinates) - 2.0 * (coordinates @ z)
    bounds += float(z @ z) - square + (residuals - residual) ** 2
    near = np.argpartition(bounds, min(NEAR + k, len(bounds) - 1))[: NEAR + k]
    distances = np.full(len(training), np.inf)
    distances[near] = _distances(span, weights, support, near)
    limit = np.partition(distances, k - 1)[k - 1] + MARGIN * training.squares.max()
    others = np.flatnonzero((bounds <= limit) & np.isinf(distances))
    distances[others] = _distances(span, weights, support, others)
    nearest = smallest(distances[None, :], k)[0]
    return nearest, distances[nearest]


def _distances(span: Span, weights: Floats, support: Outputs, candidates: Positions) -> Floats:
    """Return k(c, c) − 2⟨φ(c), F⟩ of some training outputs c."""
    training = span.training
    distances = np.empty(len(candidates))
    for block in span.blocks(len(candidates), len(weights)):
        some = candidates[block]
        inner = weights @ span.kernel(support, training.outputs[some])
        distances[block] = training.squares[some] - 2.0 * inner
    return distances


def smallest(values: Floats, k: int) -> Positions:
    """Return where each row has its k smallest values, in order, the first of equals."""
    if k == 1:
        return values.argmin(axis=1)[:, None]
    n, width = values.shape
    if width <= SORTED * k:
        return np.argsort(values, axis=1, kind="stable")[:, :k]
    if on_gpu(values):
        return smallest_by_groups(values, k)
    limits = np.partition(values, k - 1, axis=1)[:, k - 1 : k]
    rows, places = np.nonzero(~(values > limits))  # at least k in each row, in order of place
    order = np.lexsort((values[rows, places], rows))  # stable: the first of equals
    starts = np.searchsorted(rows, np.arange(n))
    return places[order][starts[:, None] + np.arange(k)]


def smallest_by_groups(values: Floats, k: int) -> Positions:
    """Return what :func:`smallest` returns, by sorting few values: a GPU has no fast partition.

    The k smallest values are in the k groups of the smallest minima, the first of equals.
    """
    xp, (n, width) = namespace(values), values.shape
    n_groups = -(-width // GROUP)
    if width % GROUP:
        full = xp.full((n, n_groups * GROUP), np.inf)
        full[:, :width] = values
        values = full
    groups = values.reshape(n, n_groups, GROUP)
    chosen = xp.argsort(groups.min(axis=2), axis=1, kind="stable")[:, :k]
    chosen = xp.sort(chosen, axis=1)  # so that places ascend
    some = xp.take_along_axis(groups, chosen[:, :, None], axis=1).reshape(n, -1)
    order = xp.argsort(some, axis=1, kind="stable")[:, :k]
    return xp.take_along_axis(chosen, order // GROUP, axis=1) * GROUP + order % GROUP
