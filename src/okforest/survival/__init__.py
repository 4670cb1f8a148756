"""Survival analysis: censored times as outputs, from the kernel to measures and plots.

``kernel="survival"`` finds the kernel here, in any model. Plots need matplotlib (the extra
``plot``).
"""

from okforest.survival.estimates import StepFunction
from okforest.survival.kernel import Survival, SurvivalTime
from okforest.survival.metrics import (
    BrierScore,
    brier_score,
    concordance_index,
    concordance_ipcw,
    concordance_ipcw_scorer,
    concordance_scorer,
    integrated_brier_score,
    integrated_brier_scorer,
)
from okforest.survival.plots import plot_calibration, plot_survival

__all__ = [
    "BrierScore",
    "StepFunction",
    "Survival",
    "SurvivalTime",
    "brier_score",
    "concordance_index",
    "concordance_ipcw",
    "concordance_ipcw_scorer",
    "concordance_scorer",
    "integrated_brier_score",
    "integrated_brier_scorer",
    "plot_calibration",
    "plot_survival",
]
