"""Kernels made of kernels."""

from numbers import Real
from typing import Any, Literal

import numpy as np

from okforest._typing import Floats, Outputs
from okforest.kernels._base import OutputKernel


class _Pair(OutputKernel):
    """Two kernels on the same outputs."""

    def __init__(self, k1: OutputKernel, k2: OutputKernel):
        self.k1 = k1
        self.k2 = k2

    @property
    def known_psd(self) -> bool:  # type: ignore[override]
        return self.k1.known_psd and self.k2.known_psd

    @property
    def numeric(self) -> bool:  # type: ignore[override]
        return self.k1.numeric and self.k2.numeric

    def check(self, y: Any) -> Outputs:
        """Return what both kernels accept."""
        return self.k2.check(self.k1.check(y))

    def resolve(self, y: Outputs) -> "_Pair":
        """Resolve both kernels."""
        return type(self)(self.k1.resolve(y), self.k2.resolve(y))

    def restrict(self, y: Outputs) -> "_Pair":
        """Restrict both kernels."""
        return type(self)(self.k1.restrict(y), self.k2.restrict(y))

    def _feature_dims(self, y: Outputs) -> tuple[int, int] | None:
        d1, d2 = self.k1.feature_dim(y), self.k2.feature_dim(y)
        return None if d1 is None or d2 is None else (d1, d2)


class Sum(_Pair):
    """The sum of two kernels, also written ``k1 + k2``.

    Parameters
    ----------
    k1, k2 : OutputKernel
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
        return self.k1(a, b) + self.k2(a, b)

    def pairs(self, a: Outputs, b: Outputs) -> Floats:
        """Return k(a_i, b_i)."""
        return self.k1.pairs(a, b) + self.k2.pairs(a, b)

    def feature_dim(self, y: Outputs) -> int | None:
        """Return the sum of the two dimensions."""
        dims = self._feature_dims(y)
        return None if dims is None else sum(dims)

    def features(self, a: Outputs) -> Floats:
        """Return both kernels' features side by side."""
        return np.hstack([self.k1.features(a), self.k2.features(a)])


class Product(_Pair):
    """The product of two kernels, also written ``k1 * k2``.

    Parameters
    ----------
    k1, k2 : OutputKernel
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
        return self.k1(a, b) * self.k2(a, b)

    def pairs(self, a: Outputs, b: Outputs) -> Floats:
        """Return k(a_i, b_i)."""
        return self.k1.pairs(a, b) * self.k2.pairs(a, b)

    def feature_dim(self, y: Outputs) -> int | None:
        """Return the product of the two dimensions."""
        dims = self._feature_dims(y)
        return None if dims is None else dims[0] * dims[1]

    def features(self, a: Outputs) -> Floats:
        """Return the products of every feature of one with every feature of the other."""
        products = self.k1.features(a)[:, :, None] * self.k2.features(a)[:, None, :]
        return products.reshape(len(a), -1)


class _Wrapper(OutputKernel):
    """One kernel, changed; outputs are its."""

    kernel: OutputKernel

    @property
    def known_psd(self) -> bool:  # type: ignore[override]
        return self.kernel.known_psd

    @property
    def numeric(self) -> bool:  # type: ignore[override]
        return self.kernel.numeric

    def check(self, y: Any) -> Outputs:
        """Return what the kernel makes of y."""
        return self.kernel.check(y)

    def feature_dim(self, y: Outputs) -> int | None:
        """Return the dimension of the kernel's features."""
        return self.kernel.feature_dim(y)


class Scaled(_Wrapper):
    """A kernel times a positive number, also written ``2.0 * kernel``.

    Parameters
    ----------
    kernel : OutputKernel
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

    def __init__(self, kernel: OutputKernel, scale: float = 1.0):
        self.kernel = kernel
        self.scale = scale

    @property
    def preimage(self) -> Literal["mean", "majority"] | None:  # type: ignore[override]
        """The kernel's own: a scale does not move it."""
        return self.kernel.preimage

    def resolve(self, y: Outputs) -> "Scaled":
        """Resolve the kernel and check the scale."""
        if not isinstance(self.scale, Real) or not 0 < self.scale < np.inf:
            raise ValueError(f"Scaled got scale={self.scale!r}; use a positive number.")
        return Scaled(self.kernel.resolve(y), self.scale)

    def restrict(self, y: Outputs) -> "Scaled":
        """Restrict the kernel."""
        return Scaled(self.kernel.restrict(y), self.scale)

    def __call__(self, a: Outputs, b: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        return self.scale * self.kernel(a, b)

    def diag(self, a: Outputs) -> Floats:
        """Return k(a_i, a_i)."""
        return self.scale * self.kernel.diag(a)

    def pairs(self, a: Outputs, b: Outputs) -> Floats:
        """Return k(a_i, b_i)."""
        return self.scale * self.kernel.pairs(a, b)

    def features(self, a: Outputs) -> Floats:
        """Return the kernel's features times the root of the scale."""
        return np.sqrt(self.scale) * self.kernel.features(a)


class Normalized(_Wrapper):
    """The cosine of a kernel, k(y, y') / √(k(y, y) k(y', y')); 0 where that is 0 / 0.

    Parameters
    ----------
    kernel : OutputKernel
        Any kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import Linear, Normalized
    >>> Normalized(Linear())(np.array([[3.0, 0.0], [1.0, 1.0]])).round(3)
    array([[1.   , 0.707],
           [0.707, 1.   ]])
    """

    def __init__(self, kernel: OutputKernel):
        self.kernel = kernel

    def resolve(self, y: Outputs) -> "Normalized":
        """Resolve the kernel."""
        return Normalized(self.kernel.resolve(y))

    def restrict(self, y: Outputs) -> "Normalized":
        """Restrict the kernel."""
        return Normalized(self.kernel.restrict(y))

    def _scale(self, a: Outputs) -> Floats:
        norm = np.sqrt(self.kernel.diag(a))
        return np.divide(1.0, norm, out=np.zeros_like(norm), where=norm > 0)

    def __call__(self, a: Outputs, b: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        K = self.kernel(a, b)
        K *= self._scale(a)[:, None]
        K *= self._scale(a if b is None else b)[None, :]
        return K

    def pairs(self, a: Outputs, b: Outputs) -> Floats:
        """Return k(a_i, b_i)."""
        return self._scale(a) * self._scale(b) * self.kernel.pairs(a, b)

    def features(self, a: Outputs) -> Floats:
        """Return the kernel's features, each row scaled to norm one."""
        return self._scale(a)[:, None] * self.kernel.features(a)
