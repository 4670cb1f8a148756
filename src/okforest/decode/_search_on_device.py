"""Searching candidates on a GPU: by blocks of candidates, with the best so far kept there."""

from collections.abc import Callable, Iterable
from math import prod
from typing import Any

from okforest._typing import Floats, Outputs
from okforest.decode._found import Found
from okforest.decode._search import smallest
from okforest.weights import OutputSet, WeightMatrix
from okforest.weights.on_device import SpanOnDevice, Sums, candidates_at_once

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
