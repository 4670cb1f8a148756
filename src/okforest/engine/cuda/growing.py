"""Growing trees on a GPU: several at once, level by level.

Large nodes are split level by level, by all blocks of threads together. What is below a node of at
most 1,024 rows is grown by one block, and what is below a node of at most 32 rows by one warp, from
the inner products of its outputs. Features, cuts and ties are chosen as
on the CPU: without near-ties, the trees are the same.
"""

from dataclasses import replace
from math import frexp, ldexp
from typing import Any

import numpy as np
import scipy.sparse as sp

from okforest._utils.arrays import Progress
from okforest._utils.errors import warn
from okforest.engine.cpu import draw
from okforest.engine.cuda.device import NoDeviceError
from okforest.engine.cuda.layout import ARRAYS, CONSTANTS, ITEM, sizes_of
from okforest.engine.cuda.transfers import (
    MAX_MEMORY_FRACTION,
    Collector,
    Weights,
    derive,
    empty,
    factor_of,
    fill_record,
    readable,
    rule_values,
)
from okforest.engine.plan import GrowthPlan
from okforest.engine.trees import Trees

# Trees that grow at once: below, launches take longer than the work; above, nothing is gained.
MOST_AT_ONCE = 32
MOST_POSITIONS = 2**30 - 1  # child numbers are twice as large
MOST_SLOTS = 256
MOST_COLUMNS = 4096
MOST_COLUMNS_OF_BEST = 2048  # the norms of a team of warps are in shared memory
MOST_FEATURES = 2**16 - 2  # a list of rows for each is a row of blocks
MOST_TIMES = 2048  # a row's draws are exact in float16
# Packed outputs are scaled to at most this: twice as much fits in float16.
LARGEST_OUTPUT = 2.0**13


def unsupported(plan: GrowthPlan) -> str | None:
    """Return what trees of this plan need that the device does not have, or None."""
    rules = plan.rules
    n_rows = plan.X.shape[0]
    if sp.issparse(plan.X):
        return "sparse inputs"
    if plan.n_categories.any():
        return "categorical features"
    if rules.frobenius:
        return "criterion='frobenius'"
    if rules.ignore_constant:
        return "ignore_constant=True"
    if rules.order != "depth" and rules.max_leaf_nodes < n_rows:
        return "max_leaf_nodes"
    if not rules.random_splits and plan.X.shape[1] > MOST_FEATURES:
        return f"best splits with more than {MOST_FEATURES:,} features"
    if rules.random_splits and (reason := _too_many_candidates(plan)):
        return reason
    most = MOST_COLUMNS if rules.random_splits else MOST_COLUMNS_OF_BEST
    if plan.outputs.shape[1] > most:
        advice = "embedding='nystrom'" if plan.gram else "search_rank"
        kind = "" if rules.random_splits else "best splits with "
        return f"{kind}outputs of more than {most:,} dimensions (set {advice})"
    if n_rows > MOST_POSITIONS:
        return f"more than {MOST_POSITIONS:,} rows"
    return None


def _too_many_candidates(plan: GrowthPlan) -> str | None:
    for any_missing, of in ((False, ""), (True, " of inputs with missing values")):
        most = MOST_SLOTS // 2 - 1 if any_missing else MOST_SLOTS - 1
        too_many = sizes_of(plan, any_missing, False).max_features > most
        if too_many and (not any_missing or _any_missing(plan.X)):
            return f"more than {most} candidate features{of} (max_features)"
    return None


def _any_missing(X: Any) -> bool:
    return X.dtype.kind == "f" and bool(X.min() != X.min())  # NaN, if any is


