"""Searching candidates for those nearest to predictions: all of them, with bounds, or on a GPU."""

from collections.abc import Callable, Iterable, Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._utils.arrays import Floats, Outputs, namespace, on_gpu
from okforest._utils.distinct import distinct
from okforest.weights import OutputSet, Span, WeightMatrix
from okforest.weights.on_device import GROUP, SpanOnDevice, Sums, candidates_at_once
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


class Found(NamedTuple):
    """The candidates of least cost for some predictions, in order."""

    outputs: Outputs  # of shape (n, k, ...)
    costs: Floats  # of shape (n, k)

    def merged(self, other: "Found", k: int) -> "Found":
        """Return the k best different outputs of both, or all if there are fewer."""
        outputs = np.concatenate([self.outputs, other.outputs], axis=1)
        costs = np.hstack([self.costs, other.costs])
        n, width = costs.shape
        if k > 1:
            flat = outputs.reshape(n * width, *outputs.shape[2:])
            numbers = distinct(flat).group.reshape(n, width)
            own = self.costs.shape[1]
            repeated = namespace(costs).zeros((n, width), dtype=bool)
            for place in range(own, width):
                repeated[:, place] = (numbers[:, :own] == numbers[:, place : place + 1]).any(axis=1)
            costs[repeated] = np.inf
            k = min(k, int((~repeated).sum(axis=1).min()))
        order = smallest(costs, k)
        index = order.reshape(*order.shape, *[1] * (outputs.ndim - 2))
        return Found(
            np.take_along_axis(outputs, index, axis=1), np.take_along_axis(costs, order, axis=1)
        )

    def check_count(self, k: int) -> None:
        """Raise a ValueError if there are fewer than k different candidates."""
        found = self.costs.shape[1]
        if found < k:
            raise ValueError(
                f"k={k!r}; there are {found} different candidates, so pass an integer from 1 to "
                f"{found}."
            )


ROWS = 2**16  # predictions searched at a time


def search_on_device(
    span: SpanOnDevice,
    W: WeightMatrix,
    blocks: Callable[[], Iterable[OutputSet]],
    k: int,
    with_losses: bool,
) -> tuple[Outputs, Floats]:
    """Return the k nearest candidates of each row of W, on the GPU, nearest first.

    With them come their distances ‖φ(c) − F‖², or these less ‖F‖². Candidates are read in blocks,
    once for every part of the rows.
    """
    parts = []
    for start in range(0, W.shape[0], ROWS):
        sums = span.predictions(W[start : start + ROWS])
        best = _search(span, sums, blocks(), k)
        costs = best.costs
        if with_losses:
            costs = span.device.xp.maximum(costs + sums.squared_norms()[:, None], 0.0)
        parts.append((best.outputs, costs))
    outputs, costs = (span.device.xp.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return outputs, costs


def _search(span: SpanOnDevice, sums: Sums, blocks: Iterable[OutputSet], k: int) -> Found:
    best: Found | None = None
    for block in blocks:
        size = candidates_at_once(span.device, sums, prod(block.given.shape[1:]), k)
        for start in range(0, len(block.given), size):
            candidates = OutputSet(span.kernel, span.copy(block.given[start : start + size]))
            if k == 1:  # of equal candidates, one is taken
                candidates.keep_all()
            found = _nearest(span.device.xp, sums, candidates, min(k, len(candidates)))
            best = found if best is None else best.merged(found, k)
    assert best is not None, "there is at least one candidate"
    best.check_count(k)
    return best


def _nearest(xp: Any, sums: Sums, candidates: OutputSet, k: int) -> Found:
    places, costs = [], []
    for block in sums.costs(candidates):
        places.append(smallest(block, k))
        costs.append(xp.take_along_axis(block, places[-1], axis=1))
        del block  # before the next one is computed
    return Found(candidates.outputs[xp.concatenate(places)], xp.concatenate(costs))
