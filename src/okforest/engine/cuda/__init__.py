"""Trees on a GPU, with CuPy: growing them as :mod:`okforest.engine.cpu` does, and predicting."""

from okforest._utils.arrays import Progress
from okforest.engine.cuda.best import grow_best_on
from okforest.engine.cuda.device import Device, NoDeviceError
from okforest.engine.cuda.growing import grow_on, unsupported
from okforest.engine.cuda.predicting import SparseMatrix, apply_on, check_fits, leaf_means_on
from okforest.engine.cuda.rounds import Rounds, unsupported_rounds
from okforest.engine.plan import GrowthPlan
from okforest.engine.trees import Trees

__all__ = [
    "Device",
    "NoDeviceError",
    "Rounds",
    "SparseMatrix",
    "apply_on",
    "check_fits",
    "grow",
    "leaf_means_on",
    "start_rounds",
    "unsupported",
    "unsupported_rounds",
]


def grow(
    plan: GrowthPlan, trees: range, *, n_threads: int = 1, progress: Progress | None = None
) -> Trees:
    """Grow some of the trees of a plan on the GPU, as :func:`okforest.engine.grow` does.

    ``n_threads`` is not used. ``progress`` is called after each group of trees that grow at once.
    """
    _check_supported(unsupported(plan))
    on = grow_on if plan.rules.random_splits else grow_best_on
    return on(Device(), plan, trees, progress)


def start_rounds(plan: GrowthPlan, learning_rate: float) -> Rounds:
    """Start boosting on the GPU; the outputs of the plan are the first residuals."""
    _check_supported(unsupported_rounds(plan))
    return Rounds(Device(), plan, learning_rate)


def _check_supported(reason: str | None) -> None:
    if reason is not None:
        raise ValueError(
            f"device='cuda' does not support {reason}. Set device='cpu', or device='auto', which "
            "takes the GPU only where it can."
        )
