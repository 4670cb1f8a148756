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

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        if self.elementwise:
            if z is None:
                K = np.empty((len(y), len(y)))
                for i, u in enumerate(y):  # half of the matrix, and its mirror image
                    K[i, : i + 1] = K[: i + 1, i] = [self._number(u, v) for v in y[: i + 1]]
                return K
            return np.array([[self._number(u, v) for v in z] for u in y]).reshape(len(y), len(z))
        z = y if z is None else z
        value = self._matrix(y, z)
        if value.dtype.kind not in "fiub":
            raise ValueError(
                f"the kernel function returned values of type {value.dtype}; it must return real "
                "numbers."
            )
        if value.shape != (len(y), len(z)):
            raise ValueError(
                f"the kernel function returned an array of shape {value.shape} for {len(y)} and "
                f"{len(z)} outputs; the shape must be {(len(y), len(z))}. If it takes two single "
                "outputs, pass kernel=FromCallable(function, elementwise=True)."
            )
        return np.array(value, dtype=np.float64)  # a copy: the function may keep its array

    def _matrix(self, y: Outputs, z: Outputs) -> Outputs:
        """Call the function on two arrays, or explain that it takes two single outputs."""
        try:
            value = self.function(y, z)
            return np.asarray(value.todense() if hasattr(value, "todense") else value)
        except Exception as error:
            if not self._takes_single_outputs(y, z):
                raise
            raise ValueError(
                f"the kernel function takes two single outputs: on two arrays of outputs it raises "
                f"{type(error).__name__} ({error}). Pass "
                "kernel=FromCallable(function, elementwise=True)."
            ) from error

    def _takes_single_outputs(self, y: Outputs, z: Outputs) -> bool:
        try:
            value = self.function(y[0], z[0])
            return np.ndim(value) == 0 and np.isfinite(float(value))
        except Exception:
            return False

    def pairs(self, y: Outputs, z: Outputs) -> Floats:
        """Return k(y_i, z_i)."""
        if self.elementwise:
            return np.array([self._number(u, v) for u, v in zip(y, z, strict=True)])
        return super().pairs(y, z)

    def _number(self, u: Any, v: Any) -> float:
        value = self.function(u, v)
        try:
            return float(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"the kernel function returned an object of type {type(value).__name__} for two "
                "outputs; with elementwise=True it must return a number."
            ) from None
