"""The arrays of trees on the host, filled while further trees grow."""

from typing import Any

import numpy as np

from okforest._utils.arrays import Ints
from okforest.engine.cuda.layout import ARRAYS
from okforest.engine.plan import GrowthPlan
from okforest.engine.trees import Trees


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
