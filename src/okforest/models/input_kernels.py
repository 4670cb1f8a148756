"""Input kernels: names, objects of okforest or scikit-learn, or functions of two rows."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from okforest._utils.arrays import Floats, Inputs
from okforest._utils.compat import StrOptions
from okforest._utils.distinct import distinct
from okforest._utils.parameters import check_parameters
from okforest.kernels import RBF, Linear, OutputKernel, Polynomial
from okforest.kernels.base import describe_kernel

BLOCK = 256  # rows of the Gram blocks whose diagonals give k(x, x)
CONSTRAINT = [StrOptions({*PAIRWISE_KERNEL_FUNCTIONS, "precomputed"}), callable]


def takes_sparse(kernel: Any) -> bool:
    """Return whether an input kernel takes sparse inputs."""
    return not isinstance(kernel, OutputKernel) or _named(kernel) is not None


def resolve_input_kernel(kernel: Any, X: Inputs, weight: Floats) -> Any:
    """Return a copy of an input kernel, with parameters that depend on X filled in.

    They depend on the different rows of positive weight: a weight is the same as repeated rows.
    """
    if not isinstance(kernel, OutputKernel):
        return kernel if isinstance(kernel, str) else clone(kernel, safe=False)
    if sp.issparse(X):
        if not takes_sparse(kernel):
            raise ValueError(
                f"input_kernel={describe_kernel(kernel)} needs dense inputs, and X is sparse; pass "
                "X.toarray(), or a kernel that takes sparse inputs: RBF(sigma) with a number, "
                "Polynomial(), Linear() or a name such as 'rbf'."
            )
        check_parameters(kernel)
        return clone(kernel)
    rows = kernel.check(X[weight > 0])
    return clone(kernel).resolve(rows[distinct(rows).first])


def input_gram(kernel: Any, X: Inputs, Z: Inputs) -> Floats:
    """Return the matrix of k(x, z)."""
    parameters: dict[str, Any] = {}
    if isinstance(kernel, OutputKernel):
        if not (sp.issparse(X) or sp.issparse(Z)):
            return kernel(kernel.check(X), kernel.check(Z))
        kernel, parameters = _named(kernel)
    K = pairwise_kernels(X, Z, metric=kernel, **parameters)
    return np.asarray(K.toarray() if hasattr(K, "toarray") else K, dtype=np.float64)


def input_diag(kernel: Any, X: Inputs) -> Floats:
    """Return k(x, x) of every row."""
    if isinstance(kernel, OutputKernel) and not sp.issparse(X):
        return kernel.diag(kernel.check(X))
    # A function of two rows is called once per row, others are computed in blocks.
    size = BLOCK if isinstance(kernel, str | OutputKernel) else 1
    blocks = [X[i : i + size] for i in range(0, X.shape[0], size)]
    return np.concatenate([np.diagonal(input_gram(kernel, block, block)) for block in blocks])


def _named(kernel: OutputKernel) -> Any:
    """Return the name and parameters with which scikit-learn computes a kernel, or None."""
    if type(kernel) is Linear:
        return "linear", {}
    if type(kernel) is Polynomial:
        return "poly", {"degree": kernel.degree, "gamma": kernel.gamma, "coef0": kernel.coef0}
    if type(kernel) is RBF and kernel.base is None and kernel.sigma != "median":
        return "rbf", {"gamma": 0.5 / kernel.sigma**2}
    return None
