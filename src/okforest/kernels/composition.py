"""Kernels made of kernels: sums, products, scaled and normalised ones, and tuples of outputs."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.parameters import POSITIVE, check_parameters
from okforest.kernels.as_kernel import as_kernel
from okforest.kernels.base import OutputKernel
from okforest.kernels.outputs import array_of_objects, check_collection

SAMPLE = 1000  # the variance of a part is computed from at most this number of outputs


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


class Tuples(OutputKernel):
    """The weighted sum of one kernel for each part of a tuple.

    Parameters
    ----------
    kernels : list of OutputKernel, str or callable
        The kernel of each part.
    weights : array-like of shape (n_parts,), optional
        Positive weights of the parts. By default 1 divided by the variance of a part in its own
        feature space, so that all parts count alike; filled in when a model is fitted.

    See Also
    --------
    okforest.decode.Parts : Decodes each part by a decoder of its own.

    Examples
    --------
    An age and a class:

    >>> from okforest import OKTree
    >>> from okforest.kernels import Tuples
    >>> y = [(20.0, "student"), (22.0, "student"), (64.0, "retired")]
    >>> tree = OKTree(kernel=Tuples(["linear", "dirac"])).fit([[0.0], [1.0], [2.0]], y)
    >>> age, status = tree.predict([[1.9]])[0]
    >>> print(age, status)
    64.0 retired
    """

    default_decoder = "parts"

    def __init__(self, kernels: Sequence[Any], weights: Any = None):
        self.kernels = kernels
        self.weights = weights

    @property
    def parts(self) -> list[OutputKernel]:
        """The kernels of the parts."""
        return [as_kernel(kernel) for kernel in self.kernels]

    @property
    def known_psd(self) -> bool:  # type: ignore[override]
        """Whether all kernels are positive semi-definite by construction."""
        return all(part.known_psd for part in self.parts)

    def check(self, y: Any) -> Outputs:
        """Return an array of tuples, each part in the canonical form of its kernel."""
        if not len(self.kernels):
            raise ValueError("kernels is empty; pass one kernel for each part of an output.")
        y = check_collection(y)
        rows = list(np.asarray(y) if hasattr(y, "__array__") else y)
        for i, row in enumerate(rows):
            if isinstance(row, str) or not hasattr(row, "__len__"):
                raise ValueError(f"y[{i}] is {row!r}; an output is a tuple of several parts.")
            if len(row) != len(self.kernels):
                raise ValueError(
                    f"y[{i}] has {len(row)} parts; there are {len(self.kernels)} kernels."
                )
        columns = self.columns(array_of_objects([tuple(row) for row in rows]))
        return array_of_objects(list(zip(*columns, strict=True)))

    def learn_form(self, y: Any) -> Self:
        """Remember the form of each part."""
        try:
            columns = list(zip(*y, strict=True))
        except (TypeError, ValueError):  # check raises an error that explains it
            return self
        if len(columns) != len(self.kernels):
            return self
        pairs = zip(self.parts, columns, strict=True)
        return type(self)([part.learn_form(list(column)) for part, column in pairs], self.weights)

    def in_form(self, outputs: Outputs) -> Any:
        """Return predicted tuples, each part as it was given."""
        return self.as_given(outputs)

    def as_given(self, outputs: Outputs) -> Outputs:
        """Return tuples whose parts are as they were given."""
        columns = [
            part.as_given(array_of_objects([output[j] for output in outputs]))
            for j, part in enumerate(self.parts)
        ]
        return array_of_objects(list(zip(*columns, strict=True)))

    def columns(self, y: Outputs) -> list[Outputs]:
        """Return the outputs of each part, in the canonical form of its kernel."""
        return [
            _explained(part, [output[j] for output in y], j) for j, part in enumerate(self.parts)
        ]

    def resolve(self, y: Outputs) -> Self:
        """Resolve the kernels, and fill in the weights."""
        columns = self.columns(y)
        kernels = [part.resolve(column) for part, column in zip(self.parts, columns, strict=True)]
        weights = self.weights
        if weights is None:
            pairs = zip(kernels, columns, strict=True)
            weights = np.array([1.0 / _variance(kernel, column) for kernel, column in pairs])
        weights = np.asarray(weights, dtype=np.float64)
        if weights.shape != (len(kernels),) or not ((weights > 0) & np.isfinite(weights)).all():
            raise ValueError(
                f"weights={self.weights!r}; pass one positive number for each of {len(kernels)} "
                "parts."
            )
        return type(self)(kernels, weights)

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        first = self.columns(y)
        second: list[Any] = [None] * len(first) if z is None else self.columns(z)
        parts = zip(self._weights(), self.parts, first, second, strict=True)
        return np.asarray(sum(weight * part(u, v) for weight, part, u, v in parts))

    def pairs(self, y: Outputs, z: Outputs) -> Floats:
        """Return k(y_i, z_i)."""
        parts = zip(self._weights(), self.parts, self.columns(y), self.columns(z), strict=True)
        return np.asarray(sum(weight * part.pairs(u, v) for weight, part, u, v in parts))

    def diag(self, y: Outputs) -> Floats:
        """Return k(y_i, y_i)."""
        parts = zip(self._weights(), self.parts, self.columns(y), strict=True)
        return np.asarray(sum(weight * part.diag(u) for weight, part, u in parts))

    def feature_dim(self, y: Outputs) -> int | None:
        """Return the sum of the dimensions of the parts."""
        columns = self.columns(y)
        dims = [part.feature_dim(column) for part, column in zip(self.parts, columns, strict=True)]
        return None if None in dims else sum(dim for dim in dims if dim is not None)

    def features(self, y: Outputs) -> Floats:
        """Return the features of the parts side by side, weighted."""
        if any(
            part.feature_dim(column) is None
            for part, column in zip(self.parts, self.columns(y), strict=True)
        ):
            return super().features(y)
        parts = zip(self._weights(), self.parts, self.columns(y), strict=True)
        return np.hstack(
            [np.sqrt(weight) * part.features(column) for weight, part, column in parts]
        )

    def _weights(self) -> Floats:
        if self.weights is None:
            return np.ones(len(self.kernels))
        return np.asarray(self.weights, dtype=np.float64)


def _explained(part: OutputKernel, values: list[Any], j: int) -> Outputs:
    try:
        return part.check(values)
    except ValueError as error:
        raise ValueError(f"part {j} of the outputs: {error}") from None


def _variance(kernel: OutputKernel, outputs: Outputs) -> float:
    """Return the variance of outputs in feature space, or 1 if they are all equal."""
    sample = outputs[np.linspace(0, len(outputs) - 1, min(len(outputs), SAMPLE)).astype(int)]
    K = kernel(sample)
    variance = float(np.trace(K) / len(K) - K.mean())
    return variance if variance > 1e-12 * np.abs(K).max() else 1.0
