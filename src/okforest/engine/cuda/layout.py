"""Numbers and records that the kernels and their caller share, and the memory that they need."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from okforest.engine.plan import GrowthPlan

# Nodes of more than LARGE rows are shared by several blocks, in chunks of about CHUNK rows; nodes
# of at most SMALL rows belong to one warp. A pass computes SLOTS sums over rows, COLUMNS at a time.
# A processor runs at least MIDDLE_BLOCKS or SMALL_BLOCKS blocks at once.
CONSTANTS = {
    "LARGE": 1024,
    "SMALL": 32,
    "CHUNK": 1024,
    "MOST_CHUNKS": 256,
    "SLOTS": 16,
    "COLUMNS": 256,
    "THREADS": 256,
    "MIDDLE_THREADS": 128,
    "MIDDLE_BLOCKS": 4,
    "SMALL_WARPS": 4,
    "SMALL_BLOCKS": 4,
}
SOURCES = (
    *("common.cuh", "block.cuh", "slots.cuh", "middle.cuh", "middle.cu", "gram.cuh", "small.cu"),
    *("chunks.cu", "sums.cu", "large.cu", "number.cu", "prepare.cu"),
)

FOLDER = Path(__file__).parent
STRUCTS = {
    "Item": "common.cuh",
    "Plan": "common.cuh",
    "Packing": "prepare.cu",
    "Arrays": "number.cu",
    "Level": "best.cuh",
    "Rounds": "rounds.cu",
    "ForestArrays": "predict.cu",
    "Walk": "predict.cu",
    "Means": "predict.cu",
    "SparseProduct": "predict.cu",
}
TYPES = {
    "int": np.int32,
    "i64": np.int64,
    "u64": np.uint64,
    "long long": np.int64,
    "double": np.float64,
}
COMMENT = re.compile("//.*")
DECLARATION = re.compile(r"\s*(?:const )?([\w ]+?)(?=\s*\*|\s+\w+\s*[,;\[])([^;]+);")
FIELD = re.compile(r"\s*(\*?)\s*(\w+)(?:\[(\d)\])?\s*")


@cache
def record_of(struct: str) -> np.dtype[Any]:
    """Return the record of a struct, from its declaration in the source of the kernels.

    Its fields are pointers, arrays of pointers, numbers of the types above, and other structs.
    They have no padding between them.
    """
    source = STRUCTS[struct]
    text = (FOLDER / source).read_text(encoding="utf-8")
    body = text.partition(f"struct {struct} {{")[2].partition("\n};")[0]
    assert body, f"{source} has no struct {struct}"
    fields: list[tuple[str, Any]] = []
    for kind, names in DECLARATION.findall(COMMENT.sub("", body)):
        for declared in names.split(","):
            match = FIELD.fullmatch(declared)
            assert match is not None, f"{struct} declares {declared}"
            pointer, name, count = match.groups()
            number = np.uint64 if pointer else TYPES.get(kind) or record_of(kind)
            numbered = [name] if count is None else [f"{name}_{i}" for i in range(int(count))]
            fields += [(each, number) for each in numbered]
    return np.dtype(fields)


ITEM = record_of("Item")
# Per node, as in okforest.engine.Trees.
ARRAYS: dict[str, Any] = {
    "feature": np.int32,
    "left": np.int32,
    "begin": np.int32,
    "end": np.int32,
    "threshold": np.float64,
    "weight": np.float64,
    "variance": np.float64,
    "missing_left": np.int8,
}


@dataclass(frozen=True)
class Sizes:
    """The sizes that the kernels' arrays follow from.

    Parameters
    ----------
    n_rows, n_features, rank : int
        Of the data.
    max_features : int
        Number of cuts tried at a node.
    any_missing : bool
        Whether any value of X is missing.
    plain : bool
        Whether every row has weight one.
    input_bytes : int
        Bytes of a value of X: 1, 4 or 8.
    large : int
        Nodes of more rows are large.
    """

    n_rows: int
    n_features: int
    rank: int
    max_features: int
    any_missing: bool
    plain: bool
    input_bytes: int
    large: int = CONSTANTS["LARGE"]

    @property
    def width(self) -> int:
        """Number of columns of the packed outputs."""
        return max(32, -(-self.rank // 32) * 32)

    @property
    def n_slots(self) -> int:
        """Number of sums over the rows of a node."""
        return 2 + 2 * self.max_features if self.any_missing else 1 + self.max_features

    @property
    def n_passes(self) -> int:
        """Number of passes that compute these sums."""
        return -(-self.n_slots // CONSTANTS["SLOTS"])

    @property
    def n_kept(self) -> int:
        """Number of values of a row that are kept between kernels; 0 if there are too many."""
        n = -(-self.max_features // 4) * 4
        return n if n <= CONSTANTS["SLOTS"] else 0

    @property
    def n_column_blocks(self) -> int:
        """Number of groups of columns that blocks of threads take."""
        return -(-self.width // CONSTANTS["COLUMNS"])

    def n_chunks(self, n_positions: int, n_nodes: int) -> int:
        """Return at least the number of chunks of large nodes."""
        return n_positions // CONSTANTS["CHUNK"] + n_nodes + 1

    def shapes(self, n_positions: int, n_trees: int) -> dict[str, tuple[Any, int]]:
        """Return type and length of each array for trees that grow at once."""
        n, k = n_positions, self.max_features
        n_large = n // self.large + 1
        n_chunks = self.n_chunks(n, n_large)
        key = np.uint64 if self.input_bytes == 8 else np.uint32
        i4, i8, f8 = np.int32, np.int64, np.float64
        return {
            "first": (i8, n_trees + 1),
            "rows_0": (i4, n),
            "rows_1": (i4, n),
            "members": (i4, n),
            "feature": (i4, n),
            "threshold": (f8, n),
            "missing_left": (np.int8, n),
            "split_begin": (i4, n),
            "split_end": (i4, n),
            "split_weight": (f8, n),
            "split_variance": (f8, n),
            "child": (i4, 2 * n),
            "leaf_end": (i4, n),
            "leaf_weight": (f8, n),
            "leaf_variance": (f8, n),
            "root": (i4, n_trees),
            "large_0": (ITEM, n_large + n_trees),
            "large_1": (ITEM, n_large + n_trees),
            "middle": (ITEM, n // CONSTANTS["SMALL"] + n_trees),
            "small": (ITEM, n // 2 + n_trees),
            "n_items": (i4, 8),
            "drawn": (i4, n_large * k),
            "low": (key, n_large * k),
            "high": (key, n_large * k),
            "missing": (i4, n_large * k),
            "first_chunk": (i4, n_large + 1),
            "taken": (i4, n_large),
            "middle_row": (i4, n_large),
            "inexact": (i4, n_large),
            "values": (np.float64 if self.input_bytes == 8 else np.float32, n * self.n_kept),
            "chunk_node": (i4, n_chunks),
            "chunk_order": (i4, n_chunks),
            "chunk_left": (i4, n_chunks),
            "partial": (f8, n_chunks * self.n_passes * CONSTANTS["SLOTS"] * self.width),
            "slot_rows": (i4, n_chunks * self.n_slots),
            "slot_weight": (f8, n_chunks * self.n_slots),
            "slot_count": (f8, n_chunks * self.n_slots),
            "scale": (f8, 2 * n_chunks),
            "list": (i4, 2 * n),
            "left": (i4, 2 * n),
            "n_nodes": (i8, n_trees),
            "node_offsets": (i8, n_trees + 1),
        }

    def output_bytes(self, weighted: bool) -> int:
        """Return the memory of the packed outputs, in bytes."""
        return 4 * self.n_rows * self.width * (1 + weighted)

    def input_and_row_bytes(self, n_workers: int) -> int:
        """Return the memory of the other data that all trees share, in bytes."""
        return self.n_rows * (self.input_bytes * self.n_features + 32) + (
            4 * n_workers * self.n_features
        )

    def batch_bytes(self, n_positions: int, n_trees: int) -> int:
        """Return the memory for trees that grow at once, with the arrays of the result."""
        arrays = self.shapes(n_positions, n_trees).values()
        # Arrays of the result are copied while the next trees grow.
        result = 4 * n_positions * sum(np.dtype(kind).itemsize for kind in ARRAYS.values())
        weights = 0 if self.plain else 8 * n_trees * self.n_rows
        return sum(np.dtype(kind).itemsize * n for kind, n in arrays) + result + weights

    def known(self, natural: bool, bootstrap: bool) -> dict[str, int]:
        """Return what the plan says about all nodes, as constants for the compiler."""
        return {
            "PLAIN": int(self.plain),
            "ANY_MISSING": int(self.any_missing),
            "NATURAL": int(natural),
            "BOOTSTRAP": int(bootstrap),
            "FEW": int(self.n_kept > 0),
            "N_PASSES": self.n_passes,
        }

    def shared_bytes(self) -> dict[str, int]:
        """Return the shared memory of a block of the kernels that choose its size."""
        k, slots, passes = self.max_features, self.n_slots, self.n_passes
        warps = CONSTANTS["THREADS"] // 32
        key = 8 if self.input_bytes == 8 else 4
        sides = pool_bytes(
            4 * k, 32 * k, 4 * k, *4 * [8 * k], 4 * k, 4 * k, 8 * slots, 8 * slots, 4 * slots
        )
        sums = 8 * CONSTANTS["SLOTS"]
        chunk = pool_bytes(sums * CONSTANTS["COLUMNS"], 4 * 128, 8 * 128, 8 * 128, 8 * warps)
        middle_warps = CONSTANTS["MIDDLE_THREADS"] // 32
        parts = middle_warps * passes * CONSTANTS["SLOTS"]
        tile = self.large + 8 * middle_warps
        weights = 8 * (1 if self.plain else parts)
        middle = pool_bytes(
            *(4 * 65 * CONSTANTS["SLOTS"] * middle_warps, 4 * CONSTANTS["COLUMNS"]),
            *(4 * tile, 4 * passes * tile, 4 * self.large, 4 * parts, weights, weights),
            *(key * k, key * k, 8 * k, 8 * 3 * middle_warps, 16 * ITEM.itemsize),
        )
        cuts = -(-k // 32) * 32
        small = pool_bytes(
            *(8 * 32 * 33 // 2, 8 * 32, 8 * 32, 8 * 32, 8 * cuts, 8 * cuts, 4 * cuts, 4 * cuts),
            *(8 * cuts, 4 * cuts, key * 512, 4 * 32, 4 * 32, 8 * 24, 16 * 24),
        )
        return {
            "sum_chunks": sides + chunk,
            "sum_chunks_exactly": sides + chunk,
            "choose_splits": sides + pool_bytes(8 * self.width, 8 * warps),
            "grow_middle": sides + middle,
            "grow_small": CONSTANTS["SMALL_WARPS"] * small,
        }


def pool_bytes(*n_bytes: int) -> int:
    """Return the size of arrays that each begin at a multiple of 16 bytes."""
    return sum(-(-n // 16) * 16 for n in n_bytes)


def sizes_of(plan: GrowthPlan, any_missing: bool, plain: bool) -> Sizes:
    """Return the sizes of a plan."""
    n_rows, n_features = plan.X.shape
    return Sizes(
        n_rows=n_rows,
        n_features=n_features,
        rank=plan.outputs.shape[1],
        max_features=min(plan.rules.max_features, n_features),
        any_missing=any_missing,
        plain=plain,
        input_bytes=plan.X.dtype.itemsize,
    )
