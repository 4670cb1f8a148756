"""Kernels on inputs: those that scikit-learn knows by name, its own objects, okforest's, functions.

A kernel with its parameters is a dictionary, as :func:`sklearn.metrics.pairwise.pairwise_kernels`
takes it, so that a fitted model keeps it whatever becomes of its constructor's parameters.
"""

from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from okforest._compat import Interval, StrOptions
from okforest._typing import Floats
from okforest.engine.inputs import Inputs
from okforest.kernels import OutputKernel

InputKernel = dict[str, Any]

NAMES = set(PAIRWISE_KERNEL_FUNCTIONS)
BLOCK = 256  # side of the Gram blocks whose diagonals give k(x, x)

CONSTRAINTS: dict[str, Any] = {
    "input_kernel": [StrOptions(NAMES | {"precomputed"}), callable],
    "gamma": [Interval(Real, 0.0, None, closed="left"), None],
    "degree": [Interval(Real, 0.0, None, closed="left")],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "input_kernel_params": [dict, None],
}


def resolve_input_kernel(model: Any, X: Inputs) -> InputKernel:
    """Return the kernel that a model's parameters name, with what it learns from X."""
    kernel, params = model.input_kernel, model.input_kernel_params
    if params and isinstance(kernel, str | OutputKernel):
        raise ValueError(
            f"input_kernel_params={params!r} is for functions, and input_kernel is {kernel!r}; "
            "use gamma, degree and coef0, or the parameters of the object."
        )
    if isinstance(kernel, OutputKernel):
        return {"metric": clone(kernel).resolve(kernel.check(X))}
    if callable(kernel):
        return {"metric": clone(kernel, safe=False), **(params or {})}
    return {
        "metric": kernel,
        "gamma": model.gamma,
        "degree": model.degree,
        "coef0": model.coef0,
    }


def input_gram(kernel: InputKernel, X: Inputs, Z: Inputs) -> Floats:
    """Return the matrix of k(x, z)."""
    metric = kernel["metric"]
    if isinstance(metric, OutputKernel):
        return metric(metric.check(X), metric.check(Z))
    K = pairwise_kernels(X, Z, filter_params=True, **kernel)
    return np.asarray(K.toarray() if hasattr(K, "toarray") else K, dtype=np.float64)


def input_diag(kernel: InputKernel, X: Inputs) -> Floats:
    """Return k(x, x) of every row."""
    blocks = [X[i : i + BLOCK] for i in range(0, X.shape[0], BLOCK)]
    return np.concatenate([np.diagonal(input_gram(kernel, block, block)) for block in blocks])
