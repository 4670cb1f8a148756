"""Input kernels: names and objects of scikit-learn, objects of okforest, or functions.

A fitted model keeps the kernel and its parameters as a dictionary of arguments for
:func:`sklearn.metrics.pairwise.pairwise_kernels`: later calls of ``set_params`` do not change it.
"""

from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from okforest._utils.arrays import Floats, Inputs
from okforest._utils.compat import Interval, StrOptions
from okforest._utils.distinct import distinct
from okforest.kernels import OutputKernel

InputKernel = dict[str, Any]

NAMES = set(PAIRWISE_KERNEL_FUNCTIONS)
BLOCK = 256  # rows of the Gram blocks whose diagonals give k(x, x)

# Parameters of kernels that are given by name, and their defaults.
NAMED_PARAMETERS: dict[str, Any] = {"gamma": None, "degree": 3, "coef0": 1}

CONSTRAINTS: dict[str, Any] = {
    "input_kernel": [StrOptions(NAMES | {"precomputed"}), callable],
    "gamma": [Interval(Real, 0.0, None, closed="left"), None],
    "degree": [Interval(Real, 0.0, None, closed="left")],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "input_kernel_params": [dict, None],
}


def resolve_input_kernel(model: Any, X: Inputs, weight: Floats) -> InputKernel:
    """Return the input kernel of a model, with parameters that depend on X filled in.

    They depend on the different rows of positive weight: a weight is the same as repeated rows.
    """
    kernel, params = model.input_kernel, model.input_kernel_params
    if params and isinstance(kernel, str | OutputKernel):
        raise ValueError(
            f"input_kernel_params={params!r} requires input_kernel to be a function; it is "
            f"{kernel!r}. Use gamma, degree and coef0, or the parameters of the kernel object."
        )
    named = {name: getattr(model, name) for name in NAMED_PARAMETERS}
    if isinstance(kernel, str):
        return {"metric": kernel, **named}
    ignored = [f"{k}={v!r}" for k, v in named.items() if v != NAMED_PARAMETERS[k]]
    if ignored:
        raise ValueError(
            f"got {', '.join(ignored)} with input_kernel={kernel!r}; only kernels given by name "
            "use it. Set the parameters of the kernel object, or input_kernel_params of a function."
        )
    if isinstance(kernel, OutputKernel):
        rows = kernel.check(X[weight > 0])
        return {"metric": clone(kernel).resolve(rows[distinct(rows).first])}
    return {"metric": clone(kernel, safe=False), **(params or {})}


def input_gram(kernel: InputKernel, X: Inputs, Z: Inputs) -> Floats:
    """Return the matrix of k(x, z)."""
    metric = kernel["metric"]
    if isinstance(metric, OutputKernel):
        return metric(metric.check(X), metric.check(Z))
    K = pairwise_kernels(X, Z, filter_params=True, **kernel)
    return np.asarray(K.toarray() if hasattr(K, "toarray") else K, dtype=np.float64)


def input_diag(kernel: InputKernel, X: Inputs) -> Floats:
    """Return k(x, x) of every row."""
    metric = kernel["metric"]
    if isinstance(metric, OutputKernel):
        return metric.diag(metric.check(X))
    # A function of two rows is called once per row, names are computed in blocks.
    size = BLOCK if isinstance(metric, str) else 1
    blocks = [X[i : i + size] for i in range(0, X.shape[0], size)]
    return np.concatenate([np.diagonal(input_gram(kernel, block, block)) for block in blocks])
