"""The choice between the CPU and the GPU."""

from collections.abc import Callable
from functools import partial
from typing import Literal, TypeVar
from warnings import warn

from okforest._typing import Progress
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


def start_rounds(device: DeviceName, plan: GrowthPlan, learning_rate: float) -> cuda.Rounds | None:
    """Start rounds of boosting on a device, if they are grown there, else return None.

    The outputs of the plan are the first residuals.
    """
    if device == "cpu":
        return None
    start = partial(cuda.start_rounds, plan, learning_rate)
    return start() if device == "cuda" else _where_possible(cuda.unsupported_rounds(plan), start)


def _where_possible(reason: str | None, call: Callable[[], Result]) -> Result | None:
    """Return the result of a call that needs the GPU, or None with a warning."""
    try:
        if reason is None:
            return call()
    except (cuda.NoDeviceError, MemoryError) as error:
        reason = str(error)
    else:
        reason = f"the GPU does not support {reason}."
    warn(f"device='auto' grows trees on the CPU: {reason}", stacklevel=10)
    return None
