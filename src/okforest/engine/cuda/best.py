"""Growing trees with best splits on a GPU: one after the other, level by level.

Each tree keeps a list of its rows in the order of every feature, in which the rows of a node are
contiguous. All cuts of a feature are scored by going through the rows of a node in that order. The
lists of a level are divided for the next one without changing the order of rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from okforest._utils.arrays import Ints, Progress
from okforest.engine.cpu import draw
from okforest.engine.cuda.layout import CONSTANTS, pool_bytes
from okforest.engine.cuda.transfers import (
    MAX_MEMORY_FRACTION,
    Weights,
    derive,
    factor_of,
    fill_record,
    readable,
    rule_values,
)
from okforest.engine.plan import GrowthPlan
from okforest.engine.trees import Trees

BEST_SOURCES = (
    *("common.cuh", "block.cuh", "slots.cuh", "best.cuh"),
    *("best_sums.cu", "best_splits.cu", "best_lists.cu"),
)
TILE = 1024  # positions of a list that a block takes, as in best_lists.cu
SORTED_AT_ONCE = 2**26  # values of lists that are copied at once

CHUNK = 512  # rows that a team of warps takes
MOST_OWN = 8  # columns of a thread
DRAW_THREADS = 4  # that draw the samples of the next trees


@dataclass(frozen=True)
class Team:
    """The warps that go through the rows of a node together, with all columns of the outputs.

    Parameters
    ----------
    rank : int
        Number of columns.
    """

    rank: int

    @property
    def own(self) -> int:
        """Number of columns of a thread."""
        return next(own for own in (1, 2, 4, 8) if 32 * own >= self.rank or own == MOST_OWN)

    @property
    def n_warps(self) -> int:
        """Number of warps."""
        return max(1, -(-self.rank // (32 * self.own)))

    @property
    def width(self) -> int:
        """Number of columns, with those beyond the rank."""
        return 32 * self.own * self.n_warps

    def constants(self) -> dict[str, int]:
        """Return what the kernels are compiled for."""
        return {"OWN": self.own, "TEAM": self.n_warps, "TEAM_BLOCKS": max(1, 16 // self.n_warps)}


class BestGrower:
    """Grows the trees of a plan with best splits on a device.

    Parameters
    ----------
    device : object
        What holds arrays and launches kernels; see :class:`okforest.engine.cuda.device.Device`.
    plan : GrowthPlan
        The data, the rules and the seed.
    chunk : int
        Rows that a team of warps takes.
    """

    def __init__(self, device: Any, plan: GrowthPlan, chunk: int = CHUNK):
        xp = device.xp
        if plan.gram:
            plan = replace(plan, outputs=factor_of(xp, plan.outputs), gram=False)
        self.device, self.plan, self.chunk, self.weights = device, plan, chunk, Weights.of(plan)
        self.n_rows, self.n_features = plan.X.shape
        self.max_features = min(plan.rules.max_features, self.n_features)
        self.team = Team(plan.outputs.shape[1])
        X = readable(plan.X)
        self.any_missing = X.dtype.kind == "f" and bool(X.min() != X.min())
        self._check_memory(X.dtype.itemsize)
        norms = 8 * 32 * 33 * self.team.n_warps, 8 * 32 * self.team.n_warps
        shared = pool_bytes(*norms * (2 if self.any_missing else 1))
        self.kernels = device.kernels(
            {
                **CONSTANTS,
                "CHUNK": chunk,
                "INPUT_BYTES": X.dtype.itemsize,
                **self.team.constants(),
            },
            dict.fromkeys(("find_gains", "take_cuts", "try_features"), shared),
            BEST_SOURCES,
        )
        self.n_workers = 32 * device.n_processors
        features = xp.arange(self.n_features, dtype=np.int32)
        self.data = {
            "X": xp.asarray(X),
            "phi": self._padded_outputs(),
            "order": xp.tile(features, self.n_workers),
            "weight": xp.asarray(self.weights.weight),
            "count": xp.asarray(self.weights.count),
        }
        self.square = (self.data["phi"] ** 2).sum(axis=1)
        self.sorted = self._sorted_rows()

    def _check_memory(self, input_bytes: int) -> None:
        n, p, width = self.n_rows, self.n_features, self.team.width
        data = n * (input_bytes * p + 16 * width + 4 * p + 40)
        # Two sets of lists, the means of all nodes, and what is known about chunks.
        n_chunks = 2 * n // self.chunk + 1
        tree = n * (8 * p + 8 * width + 12 * self.max_features + 150)
        tree += n_chunks * 8 * (self.max_features + 1) * (width + 2) + 24 * min(
            SORTED_AT_ONCE, n * p
        )
        free = self.device.free_memory()
        if data + tree > MAX_MEMORY_FRACTION * free:
            raise MemoryError(
                f"Growing a tree with best splits on {n:,} rows, {p} features and outputs of "
                f"{self.team.rank} dimensions takes {data / 2**30:.1f} GiB for the data and "
                f"{tree / 2**30:.1f} GiB for the tree; {free / 2**30:.1f} GiB of the GPU's memory "
                "are free. Set device='cpu', or reduce the outputs by search_rank."
            )

    def _padded_outputs(self) -> Any:
        xp, values = self.device.xp, self.plan.outputs
        padded = xp.zeros((self.n_rows, self.team.width))
        padded[:, : self.team.rank] = xp.asarray(values)
        return padded

    def _sorted_rows(self) -> Any:
        """Return the rows in the order of each feature, missing values last."""
        xp, X = self.device.xp, self.data["X"]
        rows = xp.empty((self.n_features, self.n_rows), dtype=np.int32)
        for j in range(self.n_features):
            rows[j] = xp.argsort(xp.ascontiguousarray(X[:, j]), kind="stable")
        return rows

    def grow(self, trees: range, progress: Progress | None = None) -> Trees:
        """Grow trees, one after the other."""
        grown = []
        for number, n_times in zip(trees, _ahead(self._draw, trees), strict=True):
            grown.append(self._grow_tree(number, n_times))
            if progress is not None:
                progress(len(grown))
        return Trees.join(grown)

    def _draw(self, number: int) -> Ints:
        """Return how often each row is drawn for a tree; without draws, which rows take part."""
        plan = self.plan
        if not plan.n_draws:
            return (plan.row_weight > 0).astype(np.int32)
        drawn = draw(plan.row_weight, plan.n_draws, plan.seed, range(number, number + 1))
        n_times = np.zeros(self.n_rows, dtype=np.int32)
        n_times[drawn.members] = drawn.times
        return n_times

    def _grow_tree(self, number: int, n_times: Ints) -> Trees:
        plan = self.plan
        times = np.empty(0, dtype=np.int32)
        if plan.n_draws:
            weight = self.device.xp.asarray(n_times).astype(np.float64)
            self.data["weight"] = self.data["count"] = weight
        rows = np.flatnonzero(n_times).astype(np.int32)
        state = TreeState(self, rows, derive(plan.seed, number))
        levels = []
        while state.n_items:
            levels.append(state.split_level())
        members = np.array(self.device.to_host(state.lists[0][-1]))
        if plan.n_draws:
            times = n_times[members]
        nodes = {name: np.concatenate([level[name] for level in levels]) for name in levels[0]}
        n = len(nodes["left"])
        return Trees(
            **{**nodes, "missing_left": nodes["missing_left"].astype(np.bool_)},
            node_offsets=np.array([0, n]),
            member_offsets=np.array([0, len(members)]),
            subset_offsets=np.zeros(2, dtype=np.int64),
            subset=np.full(n, -1, dtype=np.int32),
            subset_words=np.empty(0, dtype=np.uint64),
            members=members,
            times=times,
            row_weight=np.ones(self.n_rows) if plan.n_draws else plan.row_weight,
            n_categories=plan.n_categories,
        )


def _ahead(call: Callable[[int], Ints], numbers: range) -> Iterator[Ints]:
    """Yield the results of calls, the next of which run in threads."""
    with ThreadPoolExecutor(DRAW_THREADS) as pool:
        pending = deque(pool.submit(call, number) for number in numbers[:DRAW_THREADS])
        for number in numbers:
            result = pending.popleft().result()
            if number + DRAW_THREADS < numbers.stop:
                pending.append(pool.submit(call, number + DRAW_THREADS))
            yield result


def grow_best_on(
    device: Any, plan: GrowthPlan, trees: range, progress: Progress | None = None, **options: Any
) -> Trees:
    """Grow some of the trees of a plan with best splits on a device."""
    return BestGrower(device, plan, **options).grow(trees, progress)


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
        self.plan_record = fill_record(self.device, "Plan", grower.data, self._plan_values())

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
            block = grower.sorted[first : first + step]
            lists[first : first + len(block)] = block[taken[block]].reshape(len(block), self.n)
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
        record = fill_record(self.device, "Level", arrays, values)
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
        record = fill_record(self.device, "Level", arrays, values)
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
