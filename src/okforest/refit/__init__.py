"""Refits of grown forests by convex optimisation: censored outputs, unlabelled inputs, priors."""

from okforest.refit.censored import CensoredForest
from okforest.refit.forest_kernel import ForestKernel
from okforest.refit.labels import LabelledKFold
from okforest.refit.laplacian import knn_laplacian
from okforest.refit.priors import Bounds, LinearRelation, Monotone, Order, Prior, Symmetry
from okforest.refit.selection import PenaltyChoice, select_C_leaves
from okforest.refit.semi_supervised import SemiSupervisedForest

__all__ = [
    "Bounds",
    "CensoredForest",
    "ForestKernel",
    "LabelledKFold",
    "LinearRelation",
    "Monotone",
    "Order",
    "PenaltyChoice",
    "Prior",
    "SemiSupervisedForest",
    "Symmetry",
    "knn_laplacian",
    "select_C_leaves",
]
