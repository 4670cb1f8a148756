"""Growing trees with best splits on a GPU: one after the other, level by level.

Each tree keeps a list of its rows in the order of every feature, in which the rows of a node are
contiguous. All cuts of a feature are scored by going through the rows of a node in that order. The
lists of the next level are those of this one, divided without changing the order of rows.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from okforest._utils.arrays import Ints, Progress
from okforest.engine.cpu import draw
from okforest.engine.cuda.best_tree import BEST_SOURCES, SORTED_AT_ONCE, TreeState
from okforest.engine.cuda.inputs import readable
from okforest.engine.cuda.layout import CONSTANTS, pool_bytes
from okforest.engine.cuda.records import (
    SHARE,
    Weights,
    derive,
    factor_of,
)
from okforest.engine.plan import GrowthPlan
from okforest.engine.trees import Trees

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
        if data + tree > SHARE * free:
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
