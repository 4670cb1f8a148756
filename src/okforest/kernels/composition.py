"""Kernels made of other kernels."""

from typing import Any, ClassVar, Self

import numpy as np

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.parameters import POSITIVE, check_parameters
from okforest.kernels.as_kernel import as_kernel
from okforest.kernels.base import OutputKernel


class _Pair(OutputKernel):
    """Two kernels on the same outputs."""

    def __init__(self, first: OutputKernel | str, second: OutputKernel | str):
        self.first = first
        self.second = second

    @property
    def _parts(self) -> tuple[OutputKernel, OutputKernel]:
        return as_kernel(self.first), as_kernel(self.second)

    @property
    def known_psd(self) -> bool:  # type: ignore[override]
        return all(part.known_psd for part in self._parts)

    @property
    def numeric(self) -> bool:  # type: ignore[override]
        return all(part.numeric for part in self._parts)

    @property
    def default_min_samples_leaf(self) -> int:  # type: ignore[override]
        """The larger of the two, as both kernels compare the same outputs."""
        return max(part.default_min_samples_leaf for part in self._parts)

    def check(self, y: Any) -> Outputs:
        """Return y in a form that both kernels accept."""
        first, second = self._parts
        return second.check(first.check(y))

    def learn_form(self, y: Any) -> Self:
        """Remember the form of y in both kernels."""
        return type(self)(*(part.learn_form(y) for part in self._parts))

    def in_form(self, outputs: Outputs) -> Any:
        """Return predicted outputs as the first kernel does."""
        return self._parts[0].in_form(outputs)

    def as_given(self, outputs: Outputs) -> Outputs:
        """Return single outputs as the first kernel does."""
        return self._parts[0].as_given(outputs)

    def resolve(self, y: Outputs) -> Self:
        """Resolve both kernels."""
        return type(self)(*(part.resolve(y) for part in self._parts))

    def restrict(self, y: Outputs) -> Self:
        """Restrict both kernels; return this one if there is nothing to drop."""
        first, second = (part.restrict(y) for part in self._parts)
        if first is self.first and second is self.second:
            return self
        return type(self)(first, second)

    def _feature_dims(self, y: Outputs) -> tuple[int, int] | None:
        d1, d2 = (part.feature_dim(y) for part in self._parts)
        return None if d1 is None or d2 is None else (d1, d2)


class Sum(_Pair):
    """The sum of two kernels, also written ``first + second``.

    Parameters
    ----------
    first, second : OutputKernel or str
        Kernels on the same outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import Linear, RBF
    >>> (Linear() + RBF(sigma=1.0))(np.array([1.0, 1.0]))
    array([[2., 2.],
           [2., 2.]])
    """

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        first, second = self._parts
        return first(y, z) + second(y, z)

    def pairs(self, y: Outputs, z: Outputs) -> Floats:
        """Return k(y_i, z_i)."""
        first, second = self._parts
        return first.pairs(y, z) + second.pairs(y, z)

    def feature_dim(self, y: Outputs) -> int | None:
        """Return the sum of the two dimensions."""
        dims = self._feature_dims(y)
        return None if dims is None else sum(dims)

    def features(self, y: Outputs) -> Floats:
        """Return both kernels' features side by side."""
        return np.hstack([part.features(y) for part in self._parts])


class Product(_Pair):
    """The product of two kernels, also written ``first * second``.

    Parameters
    ----------
    first, second : OutputKernel or str
        Kernels on the same outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import Linear
    >>> (Linear() * Linear())(np.array([1.0, 3.0]))
    array([[ 1.,  9.],
           [ 9., 81.]])
    """

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        first, second = self._parts
        return first(y, z) * second(y, z)

    def pairs(self, y: Outputs, z: Outputs) -> Floats:
        """Return k(y_i, z_i)."""
        first, second = self._parts
        return first.pairs(y, z) * second.pairs(y, z)

    def feature_dim(self, y: Outputs) -> int | None:
        """Return the product of the two dimensions."""
        dims = self._feature_dims(y)
        return None if dims is None else dims[0] * dims[1]

    def features(self, y: Outputs) -> Floats:
        """Return the products of every feature of one with every feature of the other."""
        first, second = (part.features(y) for part in self._parts)
        products = first[:, :, None] * second[:, None, :]
        return products.reshape(len(y), -1)


