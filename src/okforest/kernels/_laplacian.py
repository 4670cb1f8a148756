"""Functions r(L) of the Laplacian L of a graph: whole for small graphs, products for large ones."""

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

ROUNDING = 1e-17  # Chebyshev coefficients below it are left out
LONGEST = 1e8  # βλ up to which the series of exp(−βλ) has terms of full precision
PROBES = 64  # random vectors that estimate a trace

Positions = npt.NDArray[np.intp]
Product = Callable[[Floats], Floats]


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
        self._smallest: dict[tuple[int, bool], tuple[Floats, Floats]] = {}

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

    def exponential_product(self, beta: float, B: Floats) -> Floats:
        """Return exp(−βL) B, by the Chebyshev series of the exponential.

        Its number of products grows as the root of β; SciPy's expm_multiply takes more, and draws
        from NumPy's global random numbers.
        """
        half = float(abs(self.matrix).sum(axis=1).max()) / 2  # no eigenvalue is above 2 half
        if half == 0:
            return B
        if beta * half > LONGEST:
            raise ValueError(
                f"beta={beta:.3g} times the largest degree, {half:.3g}, is beyond {LONGEST:.0e}, "
                "too much for a graph of this size; use a smaller beta."
            )
        coefficients = _exponential_series(beta * half)
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

    def shifted_solve(self, beta: float, B: Floats) -> Floats:
        """Return (I + βL)⁻¹ B.

        By iterations, for a factorisation of a large network is nearly dense; their number is
        bounded, as the matrix is far from singular.
        """
        matrix = sp.csr_array(sp.eye_array(len(self)) + beta * self.matrix)
        scale = sp.diags_array(1.0 / matrix.diagonal())
        return np.column_stack([spla.cg(matrix, b, rtol=1e-13, M=scale)[0] for b in B.T])

    def smallest(self, n_values: int, null_space: bool) -> tuple[Floats, Floats]:
        """Return the smallest eigenvalues, with vectors, those that are 0 if asked for.

        By Lanczos iterations with (I + βL)⁻¹, whose largest they are, outside the null space: that
        is known, and iterations may miss some of so many equal values.
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
            # Restarts draw random numbers too, since SciPy 1.17 from a generator of ours.
            seed: dict[str, Any] = {"rng": 0} if "rng" in signature(spla.eigsh).parameters else {}
            found = spla.eigsh(operator, n_wanted, which="LA", v0=start, **seed)[1][:, ::-1]
            values = np.r_[values, np.einsum("ij,ij->j", found, self.matrix @ found)]
            vectors = np.hstack([vectors, found])
        return values, vectors


def residual_trace(product: Product, vectors: Floats) -> float:
    """Estimate the trace of what is left of a positive operator outside some eigenvectors."""
    probes = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(vectors), PROBES))
    probes -= vectors @ (vectors.T @ probes)
    return max(0.0, float(np.einsum("ij,ij->", probes, product(probes))) / PROBES)


def _exponential_series(h: float) -> Floats:
    """Return the Chebyshev coefficients of exp(−h(1 + t)) for t in [−1, 1], those that matter."""
    order = np.arange(30 + int(10 * np.sqrt(h)))  # beyond, they are below exp(−order² / 2h)
    coefficients = np.asarray(2.0 * (-1.0) ** order * ive(order, h), dtype=np.float64)
    coefficients[0] /= 2
    return coefficients[: np.flatnonzero(np.abs(coefficients) > ROUNDING)[-1] + 1]
