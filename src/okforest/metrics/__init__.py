"""Losses in a kernel's feature space, with and without decoding; scorers; quality of rankings."""

from okforest.metrics.losses import kernel_loss, kernel_r2, output_loss
from okforest.metrics.ranking import AveragedCurve, average_curve, precision_at_k
from okforest.metrics.scorers import (
    kernel_loss_scorer,
    kernel_r2_scorer,
    make_kernel_scorer,
    make_output_scorer,
    output_loss_scorer,
)

__all__ = [
    "AveragedCurve",
    "average_curve",
    "kernel_loss",
    "kernel_loss_scorer",
    "kernel_r2",
    "kernel_r2_scorer",
    "make_kernel_scorer",
    "make_output_scorer",
    "output_loss",
    "output_loss_scorer",
    "precision_at_k",
]
