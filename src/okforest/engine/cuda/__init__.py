"""Trees on a GPU, with CuPy: growing them as :mod:`okforest.engine.cpu` does, and predicting."""

from okforest._typing import Progress
from okforest.engine.cuda.device import Device, NoDeviceError
from okforest.engine.cuda.growing import grow_on, unsupported
from okforest.engine.cuda.predicting import SparseMatrix, apply_on, check_fits, leaf_means_on
from okforest.engine.plan import GrowthPlan
from okforest.engine.trees import Trees

__all__ = [
    "Device",
    "NoDeviceError",
    "SparseMatrix",
    "apply_on",
    "check_fits",
    "grow",
    "leaf_means_on",
    "unsupported",
]


def grow(
    plan: GrowthPlan, trees: range, *, n_threads: int = 1, progress: Progress | None = None
) -> Trees:
    """Grow some of the trees of a plan on the GPU, as :func:`okforest.engine.grow` does.

    ``n_threads`` is not used. ``progress`` is called after each group of trees that grow at once.
    """
    if reason := unsupported(plan):
        raise ValueError(
            f"device='cuda' does not support {reason}. Set device='cpu', or device='auto', which "
            "takes the GPU only where it can."
        )
    return grow_on(Device(), plan, trees, progress)
