"""The contract of an output kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator

from okforest._typing import Floats, Outputs

if TYPE_CHECKING:
    from okforest.kernels.composition import Product, Scaled, Sum

BLOCK = 256  # side of the Gram blocks whose diagonals give k(a_i, b_i) where nothing better does


class OutputKernel(ABC, BaseEstimator):
    """A positive semi-definite kernel k(y, y') = ⟨φ(y), φ(y')⟩ on outputs of some kind.

    To add a kernel, subclass it and write :meth:`check` and :meth:`__call__`; parameters are the
    arguments of ``__init__``, stored unchanged, and become searchable as ``kernel__name``. The
    other methods have defaults that are right, and can be overridden to be fast.

    Kernels add and multiply: ``RBF(2.0) + 0.5 * Linear()``.
    """

    #: Whether every Gram matrix is known to be positive semi-definite; others are tested.
    known_psd: bool = False
    #: The closed form of the pre-image, if there is one.
    preimage: Literal["mean", "majority"] | None = None
    #: Whether outputs are vectors of numbers, as regressors have them.
    numeric: bool = False

    @abstractmethod
    def check(self, y: Any) -> Outputs:
        """Return outputs in canonical form, an array with one output per entry of its first axis.

        Raise a ValueError that says what to do if they are not of this kernel's kind.
        """

    @abstractmethod
    def __call__(self, a: Outputs, b: Outputs | None = None) -> Floats:
        """Return the Gram matrix of a and b, or of a and a, as a new array."""

    def resolve(self, y: Outputs) -> OutputKernel:
        """Return this kernel with the parameters that depend on the training outputs filled in."""
        return self

    def restrict(self, y: Outputs) -> OutputKernel:
        """Return a kernel that need be known on these outputs only, to save memory."""
        return self

    def diag(self, a: Outputs) -> Floats:
        """Return k(a_i, a_i)."""
        return self.pairs(a, a)

    def pairs(self, a: Outputs, b: Outputs) -> Floats:
        """Return k(a_i, b_i)."""
        blocks = [slice(i, i + BLOCK) for i in range(0, len(a), BLOCK)]
        return np.concatenate([np.diagonal(self(a[block], b[block])) for block in blocks])

    def feature_dim(self, y: Outputs) -> int | None:
        """Return the dimension of :meth:`features`, or None where there are none."""
        return None

    def features(self, a: Outputs) -> Floats:
        """Return explicit features Φ, of shape (n, feature_dim), with k(a, b) = Φ(a) Φ(b)ᵀ.

        Asked of a resolved kernel only. At least one of a and b is a training output.
        """
        raise TypeError(f"{type(self).__name__} has no explicit features")

    def phases(self, a: Outputs, n: int, rng: np.random.Generator) -> Floats:
        """Return ⟨ω_j, a_i⟩ for n random frequencies ω_j, with k(a, b) = E cos⟨ω, a − b⟩.

        Kernels that depend on a difference of vectors have them: random Fourier features.
        """
        raise ValueError(
            f"embedding='fourier' needs an RBF or Laplacian kernel on vectors, and this is "
            f"{self!r}; use 'cholesky' or 'nystrom'."
        )

    def __add__(self, other: OutputKernel) -> Sum:
        from okforest.kernels.composition import Sum

        return Sum(self, other) if isinstance(other, OutputKernel) else NotImplemented

    def __mul__(self, other: OutputKernel | float) -> Product | Scaled:
        from okforest.kernels.composition import Product, Scaled

        if isinstance(other, OutputKernel):
            return Product(self, other)
        return Scaled(self, float(other)) if isinstance(other, Real) else NotImplemented

    __rmul__ = __mul__
