"""The choice between the CPU and the GPU."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Literal, TypeVar

import scipy.sparse as sp

from okforest._utils.arrays import Inputs, Ints, Progress, on_gpu, to_host
from okforest._utils.errors import warn
from okforest.engine import cpu, cuda
from okforest.engine.plan import GrowthPlan
from okforest.engine.trees import Trees

DeviceName = Literal["cpu", "cuda", "auto"]
Result = TypeVar("Result")


def grow_function(device: DeviceName) -> Callable[..., Trees]:
    """Return the function that grows trees on a device."""
    return {"cpu": cpu.grow, "cuda": cuda.grow, "auto": _grow_where_possible}[device]


def _grow_where_possible(
    plan: GrowthPlan, trees: range, *, n_threads: int = 1, progress: Progress | None = None
) -> Trees:
    """Grow on the GPU if there is one and it supports the plan, else on the CPU with a warning."""
    grown = _where_possible(
        cuda.unsupported(plan), partial(cuda.grow, plan, trees, progress=progress)
    )
    if grown is not None:
        return grown
    return cpu.grow(plan, trees, n_threads=n_threads, progress=progress)


def start_rounds(
    device: DeviceName,
    plan: GrowthPlan,
    learning_rate: float,
    *,
    max_bins: int | None = None,
    n_threads: int = 1,
) -> cuda.Rounds | cpu.BinnedRounds | None:
    """Start rounds of boosting on a GPU, or on binned inputs where they are supported.

    Otherwise return None. The outputs of the plan are the first residuals; on the CPU they are
    changed in place.
    """
    rounds = None
    if device != "cpu":
        start = partial(cuda.start_rounds, plan, learning_rate)
        rounds = (
            start() if device == "cuda" else _where_possible(cuda.unsupported_rounds(plan), start)
        )
    if rounds is None and max_bins is not None and cpu.BinnedRounds.supports(plan):
        return cpu.BinnedRounds(plan, learning_rate, max_bins, n_threads)
    return rounds


def _where_possible(reason: str | None, call: Callable[[], Result]) -> Result | None:
    """Return the result of a call that needs the GPU, or None with a warning."""
    try:
        if reason is None:
            return call()
    except (cuda.NoDeviceError, MemoryError) as error:
        reason = str(error)
    else:
        reason = f"the GPU does not support {reason}."
    warn(f"device='auto' grows trees on the CPU: {reason}")
    return None


@cache
def gpu() -> cuda.Device | None:
    """Return the GPU, or None if there is none."""
    try:
        return cuda.Device()
    except cuda.NoDeviceError:
        return None


def prediction_device(device: DeviceName) -> Any:
    """Return the GPU that predictions are made on; None for the CPU.

    A model that was fitted on a GPU predicts on any machine: without a GPU, on the CPU.
    """
    return None if device == "cpu" else gpu()


def apply(trees: Trees, X: Inputs, n_threads: int = 1, device: DeviceName = "cpu") -> Ints:
    """Return the leaf that each row of X reaches in each tree, shape (n, n_trees).

    The leaves are on the GPU if X is. A sparse X is followed on the CPU.
    """
    where = prediction_device("cuda" if on_gpu(X) else device)
    if where is None or sp.issparse(X):
        return cpu.apply(trees, X, n_threads)
    cpu.check_features(trees, X)
    try:
        leaves = cuda.apply_on(where, trees, X)
    except MemoryError:
        if device != "auto" or on_gpu(X):
            raise
        return cpu.apply(trees, X, n_threads)
    return leaves if on_gpu(X) else to_host(leaves)
