"""Kernels on vectors of numbers."""

from itertools import combinations_with_replacement
from math import comb, factorial, prod, sqrt
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.linalg as sla
from scipy.spatial.distance import cdist

from okforest._utils.arrays import Floats, Outputs, namespace, on_gpu
from okforest._utils.compat import StrOptions
from okforest._utils.distinct import distinct, refuse_masked
from okforest._utils.parameters import COUNT, NOT_NEGATIVE, POSITIVE, check_parameters
from okforest._utils.resources import gram_product
from okforest.kernels.as_kernel import as_kernel
from okforest.kernels.base import OutputKernel
from okforest.kernels.distances import (
    SMALLEST,
    InPlace,
    as_rows,
    between,
    check_limits,
    check_spread,
    evenly_spaced,
    gaussian,
    is_median,
    manhattan,
    median_distance,
    needs_differences,
    negative_halves,
)
from okforest.kernels.outputs import read_numbers
from okforest.kernels.precomputed import check_symmetric

WIDTH = {"sigma": [POSITIVE, StrOptions({"median"})]}


def _known_width(kernel: Any) -> float:
    """Return sigma of a resolved kernel."""
    sigma = kernel.sigma
    if is_median(sigma):
        raise ValueError(
            f"{type(kernel).__name__}(sigma='median') computes sigma from the training outputs; "
            "fit a model with it, or call resolve(y) first."
        )
    if not (type(sigma) is float and 0 < sigma < np.inf):
        check_parameters(kernel)
    return float(sigma)


class _VectorKernel(OutputKernel):
    known_psd = True
    numeric = True

    def check(self, y: Any) -> Outputs:
        """Return y as float64, of shape (n,) or (n, q)."""
        return read_numbers(y)


class Linear(_VectorKernel):
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
        return np.einsum("ij,ij->i", as_rows(y), as_rows(z))

    def feature_dim(self, y: Outputs) -> int:
        """Return the number of columns of y."""
        return as_rows(y).shape[1]

    def features(self, y: Outputs) -> Floats:
        """Return the outputs themselves."""
        return as_rows(y)


