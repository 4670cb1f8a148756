"""Any function as a kernel, on objects of any type."""

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from okforest._utils.arrays import Floats, Outputs
from okforest.kernels.base import OutputKernel
from okforest.kernels.outputs import read_objects

ADVICE = (
    "pass a function of two arrays of outputs that returns their Gram matrix, or "
    "FromCallable(function, elementwise=True) with a function of two outputs that returns a number."
)


class FromCallable(OutputKernel):
    """A kernel given by a function, on outputs of any type.

    Parameters
    ----------
    function : callable
        ``function(a, b)`` returns the Gram matrix, of shape (len(a), len(b)), of two arrays of
        outputs (arrays of objects if y was a list). With ``elementwise=True`` it returns the
        number k(a, b) for two outputs.
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
        return read_objects(y)

    def resolve(self, y: Outputs) -> "FromCallable":
        """Check the function, which does not depend on the outputs."""
        function = self.function
        if not callable(function):
            raise ValueError(f"function={function!r} is not a function; {ADVICE}")
        try:
            arguments = signature(function)
        except (TypeError, ValueError):  # some compiled functions have none
            return self
        try:
            arguments.bind(None, None)
        except TypeError:
            name = getattr(function, "__name__", function)
            raise ValueError(
                f"the kernel function {name}{arguments} cannot be called with two arguments; "
                f"{ADVICE}"
            ) from None
        return self

    def __call__(self, a: Outputs, b: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        if self.elementwise:
            if b is None:
                K = np.empty((len(a), len(a)))
                for i, u in enumerate(a):  # half of the matrix, and its mirror image
                    K[i, : i + 1] = K[: i + 1, i] = [self._number(u, v) for v in a[: i + 1]]
                return K
            return np.array([[self._number(u, v) for v in b] for u in a]).reshape(len(a), len(b))
        b = a if b is None else b
        value = self._matrix(a, b)
        if value.dtype.kind not in "fiub":
            raise ValueError(
                f"the kernel function returned values of type {value.dtype}; it must return real "
                "numbers."
            )
        if value.shape != (len(a), len(b)):
            raise ValueError(
                f"the kernel function returned an array of shape {value.shape} for {len(a)} and "
                f"{len(b)} outputs; the shape must be {(len(a), len(b))}. If it takes two single "
                "outputs, pass kernel=FromCallable(function, elementwise=True)."
            )
        return np.array(value, dtype=np.float64)  # a copy: the function may keep its array

    def _matrix(self, a: Outputs, b: Outputs) -> Outputs:
        """Call the function on two arrays, or explain that it takes two single outputs."""
        try:
            value = self.function(a, b)
            return np.asarray(value.todense() if hasattr(value, "todense") else value)
        except Exception as error:
            if not self._takes_single_outputs(a, b):
                raise
            raise ValueError(
                f"the kernel function takes two single outputs: on two arrays of outputs it raises "
                f"{type(error).__name__} ({error}). Pass "
                "kernel=FromCallable(function, elementwise=True)."
            ) from error

    def _takes_single_outputs(self, a: Outputs, b: Outputs) -> bool:
        try:
            value = self.function(a[0], b[0])
            return np.ndim(value) == 0 and np.isfinite(float(value))
        except Exception:
            return False

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
                f"the kernel function returned an object of type {type(value).__name__} for two "
                "outputs; with elementwise=True it must return a number."
            ) from None
