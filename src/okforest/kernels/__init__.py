"""Output kernels, which measure how similar two outputs are."""

from okforest.kernels.as_kernel import as_kernel
from okforest.kernels.base import OutputKernel
from okforest.kernels.classes import Dirac
from okforest.kernels.composition import Normalized, Product, Scaled, Sum, Tuples
from okforest.kernels.curves import Curves, GlobalAlignment, Wasserstein
from okforest.kernels.graphs import CommuteTime, Diffusion, RandomWalk, RegularizedLaplacian
from okforest.kernels.hierarchies import Hierarchy
from okforest.kernels.label_sets import Dice, Hamming, Jaccard, LabelSetKernel
from okforest.kernels.precomputed import FromCallable, Precomputed
from okforest.kernels.rankings import Kendall, Mallows, RankingKernel, Spearman
from okforest.kernels.rbf import RBF, Laplacian
from okforest.kernels.strings import EditDistance, GapWeighted, Mismatch, SequenceKernel, Spectrum
from okforest.kernels.vectors import Linear, Mahalanobis, Polynomial

__all__ = [
    "RBF",
    "CommuteTime",
    "Curves",
    "Dice",
    "Diffusion",
    "Dirac",
    "EditDistance",
    "FromCallable",
    "GapWeighted",
    "GlobalAlignment",
    "Hamming",
    "Hierarchy",
    "Jaccard",
    "Kendall",
    "LabelSetKernel",
    "Laplacian",
    "Linear",
    "Mahalanobis",
    "Mallows",
    "Mismatch",
    "Normalized",
    "OutputKernel",
    "Polynomial",
    "Precomputed",
    "Product",
    "RandomWalk",
    "RankingKernel",
    "RegularizedLaplacian",
    "Scaled",
    "SequenceKernel",
    "Spearman",
    "Spectrum",
    "Sum",
    "Tuples",
    "Wasserstein",
    "as_kernel",
]
