"""Stands for CuPy: arrays that NumPy does not take, as those on a GPU.

They mix with numbers, but not with arrays of NumPy, and are not converted to such arrays unless
``get`` is called. Reductions return arrays without axes. What is not in ``FUNCTIONS`` raises an
error, so that code that passes here uses functions that CuPy has.
"""

from types import ModuleType

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

FUNCTIONS = [
    *("abs", "all", "any", "arange", "argpartition", "argsort", "array", "array_equal", "asarray"),
    *("ascontiguousarray", "concatenate", "cos", "count_nonzero", "cumsum", "diagonal", "diff"),
    *("einsum", "empty", "empty_like", "exp", "eye", "fill_diagonal", "full", "hstack", "isfinite"),
    *("isinf", "isnan", "linspace", "max", "maximum", "mean", "median", "min", "minimum", "ones"),
    *("repeat", "searchsorted", "sin", "sort", "sqrt", "stack", "sum", "take_along_axis", "tile"),
    *("tensordot", "triu_indices_from", "unique", "vdot", "vstack", "where", "zeros", "zeros_like"),
]
METHODS = [
    *("all", "any", "argmax", "argmin", "argsort", "astype", "copy", "cumsum", "diagonal", "dot"),
    *("item", "max", "mean", "min", "nonzero", "ravel", "reshape", "sum", "take", "tolist"),
    *("transpose", "view"),
]


def unwrapped(value):
    """Convert arrays of the device to NumPy; raise an error for arrays of NumPy."""
    if isinstance(value, Array):
        return value.host
    if isinstance(value, np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(value, list | tuple):
        return type(value)(unwrapped(item) for item in value)
    if isinstance(value, dict):
        return {name: unwrapped(item) for name, item in value.items()}
    return value


def wrapped(value):
    """Convert arrays of NumPy, and computed numbers, to arrays of the device."""
    if isinstance(value, np.ndarray | np.generic):
        return Array(np.asarray(value))
    if isinstance(value, tuple):
        if hasattr(value, "_fields"):
            return type(value)(*(wrapped(item) for item in value))
        return tuple(wrapped(item) for item in value)
    return value


class Array(NDArrayOperatorsMixin):
    """An array of the device."""

    def __init__(self, host):
        self.host = host

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        if ufunc.__name__ not in dir(np) or method != "__call__":
            return NotImplemented
        if any(isinstance(x, np.ndarray) for x in inputs):
            return NotImplemented
        if out is not None:
            kwargs["out"] = unwrapped(out)
        result = getattr(ufunc, method)(*unwrapped(inputs), **kwargs)
        return out[0] if out is not None else wrapped(result)

    def __array_function__(self, function, types, args, kwargs):
        if function.__name__ not in FUNCTIONS and function.__module__ != "numpy.linalg":
            raise TypeError(f"the stand-in for CuPy has no {function.__name__}")
        return wrapped(function(*unwrapped(args), **unwrapped(kwargs)))

    def __getitem__(self, index):
        return wrapped(self.host[unwrapped(index)])

    def __setitem__(self, index, value):
        self.host[unwrapped(index)] = unwrapped(value)

    def __len__(self):
        return len(self.host)

    def __bool__(self):
        return bool(self.host)

    def __int__(self):
        return int(self.host)

    def __float__(self):
        return float(self.host)

    def __index__(self):
        return self.host.__index__()

    def __getattr__(self, name):
        if name in ("shape", "dtype", "ndim", "size", "nbytes", "itemsize", "strides"):
            return getattr(self.host, name)
        if name == "T":
            return Array(self.host.T)
        if name in METHODS:
            method = getattr(self.host, name)
            return lambda *args, **kwargs: wrapped(method(*unwrapped(args), **unwrapped(kwargs)))
        raise AttributeError(f"the stand-in for CuPy has no {name}")

    def get(self):
        """Return a copy on the host."""
        return self.host.copy()


Array.__module__ = "cupy"


def creates(name):
    """Return a function of the module that takes arrays of NumPy as well, as CuPy's does."""
    function = getattr(np, name)

    def call(*args, **kwargs):
        operands = [x if isinstance(x, np.ndarray) else unwrapped(x) for x in args]
        return wrapped(function(*operands, **kwargs))

    return call


def make_module():
    """Return a module to be installed as ``sys.modules["cupy"]``."""
    module = ModuleType("cupy")
    module.ndarray = Array
    module.linalg = ModuleType("cupy.linalg")
    for name in ("eigh", "qr", "norm", "cholesky"):
        function = getattr(np.linalg, name)
        setattr(module.linalg, name, lambda *a, _f=function, **k: wrapped(_f(*unwrapped(a), **k)))
    for name in FUNCTIONS:
        function = getattr(np, name)
        if name in ("array", "asarray"):
            setattr(module, name, creates(name))
        else:
            setattr(
                module, name,
                lambda *a, _f=function, **k: wrapped(_f(*unwrapped(a), **unwrapped(k))),
            )  # fmt: skip
    return module
