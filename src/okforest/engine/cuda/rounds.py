"""Rounds of boosting on a GPU: small trees, grown best first on residuals that stay on the device.

A tree with at most J splits takes J steps. Each splits the node of the highest priority, and
searches the splits of its two children. The device keeps the nodes that wait, and the host reads
nothing before the tree is done. Residuals and sums are in float64.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from okforest._utils.arrays import Floats, Ints
from okforest.engine.cuda.layout import (
    CONSTANTS,
    ITEM,
    Sizes,
    pool_bytes,
    sizes_of,
)
from okforest.engine.cuda.transfers import (
    MAX_MEMORY_FRACTION,
    Weights,
    empty,
    fill_record,
    readable,
    rule_values,
)
from okforest.engine.plan import GrowthPlan, GrowthRules
from okforest.engine.trees import GrownRound, Trees

MOST_SPLITS = 255
MOST_CUTS = 512
MOST_COLUMNS = 4096
MOST_ROWS = 2**30 - 1
ROUND_SOURCES = (
    *("common.cuh", "block.cuh", "slots.cuh", "chunks.cu"),
    *("rounds.cu", "round_sums.cu", "round_splits.cu"),
)
# Smaller chunks than for forests: a single tree must keep all processors busy.
CHUNKS = {"CHUNK": 256, "MOST_CHUNKS": 1024}
MOST_KEPT = 16  # values of a row that a thread reads at once


@dataclass(frozen=True)
class RoundSizes:
    """The sizes that arrays of rounds follow from.

    Parameters
    ----------
    sizes : Sizes
        Those of the data.
    n_nodes : int
        The largest number of nodes of a tree.
    chunk, most_chunks : int
        Rows of a chunk, and the largest number of chunks of a node.
    """

    sizes: Sizes
    n_nodes: int
    chunk: int
    most_chunks: int

    @property
    def slots(self) -> int:
        """Number of sums that a pass computes."""
        return 16 if self.sizes.n_slots <= 16 else 32

    @property
    def n_passes(self) -> int:
        """Number of passes that compute all sums."""
        return -(-self.sizes.n_slots // self.slots)

    @property
    def n_kept(self) -> int:
        """Number of values of a row that are kept between kernels; 0 if there are too many."""
        n = -(-self.sizes.max_features // 4) * 4
        return n if n <= MOST_KEPT else 0

    @property
    def n_parts(self) -> int:
        """Number of parts of a chunk that warps sum, where there are few columns."""
        n_warps = CONSTANTS["THREADS"] // 32
        return n_warps // min(n_warps, self.sizes.width // 32)

    @property
    def n_chunks(self) -> int:
        """At least the number of chunks of one or two nodes."""
        return min(self.sizes.n_rows // self.chunk, 2 * self.most_chunks) + 3

    def shapes(self) -> dict[str, tuple[Any, int]]:
        """Return type and length of each array."""
        n, k, width, n_nodes = (
            *(self.sizes.n_rows, self.sizes.max_features, self.sizes.width),
            self.n_nodes,
        )
        n_slots, n_chunks = self.sizes.n_slots, self.n_chunks
        key = np.uint64 if self.sizes.input_bytes == 8 else np.uint32
        value = np.float64 if self.sizes.input_bytes == 8 else np.float32
        i4, f8 = np.int32, np.float64
        return {
            "rows_0": (i4, n),
            "rows_1": (i4, n),
            "large_1": (ITEM, 2),
            "drawn": (i4, 2 * k),
            "low": (key, 2 * k),
            "high": (key, 2 * k),
            "missing": (i4, 2 * k),
            "first_chunk": (i4, 3),
            "values": (value, n * self.n_kept),
            "chunk_node": (i4, n_chunks),
            "partial": (f8, n_chunks * self.n_parts * self.n_passes * self.slots * width),
            "slot_rows": (i4, n_chunks * n_slots),
            "slot_weight": (f8, n_chunks * n_slots),
            "slot_count": (f8, n_chunks * n_slots),
            "scale": (f8, n_chunks),
            "squares": (f8, n),
            "state": (i4, 2),
            "nodes": (ITEM, n_nodes),
            "feature": (i4, n_nodes),
            "threshold": (f8, n_nodes),
            "missing_left": (i4, n_nodes),
            "middle": (i4, n_nodes),
            "left": (i4, n_nodes),
            "node_weight": (f8, n_nodes),
            "variance": (f8, n_nodes),
            "priority": (f8, n_nodes),
            "sums": (f8, n_nodes * width),
            "before": (i4, n),
            "item_sums": (f8, 2 * n_slots * width),
            "item_rows": (f8, 2 * n_slots),
            "item_weight": (f8, 2 * n_slots),
            "item_count": (f8, 2 * n_slots),
            "item_scale": (f8, 2),
            "spread": (f8, n_chunks),
            "leaf": (i4, n_nodes),
            "means": (f8, (n_nodes // 2 + 1) * width),
            "places": (np.uint16, n),
        }

    def n_bytes(self) -> int:
        """Return the memory that all arrays take, with the data."""
        per_row = 16 * self.sizes.width + self.sizes.input_bytes * self.sizes.n_features + 16
        arrays = sum(np.dtype(kind).itemsize * n for kind, n in self.shapes().values())
        return self.sizes.n_rows * per_row + arrays

    def shared_bytes(self) -> dict[str, int]:
        """Return the shared memory of a block of the kernels that choose its size."""
        k, slots, warps = self.sizes.max_features, self.sizes.n_slots, CONSTANTS["THREADS"] // 32
        sides = pool_bytes(
            4 * k, 32 * k, 4 * k, *4 * [8 * k], 4 * k, 4 * k, 8 * slots, 8 * slots, 4 * slots
        )
        parts = warps * self.slots
        return {
            "sum_items": sides + pool_bytes(4 * parts, 8 * parts, 8 * parts, 8 * warps),
            "choose_for_items": sides + pool_bytes(8 * self.sizes.width, 8 * warps),
        }


def unsupported_rounds(plan: GrowthPlan) -> str | None:
    """Return what rounds on residuals of this plan need that the device does not have, or None."""
    rules = plan.rules
    if not isinstance(plan.X, np.ndarray):
        return "sparse inputs"
    if plan.n_categories.any():
        return "categorical features"
    if not rules.random_splits:
        return "best splits in boosting (only random ones are there: splitter='random')"
    if rules.min_impurity_decrease > 0:
        return "min_impurity_decrease in boosting"
    if plan.gram:
        return "residuals as a Gram matrix (set embedding='factor')"
    if min(rules.max_leaf_nodes, len(plan.X)) - 1 > MOST_SPLITS:
        return f"more than {MOST_SPLITS} splits of a tree in boosting (max_splits)"
    if min(rules.max_features, plan.X.shape[1]) > MOST_CUTS:
        return f"more than {MOST_CUTS} candidate features in boosting (max_features)"
    if plan.outputs.shape[1] > MOST_COLUMNS:
        return f"outputs of more than {MOST_COLUMNS:,} dimensions (set embedding_rank)"
    if len(plan.X) > MOST_ROWS:
        return f"more than {MOST_ROWS:,} rows"
    return None


class Rounds:
    """Grows one tree after the other on residuals, and subtracts its predictions from them.

    Parameters
    ----------
    device : object
        What holds arrays and launches kernels; see :class:`okforest.engine.cuda.device.Device`.
    plan : GrowthPlan
        The data, with the residuals as outputs, and the seed.
    learning_rate : float
        The factor of the means of the leaves.
    chunk : int
        Rows of a chunk.
    """

    def __init__(
        self,
        device: Any,
        plan: GrowthPlan,
        learning_rate: float,
        chunk: int = CHUNKS["CHUNK"],
    ):
        xp = device.xp
        X = readable(plan.X)
        plan = replace(plan, X=X)
        self.device, self.plan, self.learning_rate = device, plan, learning_rate
        any_missing = X.dtype.kind == "f" and bool(X.min() != X.min())
        n_nodes = 2 * min(plan.rules.max_leaf_nodes, len(X)) - 1
        self.sizes = RoundSizes(
            sizes_of(plan, any_missing, False), n_nodes, chunk, CHUNKS["MOST_CHUNKS"]
        )
        self._check_memory()
        self.kernels = device.kernels(
            {
                **CONSTANTS,
                "CHUNK": chunk,
                "MOST_CHUNKS": CHUNKS["MOST_CHUNKS"],
                "SLOTS": self.sizes.slots,
                "INPUT_BYTES": X.dtype.itemsize,
            },
            self.sizes.shared_bytes(),
            ROUND_SOURCES,
        )
        self.arrays = {name: empty(xp, kind, n) for name, (kind, n) in self.sizes.shapes().items()}
        self.arrays["X"] = xp.asarray(X)
        n_orders = CONSTANTS["THREADS"] // 32
        self.arrays["order"] = xp.tile(xp.arange(X.shape[1], dtype=np.int32), n_orders)
        self.arrays["phi"] = self._padded(plan.outputs)
        self.arrays["squares"] = (self.arrays["phi"] ** 2).sum(axis=1)
        self._use_weights(plan.row_weight)

    def _check_memory(self) -> None:
        needed, free, data = self.sizes.n_bytes(), self.device.free_memory(), self.sizes.sizes
        if needed > MAX_MEMORY_FRACTION * free:
            raise MemoryError(
                f"Boosting on {data.n_rows:,} rows, {data.n_features} features and outputs of "
                f"{data.rank} dimensions takes {needed / 2**30:.1f} GiB; {free / 2**30:.1f} GiB of "
                "the GPU's memory are free. Set device='cpu', or reduce the outputs by "
                "embedding_rank."
            )

    def _padded(self, values: Floats) -> Any:
        xp, width = self.device.xp, self.sizes.sizes.width
        if values.shape[1] == width:
            return xp.array(values, order="C")
        padded = xp.zeros((len(values), width))
        padded[:, : values.shape[1]] = xp.asarray(values)
        return padded

    def squares(self) -> Floats:
        """Return the squared norms of the residuals."""
        return np.array(self.device.to_host(self.arrays["squares"]))

    def grow(self, number: int, rules: GrowthRules, row_weight: Floats) -> GrownRound:
        """Grow a tree on rows of these weights, and subtract its predictions from all rows."""
        if row_weight is not self.row_weight:
            self._use_weights(row_weight)
        records = self._records(rules)
        n_chunks, sizes = self.sizes.n_chunks, self.sizes.sizes
        threads = CONSTANTS["THREADS"]

        def launch(name: str, *grid: int, numbers: tuple[int, ...] = ()) -> None:
            grid = (*grid, 1) if len(grid) == 1 else grid
            self.kernels.launch(name, (grid[0], grid[1]), threads, *records, *numbers)

        def evaluate() -> None:
            self.kernels.launch("find_ranges", (n_chunks, 1), threads, records[0], 2, 1)
            launch("sum_items", n_chunks * self.sizes.n_passes, -(-sizes.width // threads))
            launch("add_chunks", sizes.n_slots * (sizes.width // 32), 2)
            launch("measure_spread", n_chunks)
            launch("choose_for_items", 2)

        self.arrays["rows_1"][: len(self.rows)] = self.drawn
        launch("begin_tree", 1, numbers=(number, len(self.rows)))
        evaluate()
        for _ in range(min(rules.max_leaf_nodes, len(self.rows)) - 1):
            launch("pick_node", 1)
            launch("divide_rows_of_node", n_chunks)
            evaluate()
        launch("finish_tree", 1)
        launch("subtract_means", -(-sizes.n_rows // threads))
        return self._collect()

    def _use_weights(self, row_weight: Floats) -> None:
        self.row_weight = row_weight
        self.weights = Weights.of(replace(self.plan, row_weight=row_weight))
        self.rows = np.flatnonzero(row_weight).astype(np.int32)
        self.drawn = self.device.xp.asarray(self.rows)
        self.arrays["weight"] = self.device.xp.asarray(self.weights.weight)
        self.arrays["count"] = self.device.xp.asarray(self.weights.count)

    def _records(self, rules: GrowthRules) -> tuple[Any, Any]:
        sizes, weights = self.sizes.sizes, self.weights
        plan = {
            "n_rows": sizes.n_rows,
            "n_features": sizes.n_features,
            "width": sizes.width,
            "n_trees": 1,
            "max_features": sizes.max_features,
            "natural": sizes.max_features == sizes.n_features and sizes.max_features > 1,
            "any_missing": sizes.any_missing,
            "n_slots": sizes.n_slots,
            "n_passes": self.sizes.n_passes,
            "n_kept": self.sizes.n_kept,
            "plain": weights.plain,
            **rule_values(rules, weights.total),
        }
        rounds = {
            "n_parts": self.sizes.n_parts,
            "by_gain": rules.order == "gain",
            "seed": self.plan.seed,
            "learning_rate": self.learning_rate,
        }
        arrays = {**self.arrays}
        named = {**arrays, "weight": arrays["node_weight"]}
        return (
            fill_record(self.device, "Plan", arrays, plan),
            fill_record(self.device, "Rounds", named, rounds),
        )

    def _collect(self) -> GrownRound:
        get, unit = self.device.to_host, self.weights.unit
        n = int(get(self.arrays["state"])[0])
        nodes = {
            name: np.array(get(self.arrays[name][:n]))
            for name in ("feature", "threshold", "missing_left", "left", "node_weight", "variance")
        }
        items = np.ascontiguousarray(get(self.arrays["nodes"][: n * ITEM.itemsize // 8]))
        items = items.view(ITEM)
        order, left = number_by_level(nodes["left"])
        split = left >= 0
        tree = Trees(
            node_offsets=np.array([0, n]),
            member_offsets=np.array([0, len(self.rows)]),
            subset_offsets=np.zeros(2, dtype=np.int64),
            feature=np.where(split, nodes["feature"][order], -1).astype(np.int32),
            left=left,
            threshold=np.where(split, nodes["threshold"][order], 0.0),
            missing_left=np.where(split, nodes["missing_left"][order], 0).astype(np.bool_),
            subset=np.full(n, -1, dtype=np.int32),
            subset_words=np.empty(0, dtype=np.uint64),
            weight=nodes["node_weight"][order] * unit,
            variance=nodes["variance"][order] * unit,
            begin=items["begin"][order],
            end=items["end"][order],
            members=np.array(get(self.arrays["rows_0"][: len(self.rows)])),
            times=np.empty(0, dtype=np.int32),
            row_weight=self.row_weight,
            n_categories=self.plan.n_categories,
        )
        width, n_leaves = self.sizes.sizes.width, (n + 1) // 2
        means = get(self.arrays["means"][: n_leaves * width]).reshape(n_leaves, width)
        return GrownRound(
            tree,
            np.array(get(self.arrays["places"])),
            np.array(means[:, : self.sizes.sizes.rank], order="C"),
        )


def number_by_level(left: Ints) -> tuple[Ints, Ints]:
    """Return the nodes of a tree level by level, and the left child of each by these numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.engine.cuda.rounds import number_by_level
    >>> order, new_left = number_by_level(np.array([1, 3, -1, -1, -1]))
    >>> order.tolist(), new_left.tolist()
    ([0, 1, 2, 3, 4], [1, 3, -1, -1, -1])
    """
    order, new_left = [0], []
    for node in order:
        child = int(left[node])
        new_left.append(len(order) if child >= 0 else -1)
        if child >= 0:
            order += [child, child + 1]
    return np.array(order, dtype=np.int32), np.array(new_left, dtype=np.int32)
