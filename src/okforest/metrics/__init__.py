"""Losses in feature space, with and without decoding; scorers; rankings, survival, label maps."""

from okforest._step_function import StepFunction
from okforest.metrics.alignment import kernel_alignment
from okforest.metrics.curves import integrated_squared_error, integrated_squared_error_scorer
from okforest.metrics.hierarchies import au_prc, au_prc_scorer
from okforest.metrics.label_rankings import (
    kendall_tau,
    kendall_tau_scorer,
    spearman_rho,
    spearman_rho_scorer,
)
from okforest.metrics.label_sets import (
    example_f1_scorer,
    hamming_scorer,
    macro_f1_scorer,
    micro_f1_scorer,
    set_f1_score,
    set_hamming_loss,
    set_jaccard_score,
    subset_accuracy,
    subset_accuracy_scorer,
)
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
from okforest.metrics.sequences import (
    edit_distance,
    edit_distance_scorer,
    exact_match,
    exact_match_scorer,
)
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
    "au_prc",
    "au_prc_scorer",
    "average_curve",
    "boundary_f1",
    "brier_score",
    "concordance_index",
    "concordance_ipcw",
    "concordance_ipcw_scorer",
    "concordance_scorer",
    "edit_distance",
    "edit_distance_scorer",
    "exact_match",
    "exact_match_scorer",
    "example_f1_scorer",
    "hamming_scorer",
    "integrated_brier_score",
    "integrated_brier_scorer",
    "integrated_squared_error",
    "integrated_squared_error_scorer",
    "intersection_over_union",
    "kendall_tau",
    "kendall_tau_scorer",
    "kernel_alignment",
    "kernel_loss",
    "kernel_loss_samples",
    "kernel_loss_scorer",
    "kernel_r2",
    "kernel_r2_scorer",
    "macro_f1_scorer",
    "make_kernel_scorer",
    "make_output_scorer",
    "micro_f1_scorer",
    "output_loss",
    "output_loss_samples",
    "output_loss_scorer",
    "precision_at_k",
    "set_f1_score",
    "set_hamming_loss",
    "set_jaccard_score",
    "spearman_rho",
    "spearman_rho_scorer",
    "subset_accuracy",
    "subset_accuracy_scorer",
]
