"""What all growth on a GPU shares: the weights of rows, arrays, and records of their addresses."""

from dataclasses import dataclass
from math import frexp, ldexp
from typing import Any

import numpy as np

from okforest._utils.arrays import Floats
from okforest.engine.cuda.layout import ITEM
from okforest.engine.plan import GrowthPlan, GrowthRules

SHARE = 0.9  # of the free memory that may be taken
LEAST_EIGENVALUE = 1e-15  # of a Gram matrix, relative to the largest; smaller ones are rounding


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
    """Return a record of the addresses of arrays and of numbers, as kernels take it."""
    record = np.zeros(1, dtype=kind)
    for name in kind.names:
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
    sound = values > LEAST_EIGENVALUE * max(float(values[-1]), 0.0)
    return xp.ascontiguousarray(vectors[:, sound] * xp.sqrt(values[sound]))


def derive(seed: int, key: int) -> int:
    """Return a new seed from a seed; see native/core/random.hpp."""
    return _mix(seed ^ _mix((key + 0x9E3779B97F4A7C15) % 2**64))


def _mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)
