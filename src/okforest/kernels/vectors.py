"""Kernels on vectors of numbers."""

from itertools import combinations_with_replacement
from math import comb, factorial, prod, sqrt
from typing import Any, ClassVar

import numpy as np
import scipy.linalg as sla

from okforest._utils.arrays import Floats, Outputs, namespace, on_gpu
from okforest._utils.distinct import distinct, refuse_masked
from okforest._utils.parameters import COUNT, NOT_NEGATIVE, POSITIVE, check_parameters
from okforest._utils.resources import gram_product
from okforest.kernels.base import OutputKernel
from okforest.kernels.outputs import read_numbers
from okforest.kernels.precomputed import check_symmetric


def as_rows(y: Outputs) -> Floats:
    """Return outputs as a float64 matrix; numbers, of shape (n,), become one column."""
    return namespace(y).asarray(y, dtype=np.float64).reshape(len(y), -1)


class VectorKernel(OutputKernel):
    """A kernel on numbers or vectors of numbers."""

    known_psd = True
    numeric = True

    def check(self, y: Any) -> Outputs:
        """Return y as float64, of shape (n,) or (n, q)."""
        return read_numbers(y)


class Linear(VectorKernel):
    """The inner product ⟨y, y'⟩: multi-output regression.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import Linear
    >>> Linear()(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[ 5., 11.],
           [11., 25.]])
    """

    default_decoder = "mean"
    on_device = True

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        rows = as_rows(y)
        return gram_product(rows, rows if z is None else as_rows(z))

    def pairs(self, y: Outputs, z: Outputs) -> Floats:
        """Return k(y_i, z_i)."""
        if on_gpu(y):  # where einsum would multiply a matrix for every pair
            return (as_rows(y) * as_rows(z)).sum(axis=1)
        rows = as_rows(y)
        return np.einsum("ij,ij->i", rows, rows if z is y else as_rows(z))

    def feature_dim(self, y: Outputs) -> int:
        """Return the number of columns of y."""
        return as_rows(y).shape[1]

    def features(self, y: Outputs) -> Floats:
        """Return the outputs themselves."""
        return as_rows(y)


class Polynomial(VectorKernel):
    """The polynomial kernel (γ⟨y, y'⟩ + c)ᵈ.

    Parameters
    ----------
    degree : int, default=2
        The degree d.
    gamma : float, default=1.0
        The factor γ of the inner product, positive.
    coef0 : float, default=1.0
        The constant c, at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import Polynomial
    >>> Polynomial(degree=2)(np.array([1.0, 2.0]))
    array([[ 4.,  9.],
           [ 9., 25.]])
    """

    # It is positive semi-definite only for these values of gamma and coef0.
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "degree": [COUNT],
        "gamma": [POSITIVE],
        "coef0": [NOT_NEGATIVE],
    }

    def __init__(self, degree: int = 2, gamma: float = 1.0, coef0: float = 1.0):
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    def resolve(self, y: Outputs) -> "Polynomial":
        """Check the parameters; none depends on the outputs."""
        check_parameters(self)
        return self

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        K = Linear()(y, z)
        K *= self.gamma
        K += self.coef0
        K **= self.degree
        return K

    def pairs(self, y: Outputs, z: Outputs) -> Floats:
        """Return k(y_i, z_i)."""
        return (self.gamma * Linear().pairs(y, z) + self.coef0) ** self.degree

    def feature_dim(self, y: Outputs) -> int:
        """Return the number of monomials."""
        return comb(as_rows(y).shape[1] + int(self.degree), int(self.degree))

    def features(self, y: Outputs) -> Floats:
        """Return the monomials of degree d of (√γ y, √c), with multinomial coefficients."""
        rows = as_rows(y)
        extended = np.column_stack([sqrt(self.gamma) * rows, np.full(len(rows), sqrt(self.coef0))])
        columns = []
        for factors in combinations_with_replacement(range(extended.shape[1]), int(self.degree)):
            repeats = prod(factorial(factors.count(f)) for f in set(factors))
            scale = sqrt(factorial(int(self.degree)) / repeats)
            columns.append(scale * extended[:, factors].prod(axis=1))
        return np.column_stack(columns)


class Mahalanobis(VectorKernel):
    """The inner product yᵀ V⁻¹ y' of outputs with covariance V, as in Segal's trees.

    Parameters
    ----------
    covariance : ndarray of shape (q, q), optional
        V, a symmetric positive definite matrix; by default the covariance of the training outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import Mahalanobis
    >>> Mahalanobis(covariance=np.diag([1.0, 4.0]))(np.array([[1.0, 2.0]]))
    array([[2.]])
    """

    default_decoder = "mean"

    def __init__(self, covariance: Floats | None = None):
        self.covariance = covariance

    def resolve(self, y: Outputs) -> "Mahalanobis":
        """Fill in the covariance of the outputs, and check it."""
        rows = as_rows(y)
        refuse_masked(self.covariance, "covariance")
        V = self.covariance
        if V is None:
            V = np.cov(rows.T).reshape(rows.shape[1], -1)
        kernel = Mahalanobis(np.asarray(V, dtype=np.float64))
        kernel.features(y[:1])
        return kernel

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        return Linear()(self.features(y), None if z is None else self.features(z))

    def pairs(self, y: Outputs, z: Outputs) -> Floats:
        """Return k(y_i, z_i)."""
        return Linear().pairs(self.features(y), self.features(z))

    def feature_dim(self, y: Outputs) -> int:
        """Return the number of columns of y."""
        return as_rows(y).shape[1]

    def features(self, y: Outputs) -> Floats:
        """Return the whitened outputs, the rows of Y L⁻ᵀ with V = L Lᵀ."""
        rows = as_rows(y)
        if self.covariance is None:
            raise ValueError(
                "Mahalanobis() computes the covariance from the training outputs; fit a model with "
                "it, call resolve(y) first, or pass covariance."
            )
        V = np.asarray(self.covariance, dtype=np.float64)
        q = rows.shape[1]
        if V.shape != (q, q):
            raise ValueError(
                f"Mahalanobis got covariance of shape {V.shape}; outputs with {q} values need "
                f"({q}, {q})."
            )
        # Cholesky reads one half of the matrix.
        check_symmetric(V, "the covariance of Mahalanobis", "covariance")
        try:
            L = sla.cholesky(V, lower=True)
        except sla.LinAlgError:
            raise ValueError(
                "Mahalanobis got a covariance that is not positive definite. Remove constant or "
                "redundant outputs, or pass covariance + c * np.eye(q)."
            ) from None
        # Only once for equal outputs, which may otherwise be rounded differently.
        different = distinct(rows)
        whitened: Floats = sla.solve_triangular(L, rows[different.first].T, lower=True).T
        return whitened[different.group]
