"""Kernels on tuples of several outputs, such as an age and a ranking."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from okforest._utils.arrays import Floats, Outputs
from okforest.kernels.as_kernel import as_kernel
from okforest.kernels.base import OutputKernel
from okforest.kernels.outputs import array_of_objects, check_collection

SAMPLE = 1000  # the variance of a part is computed from at most this number of outputs


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
        return type(self)([part.learn_form(list(own)) for part, own in pairs], self.weights)

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
        kernels = [part.resolve(own) for part, own in zip(self.parts, columns, strict=True)]
        weights = self.weights
        if weights is None:
            pairs = zip(kernels, columns, strict=True)
            weights = np.array([1.0 / _variance(kernel, own) for kernel, own in pairs])
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
        return np.asarray(sum(weight * part.diag(own) for weight, part, own in parts))

    def feature_dim(self, y: Outputs) -> int | None:
        """Return the sum of the dimensions of the parts."""
        columns = self.columns(y)
        dims = [part.feature_dim(own) for part, own in zip(self.parts, columns, strict=True)]
        return None if None in dims else sum(dim for dim in dims if dim is not None)

    def features(self, y: Outputs) -> Floats:
        """Return the features of the parts side by side, weighted."""
        if any(
            part.feature_dim(own) is None
            for part, own in zip(self.parts, self.columns(y), strict=True)
        ):
            return super().features(y)
        parts = zip(self._weights(), self.parts, self.columns(y), strict=True)
        return np.hstack([np.sqrt(weight) * part.features(own) for weight, part, own in parts])

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
    some = outputs[np.linspace(0, len(outputs) - 1, min(len(outputs), SAMPLE)).astype(int)]
    K = kernel(some)
    variance = float(np.trace(K) / len(K) - K.mean())
    return variance if variance > 1e-12 * np.abs(K).max() else 1.0
