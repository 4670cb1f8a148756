"""What all growth on a GPU shares: the weights of rows, arrays, and records of their addresses."""

from dataclasses import dataclass
from math import frexp, ldexp
from typing import Any

import numpy as np

from okforest._typing import Floats
from okforest.engine.cuda.layout import ITEM
from okforest.engine.plan import GrowthPlan

SHARE = 0.9  # of the free memory that may be taken


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
        """Return the weights of a plan; with draws, those of the draws are not known yet."""
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


def fill_record(device: Any, kind: Any, arrays: dict[str, Any], values: dict[str, Any]) -> Any:
    """Return a record of the addresses of arrays and of numbers, on the device."""
    record = np.zeros(1, dtype=kind)
    for name in kind.names:
        if name in values:
            record[name] = values[name]
        elif name in arrays:
            record[name] = device.address(arrays[name])
    return device.upload(record)
