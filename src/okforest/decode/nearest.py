"""Searching candidates for those nearest to predictions: all of them, prepared, or on a GPU.

Prepared candidates are searched in float32, the training outputs with bounds if that pays off.
"""

from collections.abc import Callable, Iterable, Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._utils.arrays import Floats, Outputs, namespace, on_gpu
from okforest._utils.distinct import distinct
from okforest.engine import near_candidates
from okforest.weights import OutputSet, Span, WeightMatrix
from okforest.weights.on_device import GROUP, SpanOnDevice, Sums, candidates_at_once
from okforest.weights.span import BLOCK_BYTES

Positions = npt.NDArray[np.intp]

FEWEST = 1024  # different candidates from which bounds may pay off
# Kernel evaluations that take as long as the other work for a row, and for a row and a candidate.
ROW_COST, CANDIDATE_COST = 2**15, 1.5
LARGEST_SUPPORT = 1 / 4  # bounds do not pay off for a support of a larger share of candidates
# An evaluation, if a product with a weight takes 1.
EVALUATION = 4
TOGETHER = 96  # outputs of several predictions whose norms are computed together
SORTED = 8  # times k values: fewer are sorted, of more the k smallest are found first
# Relative errors of coordinates in a span, and of numbers in float32.
MARGIN, UNIT = 1e-6, 2.0**-24


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
    """Return whether the training outputs are searched faster with bounds, judged by counts.

    A single row is not worth finding the subspace. What it would have saved is added up, so that
    it is found after a few of them.
    """
    n, n_candidates = W.shape[0], len(candidates)
    if (
        candidates is not span.training
        or span.features is not None
        or n_candidates < FEWEST
        or candidates.keeps_gram
    ):
        return False
    support = W.max_entries / max(1, n)
    if support > LARGEST_SUPPORT * n_candidates:  # then most work is in the norms of predictions
        return False
    in_use = min(n_candidates, W.max_entries)
    without = in_use * n_candidates + W.max_entries * n_candidates / EVALUATION
    cost = n * (ROW_COST + CANDIDATE_COST * n_candidates + support**2)
    if candidates.has_projection:
        return cost <= without
    candidates.missed += max(0.0, without - cost)
    return candidates.missed >= 2 * n_candidates * candidates.n_landmarks