class RBF(OutputKernel):
    """The radial basis function kernel exp(−‖y − y'‖² / 2σ²).

    Parameters
    ----------
    sigma : float or "median", default="median"
        The width σ; "median" is the median distance between training outputs (between 1,000
        evenly spaced ones if there are more).
    base : OutputKernel, optional
        A kernel whose distance ‖φ(y) − φ(y')‖ replaces the Euclidean distance.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import RBF, Precomputed
    >>> RBF(sigma=1.0)(np.array([0.0, 2.0])).round(3)
    array([[1.   , 0.135],
           [0.135, 1.   ]])

    With the distances of a given Gram matrix; outputs are positions in it:

    >>> RBF(sigma=1.0, base=Precomputed(np.eye(2)))(np.array([0, 1])).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = WIDTH

    def __init__(
        self, sigma: float | Literal["median"] = "median", base: OutputKernel | None = None
    ):
        self.sigma = sigma
        self.base = base

    @property
    def known_psd(self) -> bool:  # type: ignore[override]
        """Whether the base kernel is positive semi-definite by construction."""
        return self._base.known_psd

    @property
    def on_device(self) -> bool:  # type: ignore[override]
        """Whether the base kernel takes arrays on a GPU."""
        return self._base.on_device

    @property
    def _base(self) -> OutputKernel:
        return Linear() if self.base is None else as_kernel(self.base)

    @property
    def numeric(self) -> bool:  # type: ignore[override]
        """Whether outputs are numbers or vectors of numbers."""
        return self._base.numeric

    def check(self, y: Any) -> Outputs:
        """Return y in the canonical form of the base kernel."""
        return self._base.check(y)

    def resolve(self, y: Outputs) -> "RBF":
        """Fill in the median distance."""
        base = None if self.base is None else self._base.resolve(y)
        sigma = self.sigma
        median = is_median(sigma)
        check_parameters(self)
        if base is None:
            wide = not median and float(sigma) >= sqrt(SMALLEST)
            check_spread("RBF", y, 2, may_be_zero=wide)
        if median:
            squares = -2.0 * between(RBF(1.0, base)._negative_halves(evenly_spaced(y)))
            if base is not None:
                largest = float(squares.max(initial=0.0))
                check_limits("RBF", "squared distances", largest, is_zero=largest == 0)
            sigma = median_distance(squares, 2)
        return RBF(sigma, base)

    def restrict(self, y: Outputs) -> "RBF":
        """Restrict the base kernel; return this one if there is nothing to drop."""
        restricted = None if self.base is None else self._base.restrict(y)
        return self if restricted is self.base else RBF(self.sigma, restricted)

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        sigma = _known_width(self)
        K = self._negative_halves(y, z, sigma, lambda halves: gaussian(halves, sigma))
        if z is None:
            np.fill_diagonal(K, 1.0)
        return K

    def diag(self, y: Outputs) -> Floats:
        """Return ones."""
        return namespace(y).ones(len(y))

    def pairs(self, y: Outputs, z: Outputs) -> Floats:
        """Return k(y_i, z_i)."""
        sigma = _known_width(self)
        base = self._base
        if self.base is None:
            halves = ((as_rows(y) - as_rows(z)) ** 2).sum(axis=1) / -2.0
        else:
            halves = np.minimum(base.pairs(y, z) - (base.diag(y) + base.diag(z)) / 2.0, 0.0)
        return gaussian(halves, sigma)

    def phases(self, y: Outputs, n: int, rng: np.random.Generator) -> Floats:
        """Return the features of the base kernel times normal frequencies of variance 1 / σ²."""
        if self._base.feature_dim(y) is None:
            return super().phases(y, n, rng)
        features = self._base.features(y)
        frequencies = rng.standard_normal((features.shape[1], n)) / float(self.sigma)
        return features @ namespace(features).asarray(frequencies)

    def _negative_halves(
        self,
        y: Outputs,
        z: Outputs | None = None,
        sigma: float = np.inf,
        then: InPlace | None = None,
    ) -> Floats:
        """Return −d² / 2 for distances d that are exact enough for this sigma.

        The diagonal of a symmetric matrix has rounding errors. ``then`` changes blocks in place.
        """
        base, first, second = self._base, y, y if z is None else z
        if self.base is None:  # centring reduces rounding errors
            origin = as_rows(y).mean(axis=0)
            y, z = as_rows(y) - origin, None if z is None else as_rows(z) - origin
        norms = base.diag(y)
        other_norms = norms if z is None else base.diag(z)
        if self.base is None and needs_differences(sigma, norms, other_norms):
            exact: Floats = cdist(as_rows(first), as_rows(second), "sqeuclidean")
            exact /= -2.0
            if then is not None:
                then(exact)
            return exact
        return negative_halves(base(y, z), norms, other_norms, then)


class Laplacian(_VectorKernel):
    """The Laplacian kernel exp(−‖y − y'‖₁ / σ).

    Parameters
    ----------
    sigma : float or "median", default="median"
        The width σ; "median" is the median distance between training outputs (between 1,000
        evenly spaced ones if there are more).

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import Laplacian
    >>> Laplacian(sigma=1.0)(np.array([0.0, 2.0])).round(3)
    array([[1.   , 0.135],
           [0.135, 1.   ]])
    """

    on_device = True

    _parameter_constraints: ClassVar[dict[str, Any]] = WIDTH

    def __init__(self, sigma: float | Literal["median"] = "median"):
        self.sigma = sigma

    def resolve(self, y: Outputs) -> "Laplacian":
        """Fill in the median distance."""
        sigma = self.sigma
        median = is_median(sigma)
        check_parameters(self)
        wide = not median and float(sigma) >= SMALLEST
        check_spread("Laplacian", y, 1, may_be_zero=wide)
        if median:
            sigma = median_distance(between(manhattan(as_rows(evenly_spaced(y)))))
        return Laplacian(sigma)

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        sigma = _known_width(self)
        K = manhattan(as_rows(y), None if z is None else as_rows(z))
        K /= -sigma
        return np.exp(K, out=K)

    def diag(self, y: Outputs) -> Floats:
        """Return ones."""
        return namespace(y).ones(len(y))

    def phases(self, y: Outputs, n: int, rng: np.random.Generator) -> Floats:
        """Return the outputs times Cauchy frequencies of scale 1 / σ."""
        rows = as_rows(y)
        frequencies = rng.standard_cauchy((rows.shape[1], n)) / float(self.sigma)
        return rows @ namespace(rows).asarray(frequencies)


class Polynomial(_VectorKernel):
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


class Mahalanobis(_VectorKernel):
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
