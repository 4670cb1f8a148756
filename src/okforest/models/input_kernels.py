"""Input kernels: names, objects of okforest or scikit-learn, or functions of two rows."""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from okforest._utils.arrays import Floats, Inputs
from okforest._utils.compat import StrOptions
from okforest._utils.distinct import distinct
from okforest.kernels import OutputKernel

BLOCK = 256  # rows of the Gram blocks whose diagonals give k(x, x)
CONSTRAINT = [StrOptions({*PAIRWISE_KERNEL_FUNCTIONS, "precomputed"}), callable]


def resolve_input_kernel(kernel: Any, X: Inputs, weight: Floats) -> Any:
    """Return a copy of an input kernel, with parameters that depend on X filled in.

    They depend on the different rows of positive weight: a weight is the same as repeated rows.
    """
    if isinstance(kernel, OutputKernel):
        rows = kernel.check(X[weight > 0])
        return clone(kernel).resolve(rows[distinct(rows).first])
    return kernel if isinstance(kernel, str) else clone(kernel, safe=False)


def input_gram(kernel: Any, X: Inputs, Z: Inputs) -> Floats:
    """Return the matrix of k(x, z)."""
    if isinstance(kernel, OutputKernel):
        return kernel(kernel.check(X), kernel.check(Z))
    K = pairwise_kernels(X, Z, metric=kernel)
    return np.asarray(K.toarray() if hasattr(K, "toarray") else K, dtype=np.float64)


def input_diag(kernel: Any, X: Inputs) -> Floats:
    """Return k(x, x) of every row."""
    if isinstance(kernel, OutputKernel):
        return kernel.diag(kernel.check(X))
    # A function of two rows is called once per row, names are computed in blocks.
    size = BLOCK if isinstance(kernel, str) else 1
    blocks = [X[i : i + size] for i in range(0, X.shape[0], size)]
    return np.concatenate([np.diagonal(input_gram(kernel, block, block)) for block in blocks])
