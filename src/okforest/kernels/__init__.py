"""Output kernels, which measure how similar two outputs are."""

from okforest.kernels._as_kernel import as_kernel
from okforest.kernels._base import OutputKernel
from okforest.kernels.callables import FromCallable
from okforest.kernels.classes import Dirac
from okforest.kernels.composition import Normalized, Product, Scaled, Sum
from okforest.kernels.graphs import CommuteTime, Diffusion, RandomWalk, RegularizedLaplacian
from okforest.kernels.precomputed import Precomputed
from okforest.kernels.survival import Survival
from okforest.kernels.vectors import RBF, Laplacian, Linear, Mahalanobis, Polynomial

__all__ = [
    "RBF",
    "CommuteTime",
    "Diffusion",
    "Dirac",
    "FromCallable",
    "Laplacian",
    "Linear",
    "Mahalanobis",
    "Normalized",
    "OutputKernel",
    "Polynomial",
    "Precomputed",
    "Product",
    "RandomWalk",
    "RegularizedLaplacian",
    "Scaled",
    "Sum",
    "Survival",
    "as_kernel",
]
