"""Kernels made of kernels."""

from numbers import Real
from typing import Any, Literal

import numpy as np

from okforest._typing import Floats, Outputs
from okforest.kernels._base import OutputKernel
from okforest.kernels._names import as_kernel


class _Pair(OutputKernel):
    """Two kernels on the same outputs."""

    def __init__(self, k1: OutputKernel | str, k2: OutputKernel | str):
        self.k1 = k1
        self.k2 = k2

    @property
    def _parts(self) -> tuple[OutputKernel, OutputKernel]:
        return as_kernel(self.k1), as_kernel(self.k2)

    @property
    def known_psd(self) -> bool:  # type: ignore[override]
        return all(part.known_psd for part in self._parts)

    @property
    def numeric(self) -> bool:  # type: ignore[override]
        return all(part.numeric for part in self._parts)

    def check(self, y: Any) -> Outputs:
        """Return what both kernels accept."""
        first, second = self._parts
        return second.check(first.check(y))

    def resolve(self, y: Outputs) -> "_Pair":
        """Resolve both kernels."""
        return type(self)(*(part.resolve(y) for part in self._parts))

    def restrict(self, y: Outputs) -> "_Pair":
        """Restrict both kernels."""
        return type(self)(*(part.restrict(y) for part in self._parts))

    def _feature_dims(self, y: Outputs) -> tuple[int, int] | None:
        d1, d2 = (part.feature_dim(y) for part in self._parts)
        return None if d1 is None or d2 is None else (d1, d2)