def search_with_bounds(W: WeightMatrix, span: Span, k: int) -> tuple[Positions, Floats]:
    """Return what :func:`search_all` returns for the training outputs, by bounds.

    In a subspace and outside, φ(c) = z_c + ρ_c and F = z_F + ρ_F, so that ⟨φ(c), F⟩ differs from
    ⟨z_c, z_F⟩ by at most ‖ρ_c‖ ‖ρ_F‖. Only candidates that may be the nearest are compared exactly.
    """
    size = max(1, BLOCK_BYTES // (4 * len(span.training)))
    found = [
        _search_rows(W[i : i + size], span, min(k, len(span.training)))
        for i in range(0, W.shape[0], size)
    ]
    return np.concatenate([part[0] for part in found]), np.concatenate([part[1] for part in found])


def _search_rows(W: WeightMatrix, span: Span, k: int) -> tuple[Positions, Floats]:
    training = span.training
    (terms,), positions = span.terms(W)
    weights = terms.tocsr()
    predictions, margins = _coordinates(weights, span, positions)
    coordinates = training.projection
    lower = predictions @ coordinates.T
    lower *= -2.0
    lower += training.squares.astype(np.float32)  # now bounds of the distances
    upper = np.float32(4.0) * predictions[:, -1:] * coordinates[:, -1]
    upper += lower
    limits = upper.min(axis=1) if k == 1 else np.partition(upper, k - 1, axis=1)[:, k - 1]
    limits += margins
    # A bound that is not a number excludes nothing.
    rows, possible = np.nonzero(~(lower > limits[:, None]))
    ends = np.searchsorted(rows, np.arange(len(limits) + 1))
    nearest = np.empty((len(limits), k), dtype=np.intp)
    least = np.empty((len(limits), k))
    for group in _groups(weights, ends):
        some = possible[ends[group.start] : ends[group.stop]]
        distances = _distances(span, weights, positions, group, some, ends)
        for i in range(group.start, group.stop):
            part = slice(ends[i] - ends[group.start], ends[i + 1] - ends[group.start])
            order = smallest(distances[None, part], k)[0]
            nearest[i], least[i] = some[part][order], distances[part][order]
    return nearest, least


def _groups(weights: sp.csr_array, ends: npt.NDArray[Any]) -> Iterator[slice]:
    """Divide predictions into groups, with few outputs and few candidates together, or into ones.

    A call of a kernel takes as long as some thousand values. ``ends`` are where the candidates of
    each prediction end.
    """
    first, n = 0, weights.shape[0]
    while first < n:
        last = np.searchsorted(weights.indptr, weights.indptr[first] + TOGETHER, side="right") - 1
        last = min(last, np.searchsorted(ends, ends[first] + 2 * TOGETHER, side="right") - 1)
        last = max(first + 1, int(last))
        yield slice(first, last)
        first = last


def _coordinates(
    weights: sp.csr_array, span: Span, positions: Positions
) -> tuple[npt.NDArray[np.float32], Floats]:
    """Return z_F and an upper bound of ‖ρ_F‖ for predictions F, and errors of twice the bounds."""
    training = span.training
    coordinates = training.projection[positions]
    predictions = np.empty((weights.shape[0], coordinates.shape[1]), dtype=np.float32)
    predictions[:, :-1] = inside = weights @ coordinates[:, :-1].astype(np.float64)
    largest = float(training.squares.max())
    total = np.asarray(abs(weights).sum(axis=1))
    # Sums of n products in float32 err by n UNIT, relative to the lengths of the vectors.
    relative = MARGIN + UNIT * (coordinates.shape[1] + 16)
    outside = _squared_norms(weights, span, positions) - np.einsum("ij,ij->i", inside, inside)
    outside = np.maximum(outside, 0.0) + 4.0 * relative * largest * total**2
    predictions[:, -1] = np.sqrt(outside)
    return predictions, 8.0 * relative * largest * np.maximum(total, 1.0)


def _squared_norms(weights: sp.csr_array, span: Span, positions: Positions) -> Floats:
    """Return ‖F‖² of predictions, each from the outputs that it uses; short rows together."""
    outputs, starts = span.training.outputs, weights.indptr
    squares = np.zeros(weights.shape[0])
    for group in _groups(weights, starts):
        begin, end = starts[group.start], starts[group.stop]
        if begin < end:
            K = span.kernel(outputs[positions[weights.indices[begin:end]]])
            for i in range(group.start, group.stop):
                part = slice(starts[i] - begin, starts[i + 1] - begin)
                share = weights.data[starts[i] : starts[i + 1]]
                squares[i] = share @ K[part, part] @ share
    return squares


def _distances(
    span: Span,
    weights: sp.csr_array,
    positions: Positions,
    group: slice,
    candidates: Positions,
    ends: Positions,
) -> Floats:
    """Return k(c, c) − 2⟨φ(c), F⟩ of the candidates of some predictions, one after the other."""
    training, starts = span.training, weights.indptr
    distances = training.squares[candidates]
    begin, end, first = starts[group.start], starts[group.stop], ends[group.start]
    if begin == end:  # zero vectors
        return distances
    support = training.outputs[positions[weights.indices[begin:end]]]
    for block in span.blocks(len(candidates), len(support)):
        K = span.kernel(support, training.outputs[candidates[block]])
        for i in range(group.start, group.stop):
            share = weights.data[starts[i] : starts[i + 1]]
            part = slice(max(ends[i] - first, block.start), min(ends[i + 1] - first, block.stop))
            if len(share) and part.start < part.stop:
                used = slice(starts[i] - begin, starts[i + 1] - begin)
                own = slice(part.start - block.start, part.stop - block.start)
                distances[part] -= 2.0 * (share @ K[used, own])
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


PANEL = 64  # vectors that are together, as the core expects
MOST = 1024  # candidates of a prediction that are compared in float64 at most, apart from 2k
REPEATED = 4  # times as many are looked for if some of the nearest are equal
AT_ONCE = 256  # predictions for which candidates are looked for


class PreparedVectors:
    """Candidates as vectors of float32 or as bits, for searches that decide in float64.

    Explicit features and squares are computed once; only features of the few candidates that may be
    among the nearest, by a bound on the rounding of float32, are computed again. Features that take
    two values each, as those of label sets and classes, are bits: a 32th of the memory.

    Parameters
    ----------
    n : int
        Number of candidates.
    span : Span
        The span of the training outputs, whose kernel has explicit features.
    blocks : callable
        Returns the candidates, in blocks.
    take : callable
        Returns the candidates at some positions, in canonical form.
    """

    def __init__(
        self,
        n: int,
        span: Span,
        blocks: Callable[[], Iterable[OutputSet]],
        take: Callable[[Positions], Outputs],
    ):
        assert span.features is not None
        self.kernel, self.take = span.kernel, take
        norm = float(np.sqrt(np.einsum("ij,ij->i", span.features, span.features).max()))
        self.exponent = int(np.frexp(norm)[1])  # so that norms are near one
        n_panels, d = -(-n // PANEL), span.features.shape[1]
        self.squares = np.zeros(n_panels * PANEL)
        self.step: Floats | None = None  # the difference of the two values of a feature
        self.values = self._bits(n_panels, d, blocks())
        if self.values is None:
            self.values = self._floats(n_panels, d, blocks())
        self.reach = np.sqrt(self.squares.reshape(n_panels, PANEL).max(axis=1))
        self.half_squares = np.full(n_panels * PANEL, np.inf, dtype=np.float32)
        with np.errstate(over="ignore"):  # the core hears of infinity by the norms
            self.half_squares[:n] = 0.5 * self.squares[:n]
        del self.squares

    def _bits(self, n_panels: int, d: int, blocks: Iterable[OutputSet]) -> Any:
        """Return the features as words of a bit for each candidate, if they take two values."""
        words = np.zeros((n_panels, d), dtype="<u8")
        low, high = np.zeros(d), np.zeros(d)
        for start, vectors in self._vectors(blocks):
            if not start:
                low = high = vectors[0]
            others = vectors != low
            first = others.argmax(axis=0), np.arange(d)  # in which each feature differs
            high = np.where(high == low, vectors[first], high)
            if (others & (vectors != high)).any():
                return None
            begin, lane = divmod(start, PANEL)
            length = -(-(lane + len(others)) // PANEL)
            bits = np.zeros((length * PANEL, d), dtype=bool)
            bits[lane : lane + len(others)] = others
            packed = np.packbits(bits.reshape(length, PANEL, d), axis=1, bitorder="little")
            packed = np.ascontiguousarray(packed.swapaxes(1, 2))
            words[begin : begin + length] |= packed.view("<u8")[:, :, 0]
        self.step = high - low
        return words.astype(np.uint64, copy=False)

    def _floats(self, n_panels: int, d: int, blocks: Iterable[OutputSet]) -> Any:
        """Return the features as float32, feature by feature in every panel."""
        panels = np.zeros((n_panels, d, PANEL), dtype=np.float32)
        for start, vectors in self._vectors(blocks):
            panel, lane = np.divmod(np.arange(start, start + len(vectors)), PANEL)
            with np.errstate(over="ignore"):
                panels[panel, :, lane] = vectors
        return panels

    def _vectors(self, blocks: Iterable[OutputSet]) -> Iterator[tuple[int, Floats]]:
        """Yield where each block begins, and its scaled features; their squares are stored."""
        start = 0
        for block in blocks:
            vectors = np.ldexp(self.kernel.features(block.given), -self.exponent)
            norms = np.einsum("ij,ij->i", vectors, vectors)
            # A new class has a component that explicit features leave out.
            squares = np.ldexp(self.kernel.diag(block.given), -2 * self.exponent)
            self.squares[start : start + len(vectors)] = np.maximum(norms, squares)
            yield start, vectors
            start += len(vectors)

    def search(
        self, F: Floats, k: int, n_threads: int = 1
    ) -> tuple[Positions, Floats, npt.NDArray[np.bool_]]:
        """Return the k nearest different candidates of every row of F, their costs, and success.

        Costs are ‖φ(c) − F‖² − ‖F‖². A row fails if float32 does not tell its candidates apart, or
        if fewer than k of those that it leaves differ.
        """
        nearest = np.zeros((len(F), k), dtype=np.intp)
        costs = np.zeros((len(F), k))
        done = np.zeros(len(F), dtype=bool)
        for start in range(0, len(F), AT_ONCE):
            rows = np.arange(start, min(start + AT_ONCE, len(F)))
            for wanted in (k, REPEATED * k):
                found = self._found(F[rows], k, wanted, n_threads)
                best = rows[found[2]]
                nearest[best], costs[best], done[best] = found[0], found[1], True
                rows = rows[~found[2]]
                if k == 1 or not len(rows):
                    break
        return nearest, costs, done

    def _found(
        self, F: Floats, k: int, wanted: int, n_threads: int
    ) -> tuple[Positions, Floats, npt.NDArray[np.bool_]]:
        """Return the k nearest for the rows that have as many, their costs, and these rows."""
        queries = np.ldexp(F, -self.exponent)
        offsets, found = near_candidates(
            queries if self.step is None else queries * self.step,
            *(self.values, self.half_squares, self.reach),
            *(wanted, MOST + 2 * wanted, n_threads),
        )
        row = np.repeat(np.arange(len(F)), np.diff(offsets))
        positions, where = np.unique(found, return_inverse=True)
        if not len(positions):
            return np.zeros((0, k), dtype=np.intp), np.zeros((0, k)), np.zeros(len(F), dtype=bool)
        outputs = self.take(positions)
        costs = self._costs(F, outputs, row, where)
        if k > 1:  # equal candidates count once
            group = distinct(outputs).group[where]
            first = np.unique(row * len(positions) + group, return_index=True)[1]
            row, found, costs = row[first], found[first], costs[first]
        order = np.lexsort((found, costs, row))
        counts = np.bincount(row, minlength=len(F))
        done = counts >= k
        best = order[(np.cumsum(counts) - counts)[done, None] + np.arange(k)]
        return found[best], costs[best], done

    def _costs(self, F: Floats, outputs: Outputs, row: Positions, where: Positions) -> Floats:
        """Return k(c, c) − 2⟨φ(c), F⟩ of some pairs of a row and an output."""
        vectors, squares = self.kernel.features(outputs), self.kernel.diag(outputs)
        costs = np.empty(len(row))
        size = max(1, BLOCK_BYTES // (8 * F.shape[1]))
        for start in range(0, len(row), size):
            pairs = slice(start, start + size)
            inner = np.einsum("ij,ij->i", F[row[pairs]], vectors[where[pairs]])
            costs[pairs] = squares[where[pairs]] - 2.0 * inner
        return costs


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
