"""Inputs as the kernels read them: row by row, and exactly."""

from typing import Any

import numpy as np

from okforest._utils.arrays import namespace, to_host

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
