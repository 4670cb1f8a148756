"""Refits of grown forests by convex optimisation: censored outputs, unlabelled inputs, priors."""

from okforest.refit.censored import CensoredForest, select_leaf_penalty
from okforest.refit.forest_kernel import ForestKernel
from okforest.refit.labels import LabelledKFold
from okforest.refit.laplacian import knn_laplacian
from okforest.refit.priors import Bounds, LinearRelation, Monotone, Order, Prior, Symmetry
from okforest.refit.semi_supervised import SemiSupervisedForest

__all__ = [
    "Bounds",
    "CensoredForest",
    "ForestKernel",
    "LabelledKFold",
    "LinearRelation",
    "Monotone",
    "Order",
    "Prior",
    "SemiSupervisedForest",
    "Symmetry",
    "knn_laplacian",
    "select_leaf_penalty",
]
