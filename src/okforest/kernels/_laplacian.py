"""Functions r(L) of the Laplacian L of a graph: whole for small graphs, products for large ones."""

from collections.abc import Callable
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.fft as sfft
import scipy.linalg as sla
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from okforest._typing import Floats

ROUNDING = 1e-16  # Chebyshev coefficients below this part of the largest value are left out
PROBES = 64  # random vectors that estimate a trace

Positions = npt.NDArray[np.intp]
Function = Callable[[Floats], Floats]


class GraphLaplacian:
    """A sparse Laplacian, block diagonal, and what is computed from it once.

    Parameters
    ----------
    matrix : csr_array of shape (n, n)
        The matrix L, positive semi-definite.
    component : ndarray of shape (n,)
        The connected component of each vertex, 0, 1, …
    null_vector : ndarray of shape (n,)
        A vector v without zeros with L v = 0.
    """

    def __init__(self, matrix: sp.csr_array, component: Positions, null_vector: Floats):
        self.matrix = matrix
        self.component = component
        self.null_vector = null_vector

    def __len__(self) -> int:
        return len(self.component)

    @cached_property
    def null_space(self) -> sp.csc_array:
        """Return an orthonormal basis of {v: L v = 0}, one vector a component."""
        norms = np.sqrt(np.bincount(self.component, weights=self.null_vector**2))
        places = (np.arange(len(self)), self.component)
        return sp.csc_array((self.null_vector / norms[self.component], places))

    def outside_null_space(self, B: Floats) -> Floats:
        """Return B less its projection on the null space."""
        return B - self.null_space @ (self.null_space.T @ B)

    @cached_property
    def spectrum(self) -> tuple[Floats, Floats]:
        """Return all eigenvalues and vectors, by component.

        So the zeros between components and the eigenvalues 0, one a component, are exact.
        """
        values, vectors = np.zeros(len(self)), np.zeros((len(self), len(self)))
        order = np.argsort(self.component, kind="stable")
        null_vectors = np.asarray(self.null_space.sum(axis=1))
        for rows in np.split(order, np.cumsum(np.bincount(self.component))[:-1]):
            if len(rows) > 1:
                block = self.matrix[rows][:, rows].toarray()
                values[rows], vectors[np.ix_(rows, rows)] = sla.eigh(block)
            values[rows[0]], vectors[rows, rows[0]] = 0.0, null_vectors[rows]
        return np.maximum(values, 0.0), vectors

    def product(self, function: Function, B: Floats) -> Floats:
        """Return r(L) B for a smooth function r, by its Chebyshev series.

        SciPy's expm_multiply would draw from NumPy's global random numbers, and take more
        products.
        """
        half = float(abs(self.matrix).sum(axis=1).max()) / 2  # no eigenvalue is above 2 half
        if half == 0:
            return function(np.zeros(1))[0] * B
        coefficients = _chebyshev(lambda t: function(half * (1 + t)))
        result = coefficients[0] * B
        before, current = B, (self.matrix @ B) / half - B
        for coefficient in coefficients[1:]:
            result += coefficient * current
            before, current = current, 2.0 * ((self.matrix @ current) / half - current) - before
        return result

    def pseudo_inverse_product(self, B: Floats) -> Floats:
        """Return L⁺ B: solve with one vertex of each component held at 0, then centre."""
        result = np.zeros_like(B)
        free, solver = self._grounded
        if solver is not None:
            result[free] = solver.solve(self.outside_null_space(B)[free])
        return self.outside_null_space(result)

    @cached_property
    def _grounded(self) -> tuple[Positions, spla.SuperLU | None]:
        """Return all vertices but one of each component, and a factorisation of L on them."""
        by_degree = np.lexsort((-self.matrix.diagonal(), self.component))
        grounds = by_degree[np.unique(self.component[by_degree], return_index=True)[1]]
        free = np.setdiff1d(np.arange(len(self)), grounds)  # without hubs there is less fill-in
        if not len(free):
            return free, None
        block = sp.csc_array(self.matrix[free][:, free])
        symmetric = {"SymmetricMode": True}
        return free, spla.splu(block, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=symmetric)

    def leading(self, product: Function, at_zero: float, rank: int) -> tuple[Floats, Floats]:
        """Return the largest eigenvalues of r(L), with vectors, by Lanczos iterations.

        The vectors with L v = 0 are known, and r is largest for them or 0. They are set apart, for
        iterations may miss some of so many equal ones.
        """
        n, sizes = len(self), np.bincount(self.component)
        known = np.argsort(-sizes, kind="stable")[: rank if at_zero > 0 else 0]
        values, vectors = np.full(len(known), at_zero), self.null_space[:, known].toarray()
        n_wanted = min(rank - len(known), n - len(sizes))
        if n_wanted > 0:

            def outside(b: Floats) -> Floats:
                return self.outside_null_space(product(self.outside_null_space(b.reshape(n, -1))))

            operator = spla.LinearOperator((n, n), outside, matmat=outside, dtype=np.float64)
            start = outside(np.random.default_rng(0).standard_normal(n))[:, 0]
            # Restarts draw random numbers too, since SciPy 1.17 from a generator of ours.
            seed: dict[str, Any] = {"rng": 0} if "rng" in signature(spla.eigsh).parameters else {}
            found = spla.eigsh(operator, n_wanted, which="LA", v0=start, **seed)
            values = np.r_[values, np.maximum(found[0][::-1], 0.0)]
            vectors = np.hstack([vectors, found[1][:, ::-1]])
        return values, vectors


def residual_trace(product: Function, vectors: Floats) -> float:
    """Estimate the trace of what is left of a positive operator outside some eigenvectors."""
    probes = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(vectors), PROBES))
    probes -= vectors @ (vectors.T @ probes)
    return max(0.0, float(np.einsum("ij,ij->", probes, product(probes))) / PROBES)


def _chebyshev(function: Function) -> Floats:
    """Return the coefficients of a smooth function on [-1, 1], as many as matter."""
    n = 16
    while True:
        nodes = np.cos(np.pi * (np.arange(n) + 0.5) / n)
        values = function(nodes)
        coefficients: Floats = sfft.dct(values) / n
        matter = np.flatnonzero(np.abs(coefficients) > ROUNDING * np.abs(values).max())
        if not len(matter) or matter[-1] < n // 2:
            break
        n *= 2
    coefficients[0] /= 2
    return coefficients[: matter[-1] + 1 if len(matter) else 1]