class _Wrapper(OutputKernel):
    """A transformed kernel, on the same outputs; a subclass has the parameter ``base``."""

    base: OutputKernel | str

    @property
    def _base(self) -> OutputKernel:
        return as_kernel(self.base)

    @property
    def known_psd(self) -> bool:  # type: ignore[override]
        return self._base.known_psd

    @property
    def numeric(self) -> bool:  # type: ignore[override]
        return self._base.numeric

    @property
    def default_min_samples_leaf(self) -> int:  # type: ignore[override]
        return self._base.default_min_samples_leaf

    def check(self, y: Any) -> Outputs:
        """Return y in the canonical form of the base kernel."""
        return self._base.check(y)

    def learn_form(self, y: Any) -> Self:
        """Remember the form of y in the base kernel."""
        return self._with_base(self._base.learn_form(y))

    def in_form(self, outputs: Outputs) -> Any:
        """Return predicted outputs as the base kernel does."""
        return self._base.in_form(outputs)

    def as_given(self, outputs: Outputs) -> Outputs:
        """Return single outputs as the base kernel does."""
        return self._base.as_given(outputs)

    def resolve(self, y: Outputs) -> Self:
        """Resolve the base kernel."""
        return self._with_base(self._base.resolve(y))

    def restrict(self, y: Outputs) -> Self:
        """Restrict the base kernel; return this one if there is nothing to drop."""
        restricted = self._base.restrict(y)
        return self if restricted is self.base else self._with_base(restricted)

    def feature_dim(self, y: Outputs) -> int | None:
        """Return the number of features of the base kernel."""
        return self._base.feature_dim(y)

    def _with_base(self, base: OutputKernel) -> Self:
        return type(self)(**self.get_params(deep=False) | {"base": base})


class Scaled(_Wrapper):
    """A kernel times a positive number, also written ``2.0 * kernel``.

    Parameters
    ----------
    base : OutputKernel or str
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

    _parameter_constraints: ClassVar[dict[str, Any]] = {"scale": [POSITIVE]}

    def __init__(self, base: OutputKernel | str, scale: float = 1.0):
        self.base = base
        self.scale = scale

    @property
    def default_decoder(self) -> Any:
        """The decoder of the base kernel: scaling does not change which output is nearest."""
        return self._base.default_decoder

    def resolve(self, y: Outputs) -> Self:
        """Check the scale and resolve the base kernel."""
        check_parameters(self)
        return super().resolve(y)

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        return self.scale * self._base(y, z)

    def diag(self, y: Outputs) -> Floats:
        """Return k(y_i, y_i)."""
        return self.scale * self._base.diag(y)

    def pairs(self, y: Outputs, z: Outputs) -> Floats:
        """Return k(y_i, z_i)."""
        return self.scale * self._base.pairs(y, z)

    def features(self, y: Outputs) -> Floats:
        """Return the features of the base kernel times the square root of the scale."""
        return np.sqrt(self.scale) * self._base.features(y)


class Normalized(_Wrapper):
    """The cosine similarity of a kernel, k(y, y') / √(k(y, y) k(y', y')), with 0 / 0 = 0.

    Parameters
    ----------
    base : OutputKernel or str
        Any kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import Linear, Normalized
    >>> Normalized(Linear())(np.array([[3.0, 0.0], [1.0, 1.0]])).round(3)
    array([[1.   , 0.707],
           [0.707, 1.   ]])
    """

    def __init__(self, base: OutputKernel | str):
        self.base = base

    def _scale(self, y: Outputs) -> Floats:
        norm = np.sqrt(self._base.diag(y))
        return np.divide(1.0, norm, out=np.zeros_like(norm), where=norm > 0)

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        K = self._base(y, z)
        K *= self._scale(y)[:, None]
        K *= self._scale(y if z is None else z)[None, :]
        return K

    def diag(self, y: Outputs) -> Floats:
        """Return ones, and zeros where the base kernel has zeros."""
        return (self._base.diag(y) > 0).astype(np.float64)

    def pairs(self, y: Outputs, z: Outputs) -> Floats:
        """Return k(y_i, z_i)."""
        return self._scale(y) * self._scale(z) * self._base.pairs(y, z)

    def features(self, y: Outputs) -> Floats:
        """Return the features of the base kernel, each row scaled to norm one."""
        return self._scale(y)[:, None] * self._base.features(y)
