"""A tree that grows with best splits on a GPU: its lists of rows, and the nodes of a level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from okforest._utils.arrays import Ints
from okforest.engine.cuda.layout import CONSTANTS, PLAN
from okforest.engine.cuda.records import fill_record, rule_values

if TYPE_CHECKING:
    from okforest.engine.cuda.best import BestGrower

BEST_SOURCES = (
    *("common.cuh", "block.cuh", "slots.cuh", "best.cuh"),
    *("best_sums.cu", "best_splits.cu", "best_lists.cu"),
)
TILE = 1024  # positions of a list that a block takes, as in best_lists.cu
SORTED_AT_ONCE = 2**26  # values of lists that are copied at once

# The fields of struct Level, in its order.
LEVEL = np.dtype(
    [
        (name, np.uint64)
        for name in (
            *("phi", "square", "list", "next_list", "node_at", "next_node_at", "on_left", "lefts"),
            *("begin", "end", "seed", "first_unit", "first_many", "many", "mean", "weight"),
            *("count", "variance", "noise", "state", "drawn", "chunk_sum"),
            *("chunk_weight", "chunk_count", "chunk_scale", "part", "part_weight"),
            *("part_count", "missing_sum", "missing_weight", "missing_count", "most", "cut"),
            *("cut_weight", "cut_gain", "feature", "least", "threshold", "missing_left", "middle"),
            *("n_left", "rank", "left_before", "next_begin", "next_end", "next_seed"),
        )
    ]
    + [(name, np.int64) for name in ("n", "n_items", "depth")]
)


class TreeState:
    """A tree that grows: its lists of rows, and the nodes of the current level.

    Parameters
    ----------
    grower : BestGrower
        What all trees share.
    rows : ndarray
        The rows of the tree, ascending.
    seed : int
        The seed of the tree.
    """

    def __init__(self, grower: BestGrower, rows: Ints, seed: int):
        self.grower, self.device, self.kernels = grower, grower.device, grower.kernels
        xp, self.n = self.device.xp, len(rows)
        self.lists = [self._first_lists(rows), None]
        self.lists[1] = xp.empty_like(self.lists[0])
        self.node_at = [xp.zeros(self.n, dtype=np.int32), xp.empty(self.n, dtype=np.int32)]
        self.on_left = xp.zeros(grower.n_rows, dtype=np.int8)
        self.begin, self.end = xp.zeros(1, dtype=np.int32), xp.full(1, self.n, dtype=np.int32)
        self.seed = xp.asarray(np.array([seed], dtype=np.uint64))
        self.n_items, self.n_nodes, self.depth = 1, 1, 0
        self.plan_record = fill_record(self.device, PLAN, grower.data, self._plan_values())

    def _first_lists(self, rows: Ints) -> Any:
        xp, grower = self.device.xp, self.grower
        lists = xp.empty((grower.n_features + 1, self.n), dtype=np.int32)
        lists[-1] = xp.asarray(rows)
        if self.n == grower.n_rows:
            lists[:-1] = grower.sorted
            return lists
        taken = np.zeros(grower.n_rows, dtype=bool)
        taken[rows] = True
        taken = xp.asarray(taken)
        step = max(1, SORTED_AT_ONCE // grower.n_rows)
        for first in range(0, grower.n_features, step):
            some = grower.sorted[first : first + step]
            lists[first : first + len(some)] = some[taken[some]].reshape(len(some), self.n)
        return lists

    def _plan_values(self) -> dict[str, Any]:
        grower = self.grower
        return {
            "n_rows": grower.n_rows,
            "n_features": grower.n_features,
            "width": grower.team.width,
            "n_trees": 1,
            "max_features": grower.max_features,
            "natural": grower.max_features == grower.n_features and grower.max_features > 1,
            "any_missing": grower.any_missing,
            "plain": grower.weights.plain,
            **rule_values(grower.plan.rules, grower.weights.total),
        }

    def split_level(self) -> dict[str, Any]:
        """Split the nodes of this level, go to the next one, and return these nodes."""
        xp, n = self.device.xp, self.n_items
        n_chunks = (self.end - self.begin + (self.grower.chunk - 1)) // self.grower.chunk
        several = n_chunks > 1
        first_unit = _offsets(xp, n_chunks)
        first_many = _offsets(xp, xp.where(several, n_chunks, 0))
        many = xp.cumsum(several.astype(np.int32), dtype=np.int32)
        counts = xp.stack([first_unit[-1], first_many[-1], many[-1]])
        n_units, n_many, n_several = (int(count) for count in self.device.to_host(counts))
        arrays = self._level_arrays(n_units, n_many, n_several)
        arrays.update(first_unit=first_unit, first_many=first_many, many=many)
        values = {"n": self.n, "n_items": n, "depth": self.depth}
        record = fill_record(self.device, LEVEL, arrays, values)
        if self.depth < self.grower.plan.rules.max_depth:
            self._find_splits(record, n_units, n_many, n_several)
        else:
            self._measure(record, n_many)
            arrays["n_left"][:] = 0
        split = arrays["n_left"] > 0
        rank = _offsets(xp, split)
        n_splits = int(rank[-1])
        nodes = self._nodes(arrays, split, rank)
        if n_splits:
            self._next_level(arrays, values, rank, n_splits)
        self.n_items, self.depth = 2 * n_splits, self.depth + 1
        self.n_nodes += 2 * n_splits
        return nodes

    def _level_arrays(self, n_units: int, n_many: int, n_several: int) -> dict[str, Any]:
        xp, n, k, width = (
            *(self.device.xp, self.n_items, self.grower.max_features),
            self.grower.team.width,
        )
        n_tiles = -(-self.n // TILE)
        n_missing = n_several * k if self.grower.any_missing else 0
        i4, f8 = np.int32, np.float64
        shapes = {
            "lefts": (i4, (self.grower.n_features + 1) * n_tiles),
            "mean": (f8, n * width),
            **dict.fromkeys(("weight", "count", "variance", "noise"), (f8, n)),
            **dict.fromkeys(("state", "feature", "missing_left", "middle", "n_left"), (i4, n)),
            **dict.fromkeys(("least", "threshold"), (f8, n)),
            "drawn": (i4, n * k),
            "chunk_sum": (f8, n_many * width),
            **dict.fromkeys(("chunk_weight", "chunk_count", "chunk_scale"), (f8, n_many)),
            "part": (f8, n_many * k * width),
            "part_weight": (f8, n_many * k),
            "part_count": (f8, n_many * k),
            "missing_sum": (f8, n_missing * width),
            "missing_weight": (f8, n_missing),
            "missing_count": (f8, n_missing),
            "most": (f8, n_units * k),
            "cut": (i4, 2 * n_units),
            "cut_weight": (f8, 2 * n_units),
            "cut_gain": (f8, 2 * n_units),
        }
        arrays = {name: xp.empty(max(1, size), dtype=kind) for name, (kind, size) in shapes.items()}
        return {
            **arrays,
            "phi": self.grower.data["phi"],
            "square": self.grower.square,
            "list": self.lists[0],
            "next_list": self.lists[1],
            "node_at": self.node_at[0],
            "next_node_at": self.node_at[1],
            "on_left": self.on_left,
            "begin": self.begin,
            "end": self.end,
            "seed": self.seed,
        }

    def _launch(
        self, name: str, record: Any, n_blocks: int, threads: int = 32, n_y: int = 1
    ) -> None:
        if n_blocks:
            self.kernels.launch(name, (n_blocks, n_y), threads, self.plan_record, record)

    def _measure(self, record: Any, n_many: int) -> None:
        team, workers = 32 * self.grower.team.n_warps, min(self.n_items, self.grower.n_workers)
        self._launch("sum_node_chunks", record, n_many, team)
        self._launch("measure_nodes", record, workers, team)

    def _find_splits(self, record: Any, n_units: int, n_many: int, n_several: int) -> None:
        k, team = self.grower.max_features, 32 * self.grower.team.n_warps
        workers = min(self.n_items, self.grower.n_workers)
        self._measure(record, n_many)
        self._launch("draw_for_nodes", record, workers)
        self._launch("sum_feature_chunks", record, n_many * k, team)
        self._launch("add_feature_chunks", record, n_several * k, team)
        self._launch("find_gains", record, n_units * k, team)
        self._launch("choose_features", record, workers)
        self._launch("take_cuts", record, n_units, team)
        self._launch("try_features", record, workers, team)
        self._launch("finish_nodes", record, workers)

    def _next_level(self, arrays: dict[str, Any], values: Any, rank: Any, n_splits: int) -> None:
        xp, threads = self.device.xp, CONSTANTS["THREADS"]
        begin, end = (xp.empty(2 * n_splits, dtype=np.int32) for _ in range(2))
        seed = xp.empty(2 * n_splits, dtype=np.uint64)
        arrays.update(
            rank=rank,
            left_before=_offsets(xp, arrays["n_left"]),
            next_begin=begin,
            next_end=end,
            next_seed=seed,
        )
        record = fill_record(self.device, LEVEL, arrays, values)
        n_tiles, n_lists = -(-self.n // TILE), self.grower.n_features + 1
        self._launch("make_children", record, -(-self.n_items // threads), threads)
        self._launch("mark_rows", record, -(-self.n // threads), threads)
        self._launch("count_lefts", record, n_tiles, threads, n_lists)
        lefts = arrays["lefts"].reshape(n_lists, n_tiles)
        lefts[:] = xp.cumsum(lefts, axis=1, dtype=np.int32) - lefts
        self._launch("divide_lists", record, n_tiles, threads, n_lists)
        self.lists.reverse()
        self.node_at.reverse()
        self.begin, self.end, self.seed = begin, end, seed

    def _nodes(self, arrays: dict[str, Any], split: Any, rank: Any) -> dict[str, Any]:
        """Return the nodes of the level, as arrays of Trees on the host."""
        xp, unit = self.device.xp, self.grower.weights.unit
        left = xp.where(split, self.n_nodes + 2 * rank[:-1], -1).astype(np.int32)
        nodes = {
            "feature": xp.where(split, arrays["feature"], -1).astype(np.int32),
            "left": left,
            "threshold": xp.where(split, arrays["threshold"], 0.0),
            "missing_left": xp.where(split, arrays["missing_left"], 0).astype(np.int8),
            "weight": arrays["weight"] * unit,
            "variance": arrays["variance"] * unit,
            "begin": self.begin,
            "end": self.end,
        }
        return {name: np.array(self.device.to_host(array)) for name, array in nodes.items()}


def _offsets(xp: Any, counts: Any) -> Any:
    """Return 0 and the cumulative sums of counts, as int32."""
    offsets = xp.zeros(len(counts) + 1, dtype=np.int32)
    offsets[1:] = xp.cumsum(counts.astype(np.int32), dtype=np.int32)
    return offsets
