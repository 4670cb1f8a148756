"""The best candidates found so far, when candidates are searched in parts."""

from typing import NamedTuple

import numpy as np

from okforest._namespace import namespace
from okforest._outputs import distinct
from okforest._typing import Floats, Outputs
from okforest.decode._search import smallest


class Found(NamedTuple):
    """The candidates of least cost for some predictions, in order."""

    outputs: Outputs  # of shape (n, k, ...)
    costs: Floats  # of shape (n, k)

    def merged(self, other: "Found", k: int) -> "Found":
        """Return the k best different outputs of both, or all if there are fewer."""
        outputs = np.concatenate([self.outputs, other.outputs], axis=1)
        costs = np.hstack([self.costs, other.costs])
        n, width = costs.shape
        if k > 1:
            flat = outputs.reshape(n * width, *outputs.shape[2:])
            numbers = distinct(flat).group.reshape(n, width)
            own = self.costs.shape[1]
            repeated = namespace(costs).zeros((n, width), dtype=bool)
            for place in range(own, width):
                repeated[:, place] = (numbers[:, :own] == numbers[:, place : place + 1]).any(axis=1)
            costs[repeated] = np.inf
            k = min(k, int((~repeated).sum(axis=1).min()))
        order = smallest(costs, k)
        index = order.reshape(*order.shape, *[1] * (outputs.ndim - 2))
        return Found(
            np.take_along_axis(outputs, index, axis=1), np.take_along_axis(costs, order, axis=1)
        )

    def check_count(self, k: int) -> None:
        """Raise a ValueError if there are fewer than k different candidates."""
        found = self.costs.shape[1]
        if found < k:
            raise ValueError(
                f"k={k!r}; there are {found} different candidates, so pass an integer from 1 to "
                f"{found}."
            )
