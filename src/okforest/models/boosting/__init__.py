"""Boosting in the output kernel's feature space: of trees, and of other base learners."""

from okforest.models.boosting.bases import DirectionBase
from okforest.models.boosting.model import OKBoost

__all__ = ["DirectionBase", "OKBoost"]