class Sum(_Pair):
    """The sum of two kernels, also written ``k1 + k2``.

    Parameters
    ----------
    k1, k2 : OutputKernel or str
        Kernels on the same outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import Linear, RBF
    >>> (Linear() + RBF(sigma=1.0))(np.array([1.0, 1.0]))
    array([[2., 2.],
           [2., 2.]])
    """

    def __call__(self, a: Outputs, b: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        first, second = self._parts
        return first(a, b) + second(a, b)

    def pairs(self, a: Outputs, b: Outputs) -> Floats:
        """Return k(a_i, b_i)."""
        first, second = self._parts
        return first.pairs(a, b) + second.pairs(a, b)

    def feature_dim(self, y: Outputs) -> int | None:
        """Return the sum of the two dimensions."""
        dims = self._feature_dims(y)
        return None if dims is None else sum(dims)

    def features(self, a: Outputs) -> Floats:
        """Return both kernels' features side by side."""
        return np.hstack([part.features(a) for part in self._parts])


class Product(_Pair):
    """The product of two kernels, also written ``k1 * k2``.

    Parameters
    ----------
    k1, k2 : OutputKernel or str
        Kernels on the same outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import Linear
    >>> (Linear() * Linear())(np.array([1.0, 3.0]))
    array([[ 1.,  9.],
           [ 9., 81.]])
    """

    def __call__(self, a: Outputs, b: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        first, second = self._parts
        return first(a, b) * second(a, b)

    def pairs(self, a: Outputs, b: Outputs) -> Floats:
        """Return k(a_i, b_i)."""
        first, second = self._parts
        return first.pairs(a, b) * second.pairs(a, b)

    def feature_dim(self, y: Outputs) -> int | None:
        """Return the product of the two dimensions."""
        dims = self._feature_dims(y)
        return None if dims is None else dims[0] * dims[1]

    def features(self, a: Outputs) -> Floats:
        """Return the products of every feature of one with every feature of the other."""
        first, second = (part.features(a) for part in self._parts)
        products = first[:, :, None] * second[:, None, :]
        return products.reshape(len(a), -1)


class _Wrapper(OutputKernel):
    """One kernel, changed; outputs are its."""

    kernel: OutputKernel | str

    @property
    def _kernel(self) -> OutputKernel:
        return as_kernel(self.kernel)

    @property
    def known_psd(self) -> bool:  # type: ignore[override]
        return self._kernel.known_psd

    @property
    def numeric(self) -> bool:  # type: ignore[override]
        return self._kernel.numeric

    def check(self, y: Any) -> Outputs:
        """Return what the kernel makes of y."""
        return self._kernel.check(y)

    def feature_dim(self, y: Outputs) -> int | None:
        """Return the dimension of the kernel's features."""
        return self._kernel.feature_dim(y)


class Scaled(_Wrapper):
    """A kernel times a positive number, also written ``2.0 * kernel``.

    Parameters
    ----------
    kernel : OutputKernel or str
        Any kernel.
    scale : float, default=1.0
        The number.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import Dirac
    >>> (2.0 * Dirac())(np.array(["a", "b"]))
    array([[2., 0.],
           [0., 2.]])
    """

    def __init__(self, kernel: OutputKernel | str, scale: float = 1.0):
        self.kernel = kernel
        self.scale = scale

    @property
    def preimage(self) -> Literal["mean", "majority"] | None:  # type: ignore[override]
        """The kernel's own: a scale does not move it."""
        return self._kernel.preimage

    def resolve(self, y: Outputs) -> "Scaled":
        """Resolve the kernel and check the scale."""
        if not isinstance(self.scale, Real) or not 0 < self.scale < np.inf:
            raise ValueError(f"Scaled got scale={self.scale!r}; use a positive number.")
        return Scaled(self._kernel.resolve(y), self.scale)

    def restrict(self, y: Outputs) -> "Scaled":
        """Restrict the kernel."""
        return Scaled(self._kernel.restrict(y), self.scale)

    def __call__(self, a: Outputs, b: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        return self.scale * self._kernel(a, b)

    def diag(self, a: Outputs) -> Floats:
        """Return k(a_i, a_i)."""
        return self.scale * self._kernel.diag(a)

    def pairs(self, a: Outputs, b: Outputs) -> Floats:
        """Return k(a_i, b_i)."""
        return self.scale * self._kernel.pairs(a, b)

    def features(self, a: Outputs) -> Floats:
        """Return the kernel's features times the root of the scale."""
        return np.sqrt(self.scale) * self._kernel.features(a)


class Normalized(_Wrapper):
    """The cosine of a kernel, k(y, y') / √(k(y, y) k(y', y')); 0 where that is 0 / 0.

    Parameters
    ----------
    kernel : OutputKernel or str
        Any kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import Linear, Normalized
    >>> Normalized(Linear())(np.array([[3.0, 0.0], [1.0, 1.0]])).round(3)
    array([[1.   , 0.707],
           [0.707, 1.   ]])
    """

    def __init__(self, kernel: OutputKernel | str):
        self.kernel = kernel

    def resolve(self, y: Outputs) -> "Normalized":
        """Resolve the kernel."""
        return Normalized(self._kernel.resolve(y))

    def restrict(self, y: Outputs) -> "Normalized":
        """Restrict the kernel."""
        return Normalized(self._kernel.restrict(y))

    def _scale(self, a: Outputs) -> Floats:
        norm = np.sqrt(self._kernel.diag(a))
        return np.divide(1.0, norm, out=np.zeros_like(norm), where=norm > 0)

    def __call__(self, a: Outputs, b: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        K = self._kernel(a, b)
        K *= self._scale(a)[:, None]
        K *= self._scale(a if b is None else b)[None, :]
        return K

    def diag(self, a: Outputs) -> Floats:
        """Return ones, and zeros where the kernel's own are."""
        return (self._kernel.diag(a) > 0).astype(np.float64)

    def pairs(self, a: Outputs, b: Outputs) -> Floats:
        """Return k(a_i, b_i)."""
        return self._scale(a) * self._scale(b) * self._kernel.pairs(a, b)

    def features(self, a: Outputs) -> Floats:
        """Return the kernel's features, each row scaled to norm one."""
        return self._scale(a)[:, None] * self._kernel.features(a)
