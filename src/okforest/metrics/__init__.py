"""Losses in feature space, with and without decoding; scorers; rankings, survival, label maps."""

from okforest._step_function import StepFunction
from okforest.metrics.alignment import kernel_alignment
from okforest.metrics.losses import (
    kernel_loss,
    kernel_loss_samples,
    kernel_r2,
    output_loss,
    output_loss_samples,
)
from okforest.metrics.ranking import AveragedCurve, average_curve, precision_at_k
from okforest.metrics.scorers import (
    kernel_loss_scorer,
    kernel_r2_scorer,
    make_kernel_scorer,
    make_output_scorer,
    output_loss_scorer,
)
from okforest.metrics.segmentation import boundary_f1, intersection_over_union
from okforest.metrics.survival import (
    BrierScore,
    brier_score,
    concordance_index,
    concordance_ipcw,
    integrated_brier_score,
)
from okforest.metrics.survival_scorers import (
    concordance_ipcw_scorer,
    concordance_scorer,
    integrated_brier_scorer,
)

__all__ = [
    "AveragedCurve",
    "BrierScore",
    "StepFunction",
    "average_curve",
    "boundary_f1",
    "brier_score",
    "concordance_index",
    "concordance_ipcw",
    "concordance_ipcw_scorer",
    "concordance_scorer",
    "integrated_brier_score",
    "integrated_brier_scorer",
    "intersection_over_union",
    "kernel_alignment",
    "kernel_loss",
    "kernel_loss_samples",
    "kernel_loss_scorer",
    "kernel_r2",
    "kernel_r2_scorer",
    "make_kernel_scorer",
    "make_output_scorer",
    "output_loss",
    "output_loss_samples",
    "output_loss_scorer",
    "precision_at_k",
]
