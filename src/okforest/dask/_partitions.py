"""Training rows that stay in partitions, and the rows and outputs that are taken from them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from okforest._utils.arrays import Inputs, Outputs
from okforest._utils.compat import rows_of
from okforest._utils.inputs import check_inputs
from okforest.dask._blocks import with_blocks
from okforest.dask._cluster import computed, require
from okforest.kernels import OutputKernel
from okforest.models.tree_model import TreeModel

Positions = npt.NDArray[np.intp]


def bare(model: TreeModel) -> TreeModel:
    """Return what workers need of a model: its parameters, and what it knows about inputs."""
    shell: TreeModel = clone(model)
    if hasattr(shell, "callback"):
        shell.callback = None  # it is called here, and may not be sent
    for name in ("n_features_in_", "feature_names_in_", "categories_"):
        if hasattr(model, name):
            setattr(shell, name, getattr(model, name))
    return shell


@dataclass(frozen=True)
class PartitionedRows:
    """Training rows that stay in their partitions.

    Parameters
    ----------
    X, y : list of Delayed
        The partitions.
    n_rows : ndarray
        The number of rows of each.
    """

    X: list[Any]
    y: list[Any]
    n_rows: npt.NDArray[np.int64]

    @property
    def offsets(self) -> Positions:
        """Where the rows of each partition begin, among all rows."""
        return np.append(0, np.cumsum(self.n_rows)).astype(np.intp)

    def split(self, rows: Positions) -> list[tuple[int, Positions]]:
        """Divide ascending positions of rows by partition; positions then count from its start."""
        offsets = self.offsets
        cuts = np.searchsorted(rows, offsets)
        return [
            (p, rows[cuts[p] : cuts[p + 1]] - offsets[p])
            for p in range(len(self.n_rows))
            if cuts[p] < cuts[p + 1]
        ]

    def outputs_at(self, client: Any, kernel: OutputKernel, rows: Positions) -> Outputs:
        """Bring the outputs of some rows to the client."""
        dask = require("dask")
        ascending, place = np.unique(rows, return_inverse=True)
        shared = dask.delayed(kernel, traverse=False)  # sent once: it may hold a Gram matrix
        tasks = [
            with_blocks(take_outputs, [self.y[p]], shared, own) for p, own in self.split(ascending)
        ]
        return np.concatenate(computed(client, tasks))[place]


def take_outputs(kernel: OutputKernel, rows: Positions, y: Any) -> Outputs:
    """Return some outputs of a partition, in canonical form."""
    return kernel.check(rows_of(y, rows))


def take_rows(
    shell: TreeModel, kernel: OutputKernel, dtype: Any, rows: Positions, X: Any, y: Any
) -> tuple[Inputs, Outputs]:
    """Return some rows of a partition: inputs as numbers and outputs, as copies."""
    inputs = check_inputs(shell, rows_of(X, rows))
    return inputs.astype(dtype, copy=False), take_outputs(kernel, rows, y)
