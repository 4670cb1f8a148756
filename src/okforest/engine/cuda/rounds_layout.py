"""Records and arrays of rounds of boosting on a GPU, and the memory that they need."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from okforest.engine.cuda.layout import CONSTANTS, ITEM, Sizes, pool_bytes

ROUND_SOURCES = (
    *("common.cuh", "block.cuh", "slots.cuh", "chunks.cu"),
    *("rounds.cu", "round_sums.cu", "round_splits.cu"),
)
# Smaller chunks than for forests: a single tree must keep all processors busy.
CHUNKS = {"CHUNK": 256, "MOST_CHUNKS": 1024}
MOST_KEPT = 16  # values of a row that a thread reads at once

# The fields of struct Rounds, in its order.
ROUNDS = np.dtype(
    [
        (name, np.uint64)
        for name in (
            *("phi", "squares", "state", "nodes", "feature", "threshold", "missing_left"),
            *("middle", "left", "weight", "variance", "priority", "sums", "before"),
            *("item_sums", "item_rows", "item_weight", "item_count", "item_scale", "spread"),
            *("leaf", "means", "places"),
        )
    ]
    + [("n_parts", np.int64), ("by_gain", np.int64), ("seed", np.uint64)]
    + [("learning_rate", np.float64)]
)


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
