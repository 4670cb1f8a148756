"""Any function as a kernel, on any objects."""

from collections.abc import Callable
from typing import Any

import numpy as np

from okforest._typing import Floats, Outputs
from okforest.kernels._base import OutputKernel


class FromCallable(OutputKernel):
    """A kernel given by a function, on outputs of any type.

    Parameters
    ----------
    function : callable
        ``function(a, b)`` returns the Gram matrix, of shape (len(a), len(b)), of two arrays of
        outputs (of objects, if y was a list of objects). With ``elementwise=True`` it returns
        the number k(a, b) of two outputs.
    elementwise : bool, default=False
        Whether the function takes two outputs instead of two arrays of them.

    Examples
    --------
    >>> from okforest.kernels import FromCallable
    >>> def common_letters(a, b):
    ...     return len(set(a) & set(b))
    >>> kernel = FromCallable(common_letters, elementwise=True)
    >>> kernel(kernel.check(["tree", "forest"]))
    array([[3., 3.],
           [3., 6.]])
    """

    def __init__(self, function: Callable[[Any, Any], Any], elementwise: bool = False):
        self.function = function
        self.elementwise = elementwise

    def check(self, y: Any) -> Outputs:
        """Return an array as it is, and anything else as a 1-d array of objects."""
        if isinstance(y, np.ndarray):
            outputs = y
        elif hasattr(y, "__array__"):
            outputs = np.asarray(y)
        else:
            y = list(y)
            outputs = np.empty(len(y), dtype=object)
            for i, output in enumerate(y):  # assigned whole, NumPy would unpack lists of lists
                outputs[i] = output
        if outputs.ndim == 0:
            raise ValueError(f"y is the single object {y!r}; it must hold one output per row.")
        return outputs

    def __call__(self, a: Outputs, b: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        if self.elementwise:
            if b is None:
                half = np.empty((len(a), len(a)))
                for i, u in enumerate(a):
                    half[i, : i + 1] = half[: i + 1, i] = [self._number(u, v) for v in a[: i + 1]]
                return half
            return np.array([[self._number(u, v) for v in b] for u in a]).reshape(len(a), len(b))
        value: Any = self.function(a, a if b is None else b)
        K: Floats = np.asarray(value.todense() if hasattr(value, "todense") else value)
        if K.dtype.kind not in "fiub":
            raise ValueError(
                f"the kernel function returned {K.dtype}; it must return real numbers."
            )
        K = np.array(K, dtype=np.float64)  # a copy: the function may keep its own
        expected = (len(a), len(a if b is None else b))
        if K.shape != expected:
            raise ValueError(
                f"the kernel function returned an array of shape {K.shape} for {expected[0]} and "
                f"{expected[1]} outputs; it must be {expected}. If it takes two single outputs, "
                "pass FromCallable(function, elementwise=True)."
            )
        return K

    def pairs(self, a: Outputs, b: Outputs) -> Floats:
        """Return k(a_i, b_i)."""
        if self.elementwise:
            return np.array([self._number(u, v) for u, v in zip(a, b, strict=True)])
        return super().pairs(a, b)

    def _number(self, u: Any, v: Any) -> float:
        value = self.function(u, v)
        try:
            return float(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"the kernel function returned {type(value).__name__} for two outputs; with "
                "elementwise=True it must return a number."
            ) from None
