"""Kernels in error messages: as their repr, without the matrices and long values that they hold."""

from inspect import signature
from typing import Any

from okforest.kernels._base import OutputKernel

LONGEST = 80  # characters of a parameter's value


def describe_kernel(kernel: OutputKernel) -> str:
    """Return a kernel with the parameters that are not the default, such as ``RBF(sigma=2.0)``."""
    defaults = signature(type(kernel)).parameters
    parts = [
        f"{name}={_shown(value)}"
        for name, value in kernel.get_params(deep=False).items()
        if not _is_default(value, defaults[name].default)
    ]
    return f"{type(kernel).__name__}({', '.join(parts)})"


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, str | int | float) and value == default)


def _shown(value: Any) -> str:
    if isinstance(value, OutputKernel):
        return describe_kernel(value)
    if isinstance(value, list | tuple) and all(isinstance(part, OutputKernel) for part in value):
        return f"[{', '.join(map(describe_kernel, value))}]"
    shape = getattr(value, "shape", None)  # of arrays, sparse matrices and frames
    if isinstance(shape, tuple) and shape:
        return f"<{' × '.join(map(str, shape))} matrix>" if len(shape) == 2 else f"<{shape} array>"
    text = repr(value)
    return text if len(text) <= LONGEST and "\n" not in text else f"<{type(value).__name__}>"
