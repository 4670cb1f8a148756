"""Functions r(L) of a graph Laplacian L: by its spectrum, or as products r(L) B if L is large."""

from collections.abc import Callable
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as sla
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from scipy.special import ive

from okforest._typing import Floats

ROUNDING = 1e-17  # smaller Chebyshev coefficients are left out
LONGEST = 1e8  # largest βλ for which the terms of the series of exp(−βλ) have full precision
PROBES = 64  # random vectors to estimate a trace

Positions = npt.NDArray[np.intp]
Product = Callable[[Floats], Floats]


class GraphLaplacian:
    """A sparse block-diagonal Laplacian, with cached decompositions.

    Parameters
    ----------
    matrix : csr_array of shape (n, n)
        The positive semi-definite matrix L.
    component : ndarray of shape (n,)
        The connected component of each vertex, 0, 1, …
    null_vector : ndarray of shape (n,)
        A vector v with L v = 0 and no zero entries.
    """

    def __init__(self, matrix: sp.csr_array, component: Positions, null_vector: Floats):
        self.matrix = matrix
        self.component = component
        self.null_vector = null_vector
        self._smallest: dict[tuple[int, bool], tuple[Floats, Floats]] = {}

    def __len__(self) -> int:
        return len(self.component)

    @cached_property
    def null_space(self) -> sp.csc_array:
        """Return an orthonormal basis of {v: L v = 0}, one vector per component."""
        norms = np.sqrt(np.bincount(self.component, weights=self.null_vector**2))
        places = (np.arange(len(self)), self.component)
        return sp.csc_array((self.null_vector / norms[self.component], places))

    def outside_null_space(self, B: Floats) -> Floats:
        """Return B minus its projection on the null space."""
        return B - self.null_space @ (self.null_space.T @ B)

    @cached_property
    def spectrum(self) -> tuple[Floats, Floats]:
        """Return all eigenvalues and eigenvectors, computed per component.

        The zeros between components and the eigenvalue 0 of each component are then exact.
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

    def exponential_product(self, beta: float, B: Floats) -> Floats:
        """Return exp(−βL) B, by the Chebyshev series of the exponential.

        The number of products is proportional to √β; SciPy's expm_multiply needs more, and uses
        NumPy's global random state.
        """
        half = float(abs(self.matrix).sum(axis=1).max()) / 2  # all eigenvalues are at most 2 half
        if half == 0:
            return B
        if beta * half > LONGEST:
            raise ValueError(
                f"beta={beta:.3g} times the largest degree, {half:.3g}, exceeds {LONGEST:.0e}, the "
                "limit for large graphs; use a smaller beta."
            )
        coefficients = _exponential_series(beta * half)
        result = coefficients[0] * B
        before, current = B, (self.matrix @ B) / half - B
        for coefficient in coefficients[1:]:
            result += coefficient * current
            before, current = current, 2.0 * ((self.matrix @ current) / half - current) - before
        return result

    def pseudo_inverse_product(self, B: Floats) -> Floats:
        """Return L⁺ B: solve with one vertex of each component fixed at 0, then project."""
        result = np.zeros_like(B)
        free, solver = self._grounded
        if solver is not None:
            result[free] = solver.solve(self.outside_null_space(B)[free])
        return self.outside_null_space(result)

    @cached_property
    def _grounded(self) -> tuple[Positions, spla.SuperLU | None]:
        """Return all vertices but one per component, and a factorisation of L on them."""
        by_degree = np.lexsort((-self.matrix.diagonal(), self.component))
        grounds = by_degree[np.unique(self.component[by_degree], return_index=True)[1]]
        free = np.setdiff1d(np.arange(len(self)), grounds)  # removing hubs reduces fill-in
        if not len(free):
            return free, None
        block = sp.csc_array(self.matrix[free][:, free])
        symmetric = {"SymmetricMode": True}
        return free, spla.splu(block, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=symmetric)

    def shifted_solve(self, beta: float, B: Floats) -> Floats:
        """Return (I + βL)⁻¹ B.

        By conjugate gradients, because the factors of a large network are nearly dense. The number
        of iterations is bounded, because the matrix is well conditioned.
        """
        matrix = sp.csr_array(sp.eye_array(len(self)) + beta * self.matrix)
        scale = sp.diags_array(1.0 / matrix.diagonal())
        return np.column_stack([spla.cg(matrix, b, rtol=1e-13, M=scale)[0] for b in B.T])

    def smallest(self, n_values: int, null_space: bool) -> tuple[Floats, Floats]:
        """Return the smallest eigenvalues and their vectors; zeros only with ``null_space``.

        Lanczos iterations with (I + βL)⁻¹ find the others. The null space is known, and left out,
        because the iterations may miss copies of a repeated eigenvalue.
        """
        key = n_values, null_space
        if key not in self._smallest:
            self._smallest[key] = self._lanczos(n_values, null_space)
        return self._smallest[key]

    def _lanczos(self, n_values: int, null_space: bool) -> tuple[Floats, Floats]:
        n, sizes = len(self), np.bincount(self.component)
        known = np.argsort(-sizes, kind="stable")[: n_values if null_space else 0]
        values, vectors = np.zeros(len(known)), self.null_space[:, known].toarray()
        n_wanted = min(n_values - len(known), n - len(sizes))
        if n_wanted > 0:
            beta = 10.0 / self.matrix.diagonal().mean()

            def product(b: Floats) -> Floats:
                inside = self.outside_null_space(b.reshape(n, -1))
                return self.outside_null_space(self.shifted_solve(beta, inside))

            operator = spla.LinearOperator((n, n), product, matmat=product, dtype=np.float64)
            start = product(np.random.default_rng(0).standard_normal(n))[:, 0]
            # Restarts draw random numbers too; SciPy ≥ 1.17 lets us seed them.
            seed: dict[str, Any] = {"rng": 0} if "rng" in signature(spla.eigsh).parameters else {}
            found = spla.eigsh(operator, n_wanted, which="LA", v0=start, **seed)[1][:, ::-1]
            values = np.r_[values, np.einsum("ij,ij->j", found, self.matrix @ found)]
            vectors = np.hstack([vectors, found])
        return values, vectors


def residual_trace(product: Product, vectors: Floats) -> float:
    """Estimate the trace of a positive operator outside the span of some eigenvectors."""
    probes = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(vectors), PROBES))
    probes -= vectors @ (vectors.T @ probes)
    return max(0.0, float(np.einsum("ij,ij->", probes, product(probes))) / PROBES)


def _exponential_series(h: float) -> Floats:
    """Return the non-negligible Chebyshev coefficients of exp(−h(1 + t)) for t in [−1, 1]."""
    order = np.arange(30 + int(10 * np.sqrt(h)))  # the rest are below exp(−order² / 2h)
    coefficients = np.asarray(2.0 * (-1.0) ** order * ive(order, h), dtype=np.float64)
    coefficients[0] /= 2
    return coefficients[: np.flatnonzero(np.abs(coefficients) > ROUNDING)[-1] + 1]