class Grower:
    """Grows the trees of a plan on a device.

    Parameters
    ----------
    device : object
        What holds arrays and launches kernels; see :class:`okforest.engine.cuda.device.Device`.
    plan : GrowthPlan
        The data, the rules and the seed.
    large : int
        Nodes of more rows are large.
    """

    def __init__(self, device: Any, plan: GrowthPlan, large: int = CONSTANTS["LARGE"]):
        xp = device.xp
        X = readable(plan.X)  # an array that is on the device already stays there
        plan = replace(plan, X=X)
        if plan.gram:
            plan = replace(plan, outputs=factor_of(xp, plan.outputs), gram=False)
        self.device, self.plan, self.weights = device, plan, Weights.of(plan)
        self.sizes = replace(sizes_of(plan, _any_missing(X), self.weights.plain), large=large)
        k, p = self.sizes.max_features, self.sizes.n_features
        self.natural = k == p and k > 1  # candidates are all features, in their order
        self.kernels = device.kernels(
            {
                **{**CONSTANTS, "LARGE": large, "INPUT_BYTES": X.dtype.itemsize},
                **self.sizes.known(self.natural, plan.n_draws > 0),
            },
            self.sizes.shared_bytes(),
        )
        self.rows = np.flatnonzero(plan.row_weight).astype(np.int32)
        self.weighted = not self.weights.plain and not plan.n_draws
        self.n_workers = 8 * device.n_processors * CONSTANTS["SMALL_WARPS"]
        self._plan_memory()
        self.data: dict[str, Any] = {"X": xp.asarray(X)}
        self.data["order"] = xp.tile(
            xp.arange(self.sizes.n_features, dtype=np.int32), self.n_workers
        )
        self.unit = self._pack_outputs()
        if self.weighted:
            self.data["weight"] = xp.asarray(self.weights.weight)
            self.data["count"] = xp.asarray(self.weights.count)

    def _plan_memory(self) -> None:
        """Choose where the outputs are, and how many trees grow at once."""
        sizes = self.sizes
        outputs = sizes.output_bytes(self.weighted)
        others = sizes.input_and_row_bytes(self.n_workers)
        one = sizes.batch_bytes(len(self.rows), 1)
        free = self.device.free_memory()
        self.outputs_on_host = outputs + others + one > MAX_MEMORY_FRACTION * free
        if others + one > MAX_MEMORY_FRACTION * free:
            raise MemoryError(
                f"Growing a tree on {sizes.n_rows:,} rows and {sizes.n_features} features takes "
                f"{others / 2**30:.1f} GiB for the data, without the outputs, and "
                f"{one / 2**30:.1f} GiB for the tree; {free / 2**30:.1f} GiB of the GPU's memory "
                "are free. Set device='cpu'."
            )
        if self.outputs_on_host:
            warn(
                f"Outputs of {sizes.rank} dimensions for {sizes.n_rows:,} rows take "
                f"{outputs / 2**30:.1f} GiB, besides {(others + one) / 2**30:.1f} GiB for the rest;"
                f" {free / 2**30:.1f} GiB of the GPU's memory are free. The outputs stay in the "
                "memory of the host, and trees grow more slowly. search_rank reduces them.",
            )
            outputs = 0
        self.at_once = min(
            MOST_AT_ONCE,
            MOST_POSITIONS // len(self.rows),
            int((MAX_MEMORY_FRACTION * free - outputs - others) // one),
        )

    def _pack_outputs(self) -> float:
        """Pack the outputs around their mean, and return by what they were multiplied."""
        xp, sizes, n = self.device.xp, self.sizes, self.sizes.n_rows
        weight = xp.asarray(self.plan.row_weight / self.plan.row_weight.sum())
        # Two rounds over blocks of rows: the mean and the largest output, then the packing.
        step = max(1, 2**28 // max(1, 8 * sizes.rank))
        blocks = [slice(begin, begin + step) for begin in range(0, n, step)]
        one = xp.asarray(self.plan.outputs) if len(blocks) == 1 else None
        mean, largest = xp.zeros(sizes.rank), 0.0
        if sizes.rank:
            for block in blocks:
                phi = xp.asarray(self.plan.outputs[block]) if one is None else one
                mean += weight[block] @ phi
                largest = max(largest, float(abs(phi).max()))
        largest += float(abs(mean).max()) if sizes.rank else 0.0
        unit = ldexp(LARGEST_OUTPUT, -frexp(largest)[1]) if largest > 0 else 1.0
        empty_outputs = self.device.empty_on_host if self.outputs_on_host else xp.empty
        pairs = empty_outputs(n * sizes.width, dtype=np.uint32)
        weighted = empty_outputs(len(pairs), dtype=np.uint32) if self.weighted else pairs
        squares = xp.empty(2 * n)
        scaled = xp.asarray(self.weights.weight)
        for block in blocks:
            phi = xp.ascontiguousarray(xp.asarray(self.plan.outputs[block])) if one is None else one
            rows = slice(block.start * sizes.width, None)
            arrays = {
                "phi": phi,
                "mean": mean,
                "weight": scaled[block],
                "pairs": pairs[rows],
                "weighted": weighted[rows],
                "squares": squares[2 * block.start :],
            }
            values = {"n": len(phi), "rank": sizes.rank, "width": sizes.width, "scale": unit}
            packing = fill_record(self.device, "Packing", arrays, values)
            grid = -(-len(phi) // 8)
            self.kernels.launch("pack_outputs", (grid, 1), 256, packing, self.weighted)
        self.data.update(phi=pairs, weighted=weighted, squares=squares)
        return unit

    def grow(self, trees: range, progress: Progress | None = None) -> Trees:
        """Grow trees, as many at a time as the memory allows."""
        n_members = min(len(self.rows), self.plan.n_draws or len(self.rows))
        found = Collector(self.device, self.plan, len(trees), n_members)
        n_batches = -(-len(trees) // self.at_once)
        size = -(-len(trees) // n_batches)
        for first in range(0, len(trees), size):
            batch = Batch(self, trees[first : first + size])
            batch.split_large_nodes()
            batch.finish()
            batch.collect(found)
            if progress is not None:
                progress(len(found))
        return found.trees()


class Batch:
    """Trees that grow at once: their arrays on the device, and the launches of kernels.

    Parameters
    ----------
    grower : Grower
        What all trees share.
    trees : range
        Their numbers.
    """

    def __init__(self, grower: Grower, trees: range):
        self.grower, self.device, self.kernels = grower, grower.device, grower.kernels
        xp, sizes, plan = self.device.xp, grower.sizes, grower.plan
        self.n_trees = len(trees)
        of_batch: dict[str, Any] = {}
        if plan.n_draws:
            drawn = draw(plan.row_weight, plan.n_draws, plan.seed, trees)
            rows, offsets = drawn.members, drawn.member_offsets
            if drawn.times.max() > MOST_TIMES:
                raise NoDeviceError(
                    f"a row was drawn {drawn.times.max():,} times for a tree; the device supports "
                    f"at most {MOST_TIMES:,}. Set device='cpu', or lower max_samples."
                )
            self.times_of = np.zeros((self.n_trees, sizes.n_rows), dtype=np.int32)
            self.times_of[drawn.member_trees, rows] = drawn.times
            of_batch["weight"] = of_batch["count"] = xp.asarray(self.times_of, dtype=np.float64)
        else:
            rows = xp.tile(xp.asarray(grower.rows), self.n_trees)
            offsets = np.arange(self.n_trees + 1, dtype=np.int64) * len(grower.rows)
        self.offsets, self.n_positions = offsets, int(offsets[-1])
        shapes = sizes.shapes(self.n_positions, self.n_trees)
        self.arrays = {
            **grower.data,
            **{name: empty(xp, kind, n) for name, (kind, n) in shapes.items()},
            **of_batch,
        }
        self.arrays["first"] = xp.asarray(offsets)
        self.arrays["members"] = xp.asarray(rows)
        self.arrays["rows_0"] = self.arrays["members"].copy()
        self._add_roots(trees)
        self.record = self._record()

    def _add_roots(self, trees: range) -> None:
        plan, sizes, xp = self.grower.plan, self.grower.sizes, self.device.xp
        roots = np.zeros(self.n_trees, dtype=ITEM)
        roots["begin"], roots["end"] = self.offsets[:-1], self.offsets[1:]
        roots["tree"], roots["parent"] = np.arange(self.n_trees), -1
        roots["seed"] = [derive(plan.seed, t) for t in trees]
        n = roots["end"] - roots["begin"]
        self.n_large = int((n > sizes.large).sum())
        roots_of = {
            "large_0": roots[n > sizes.large],
            "middle": roots[(n > CONSTANTS["SMALL"]) & (n <= sizes.large)],
            "small": roots[n <= CONSTANTS["SMALL"]],
        }
        for name, items in roots_of.items():
            packed = np.frombuffer(items.tobytes(), dtype=np.uint64)
            self.arrays[name][: len(packed)] = xp.asarray(packed)
        n_items = np.zeros(8, dtype=np.int32)
        n_items[[0, 2, 3]] = [len(items) for items in roots_of.values()]
        self.arrays["n_items"] = xp.asarray(n_items)

    def _record(self) -> Any:
        grower, sizes, rules = self.grower, self.grower.sizes, self.grower.plan.rules
        weights = grower.weights
        values = {
            "n_rows": sizes.n_rows,
            "n_features": sizes.n_features,
            "width": sizes.width,
            "n_trees": self.n_trees,
            "max_features": sizes.max_features,
            "natural": grower.natural,
            "any_missing": sizes.any_missing,
            "n_slots": sizes.n_slots,
            "n_passes": sizes.n_passes,
            "n_kept": sizes.n_kept,
            "plain": weights.plain,
            "bootstrap": grower.plan.n_draws > 0,
            "weight_stride": sizes.n_rows if grower.plan.n_draws else 0,
            **rule_values(rules, weights.total * grower.unit**2),
            "weight_unit": weights.unit,
            "variance_unit": weights.unit / grower.unit**2,
        }
        return fill_record(self.device, "Plan", self.arrays, values)

    def split_large_nodes(self) -> None:
        """Split nodes level by level, as long as any is large."""
        sizes, launch = self.grower.sizes, self.kernels.launch
        n, level = self.n_large, 0
        while n:
            n_chunks = sizes.n_chunks(self.n_positions, n)
            blocks = (n_chunks, sizes.n_passes * sizes.n_column_blocks)
            n_blocks = min(n, self.grower.n_workers)
            launch("list_chunks", (1, 1), 1024, self.record, n, level)
            launch("draw_features", (min(-(-n // 8), self.grower.n_workers // 8), 1), 256,
                   self.record, n, level)  # fmt: skip
            launch("find_ranges", (n_chunks, 1), 256, self.record, n, level)
            launch("sum_chunks", blocks, 256, self.record, n, level)
            launch("choose_splits", (n_blocks, 1), 256, self.record, n, level, 0)
            launch("sum_chunks_exactly", blocks, 256, self.record, n, level)
            launch("choose_splits", (n_blocks, 1), 256, self.record, n, level, 1)
            launch("move_rows", (n_chunks, 1), 256, self.record, n, level)
            n, level = int(self.arrays["n_items"][1]), level + 1

    def finish(self) -> None:
        """Grow what is below the nodes that are not large."""
        n_workers, warps = self.grower.n_workers, CONSTANTS["SMALL_WARPS"]
        if n := int(self.arrays["n_items"][2]):
            threads = CONSTANTS["MIDDLE_THREADS"]
            self.kernels.launch("grow_middle", (min(n, n_workers), 1), threads, self.record, n)
        if n := int(self.arrays["n_items"][3]):
            grid = (min(-(-n // warps), n_workers // warps), 1)
            self.kernels.launch("grow_small", grid, 32 * warps, self.record, n)

    def number_nodes(self) -> Any:
        """Return the number of nodes of each tree, after numbering them by level."""
        self.kernels.launch("number_nodes", (self.n_trees, 1), 1024, self.record, self.n_trees)
        return self.device.to_host(self.arrays["n_nodes"])

    def collect(self, found: Collector) -> None:
        """Start to copy the trees, with numbered nodes, to the host."""
        xp, device = self.device.xp, self.device
        n_nodes = self.number_nodes()
        offsets = np.append(0, np.cumsum(n_nodes)).astype(np.int64)
        self.arrays["node_offsets"][:] = xp.asarray(offsets)
        total = int(offsets[-1])
        out = {name: xp.empty(total, dtype=kind) for name, kind in ARRAYS.items()}
        result = fill_record(device, "Arrays", out, {})
        grid = (min(-(-total // 256), 32 * device.n_processors), 1)
        self.kernels.launch("write_trees", grid, 256, self.record, result, self.n_trees)
        where = found.add(out, n_nodes, self.arrays["members"], self.offsets)
        if self.grower.plan.n_draws:
            found.wait()
            tree = np.repeat(np.arange(self.n_trees), np.diff(self.offsets))
            found.times.append(self.times_of[tree, found.members[where]])


def grow_on(
    device: Any, plan: GrowthPlan, trees: range, progress: Progress | None = None, **options: Any
) -> Trees:
    """Grow some of the trees of a plan on a device."""
    return Grower(device, plan, **options).grow(trees, progress)
