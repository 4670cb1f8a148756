"""What goes to a GPU and comes back: inputs, weights, records of addresses, grown trees."""

from dataclasses import dataclass
from math import frexp, ldexp
from typing import Any

import numpy as np

from okforest._utils.arrays import Floats, Ints, namespace, to_host
from okforest.engine.cuda.layout import ARRAYS, ITEM, record_of
from okforest.engine.plan import GrowthPlan, GrowthRules
from okforest.engine.trees import Trees

MAX_MEMORY_FRACTION = 0.9  # data and trees together, relative to the free memory of the device
LEAST_EIGENVALUE = 1e-15  # relative to the largest eigenvalue; smaller ones are rounding errors
SIGN, LEAST_NORMAL = 0x80000000, 0x00800000  # bits of float32
BLOCK = 2**20  # numbers that are looked at together


def readable(X: Any) -> Any:
    """Return inputs, an array anywhere, as a contiguous one that kernels read exactly.

    CuPy compiles kernels that take subnormal numbers of float32, those below 1.2e-38, for zero.
    Such inputs become float64.
    """
    if X.dtype == np.float32 and _has_subnormals(X):
        X = to_host(X).astype(np.float64)  # on the GPU, they would be zero
    return namespace(X).ascontiguousarray(X)


def _has_subnormals(X: Any) -> bool:
    """Return whether a number is subnormal, by its bits: on the GPU, it compares as zero."""
    step = max(1, BLOCK // max(1, X.shape[1]))
    for start in range(0, len(X), step):
        bits = X[start : start + step].view(np.uint32) & np.uint32(SIGN - 1)
        if bool(((bits > 0) & (bits < LEAST_NORMAL)).any()):
            return True
    return False


@dataclass(frozen=True)
class Weights:
    """The weights of the rows, the largest scaled to [1, 2); see native/core/grow.cpp."""

    weight: Floats
    count: Floats
    plain: bool
    unit: float  # by which they were divided
    total: float

    @staticmethod
    def of(plan: GrowthPlan) -> "Weights":
        """Return the weights of a plan; with draws, the times of each row are not known yet."""
        row_weight = plan.row_weight
        unit = ldexp(1.0, frexp(float(row_weight.max()))[1] - 1)
        if plan.n_draws:
            return Weights(row_weight, row_weight, False, 1.0, float(plan.n_draws))
        weight = row_weight / unit
        plain = bool((row_weight == 1.0).all())
        return Weights(weight, np.maximum(row_weight, 1.0), plain, unit, float(weight.sum()))


def empty(xp: Any, kind: Any, n: int) -> Any:
    """Return an array; one of nodes as words of eight bytes."""
    if kind is ITEM:
        return xp.empty(n * ITEM.itemsize // 8, dtype=np.uint64)
    return xp.empty(n, dtype=kind)


def fill_record(device: Any, struct: str, arrays: dict[str, Any], values: dict[str, Any]) -> Any:
    """Return a struct with the addresses of arrays and with numbers, as kernels take it."""
    kind = record_of(struct)
    record = np.zeros(1, dtype=kind)
    for name in kind.names or ():
        if name in values:
            record[name] = values[name]
        elif name in arrays:
            record[name] = device.address(arrays[name])
    # CuPy describes each field of a structured argument, which takes longer than the launch.
    return record.view(np.dtype((np.void, kind.itemsize)))


def rule_values(rules: GrowthRules, weight: float) -> dict[str, Any]:
    """Return the limits of nodes for a tree of this weight, less a tolerance; see rules.hpp."""
    tolerance = 1.0 - 1e-9
    return {
        "max_depth": rules.max_depth,
        "stop_when_pure": rules.stop_when_pure,
        "min_split": rules.min_samples_split * tolerance,
        "min_both": 2 * rules.min_samples_leaf * tolerance,
        "min_leaf": rules.min_samples_leaf * tolerance,
        "min_gain": rules.min_impurity_decrease * weight,
    }


def factor_of(xp: Any, gram: Any) -> Any:
    """Return a factor of a Gram matrix, by its eigenvectors."""
    values, vectors = xp.linalg.eigh(xp.asarray(gram))
    positive = values > LEAST_EIGENVALUE * max(float(values[-1]), 0.0)
    return xp.ascontiguousarray(vectors[:, positive] * xp.sqrt(values[positive]))


def derive(seed: int, key: int) -> int:
    """Return a new seed from a seed; see native/core/random.hpp."""
    return _mix(seed ^ _mix((key + 0x9E3779B97F4A7C15) % 2**64))


def _mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


class Collector:
    """Copies the arrays of trees from a device into arrays for all of them.

    These are allocated for the largest possible trees: memory that is never written to is not used.

    Parameters
    ----------
    device : object
        Where the trees are.
    plan : GrowthPlan
        What they are grown from.
    n_trees, n_members : int
        Number of trees, and the largest possible number of rows of each.
    """

    def __init__(self, device: Any, plan: GrowthPlan, n_trees: int, n_members: int):
        self.device, self.plan = device, plan
        n_nodes = n_trees * (2 * n_members - 1)
        self.arrays = {name: np.empty(n_nodes, dtype=kind) for name, kind in ARRAYS.items()}
        self.members = np.empty(n_trees * n_members, dtype=np.int32)
        self.times: list[Ints] = []
        self.n_nodes, self.n_members = [0], [0]
        self.pending: list[Any] = []

    def __len__(self) -> int:
        return len(self.n_nodes) - 1

    def add(self, arrays: dict[str, Any], n_nodes: Any, members: Any, offsets: Any) -> slice:
        """Start to copy some trees; return where their members will be."""
        self.wait()
        first, first_member = sum(self.n_nodes), sum(self.n_members)
        last, last_member = first + int(sum(n_nodes)), first_member + int(offsets[-1])
        where = slice(first_member, last_member)
        pairs = [(array, self.arrays[name][first:last]) for name, array in arrays.items()]
        self.pending = self.device.start_copies([*pairs, (members, self.members[where])])
        self.n_nodes += [int(n) for n in n_nodes]
        self.n_members += [int(n) for n in np.diff(offsets)]
        return where

    def wait(self) -> None:
        """Wait for the copies so far."""
        for copy in self.pending:
            copy.result()
        self.pending = []

    def trees(self) -> Trees:
        """Return all trees."""
        self.wait()
        node_offsets = np.cumsum(self.n_nodes, dtype=np.int64)
        member_offsets = np.cumsum(self.n_members, dtype=np.int64)
        n, n_members = int(node_offsets[-1]), int(member_offsets[-1])
        arrays = {name: _trimmed(array, n) for name, array in self.arrays.items()}
        arrays["missing_left"] = arrays["missing_left"].view(np.bool_)
        plan = self.plan
        return Trees(
            **arrays,
            node_offsets=node_offsets,
            member_offsets=member_offsets,
            subset_offsets=np.zeros(len(node_offsets), dtype=np.int64),
            subset=np.full(n, -1, dtype=np.int32),
            subset_words=np.empty(0, dtype=np.uint64),
            members=_trimmed(self.members, n_members),
            times=np.concatenate([np.empty(0, dtype=np.int32), *self.times]),
            row_weight=np.ones(len(plan.row_weight)) if plan.n_draws else plan.row_weight,
            n_categories=plan.n_categories,
        )


def _trimmed(array: Any, n: int) -> Any:
    """Return the first entries of an array, as a copy if most of it is not used."""
    return array[:n] if 2 * n > len(array) else array[:n].copy()
