"""The choice between the CPU and the GPU."""

from collections.abc import Callable
from typing import Literal
from warnings import warn

from okforest._typing import Progress
from okforest.engine import cpu, cuda
from okforest.engine.plan import GrowthPlan
from okforest.engine.trees import Trees

DeviceName = Literal["cpu", "cuda", "auto"]


def grow_function(device: DeviceName) -> Callable[..., Trees]:
    """Return the function that grows trees on a device."""
    return {"cpu": cpu.grow, "cuda": cuda.grow, "auto": _grow_where_possible}[device]


def _grow_where_possible(
    plan: GrowthPlan, trees: range, *, n_threads: int = 1, progress: Progress | None = None
) -> Trees:
    """Grow on the GPU if there is one and it supports the plan, else on the CPU with a warning."""
    reason = cuda.unsupported(plan)
    try:
        if reason is None:
            return cuda.grow(plan, trees, progress=progress)
    except (cuda.NoDeviceError, MemoryError) as error:
        reason = str(error)
    else:
        reason = f"the GPU does not support {reason}."
    warn(f"device='auto' grows trees on the CPU: {reason}", stacklevel=9)
    return cpu.grow(plan, trees, n_threads=n_threads, progress=progress)
