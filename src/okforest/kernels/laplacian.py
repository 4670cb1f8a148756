"""The graph that users pass, its vertices, and functions r(L) of its Laplacian L."""

from collections.abc import Callable
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as sla
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from scipy.sparse.csgraph import connected_components
from scipy.special import ive

from okforest._utils.arrays import Floats, Outputs, check_sparse
from okforest._utils.distinct import refuse_masked
from okforest.kernels.outputs import array_of_objects, check_collection

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


# Relative to the largest weight: smaller asymmetries are rounding errors.
TOLERANCE = 1e-8


class Vertices:
    """The vertices of an undirected graph, known by position or by name, and its Laplacians.

    Parameters
    ----------
    graph : array-like, sparse matrix or networkx graph
        The graph.
    names : array-like, optional
        Names of the vertices, in order; by default the nodes of a networkx graph.
    """

    def __init__(self, graph: Any, names: Any = None):
        if all(hasattr(graph, name) for name in ("nodes", "edges", "is_directed")):
            nodes, graph = _read_networkx(graph)
            names = nodes if names is None else names
        self.adjacency = _check_adjacency(graph)
        self.names = None if names is None else _as_outputs(names)
        self._check_names()

    @classmethod
    def of(cls, adjacency: sp.csr_array) -> "Vertices":
        """Return the vertices, known by position, of an adjacency matrix that has been checked."""
        vertices = cls.__new__(cls)
        vertices.adjacency, vertices.names = adjacency, None
        return vertices

    def __len__(self) -> int:
        return int(self.adjacency.shape[0])

    def check(self, y: Any) -> Outputs:
        """Return y as a 1-d array of positions, or of names if the vertices have names."""
        named = self.names is not None
        what = "names of vertices" if named else f"positions of vertices, 0…{len(self) - 1}"
        vertices = _as_outputs(check_collection(y))
        if vertices.ndim != 1 or (not named and vertices.dtype.kind not in "iu"):
            raise ValueError(
                f"y holds an array of shape {vertices.shape} and type {vertices.dtype}; with a "
                f"kernel on vertices it must be a 1-d array of {what}."
            )
        known = self.positions(vertices) >= 0
        if not known.all():
            bad = vertices[~known].tolist()[0]
            raise ValueError(
                f"y holds {bad!r}, which is not a vertex of the graph; it must hold {what}."
            )
        return vertices

    def positions(self, vertices: Outputs) -> Positions:
        """Return the position of each vertex in the adjacency matrix, -1 for an unknown one."""
        if self.names is None:
            return np.where((vertices >= 0) & (vertices < len(self)), vertices, -1).astype(np.intp)
        return np.fromiter(map(self._find, vertices.tolist()), np.intp, len(vertices))

    def _find(self, name: Any) -> int:
        try:
            return self._index.get(name, -1)
        except TypeError:  # not hashable, so not a name
            return -1

    @cached_property
    def _index(self) -> dict[Any, int]:
        assert self.names is not None
        return {name: i for i, name in enumerate(self.names.tolist())}

    def _check_names(self) -> None:
        if self.names is None:
            return
        if self.names.shape != (len(self),):
            raise ValueError(
                f"names has shape {self.names.shape}, but the graph has {len(self)} vertices; pass "
                "one name for each."
            )
        try:
            n_distinct = len(self._index)
        except TypeError as error:
            raise ValueError(f"names must be hashable, like text or numbers: {error}.") from None
        if n_distinct < len(self):
            raise ValueError(
                f"names has {len(self)} entries but only {n_distinct} distinct ones; each vertex "
                "needs its own name."
            )

    @cached_property
    def laplacian(self) -> GraphLaplacian:
        """Return L = D − A."""
        degrees = self._degrees
        matrix = sp.csr_array(sp.diags_array(degrees) - self.adjacency)
        return GraphLaplacian(matrix, self._component, np.ones(len(self)))

    @cached_property
    def normalized_laplacian(self) -> GraphLaplacian:
        """Return D^(−1/2) (D − A) D^(−1/2), with zeros for isolated vertices."""
        degrees = self._degrees
        linked = degrees > 0
        roots = np.sqrt(np.where(linked, degrees, 1.0))
        scale = sp.diags_array(1.0 / roots)
        matrix = sp.csr_array(
            sp.diags_array(linked.astype(np.float64)) - scale @ self.adjacency @ scale
        )
        return GraphLaplacian(matrix, self._component, roots)

    @cached_property
    def _degrees(self) -> Floats:
        return np.asarray(self.adjacency.sum(axis=1), dtype=np.float64)

    @cached_property
    def _component(self) -> Positions:
        return connected_components(self.adjacency, directed=False)[1].astype(np.intp)


def _as_outputs(values: Any) -> Outputs:
    """Return an array with one entry per vertex; tuples and mixed types are kept as objects."""
    if hasattr(values, "__array__"):
        return np.asarray(values)
    values = list(values)
    if not any(isinstance(value, tuple | list | frozenset) for value in values):
        kinds = {np.asarray(value).dtype.kind for value in values}
        if len(kinds) <= 1:  # NumPy would convert numbers among text to text
            return np.asarray(values)
    return array_of_objects(values)


def _read_networkx(graph: Any) -> tuple[list[Any], sp.coo_array]:
    """Return the nodes and the adjacency matrix of a graph, without importing networkx."""
    if graph.is_directed():
        raise ValueError("the graph is directed; pass graph.to_undirected().")
    nodes = list(graph.nodes)
    index = {node: i for i, node in enumerate(nodes)}
    edges = [(index[u], index[v], w) for u, v, w in graph.edges(data="weight", default=1.0)]
    rows, columns, weights = np.array(edges, dtype=np.float64).reshape(-1, 3).T
    ends = np.r_[rows, columns].astype(int), np.r_[columns, rows].astype(int)
    # Entries of parallel edges are added when the matrix is converted.
    return nodes, sp.coo_array((np.r_[weights, weights], ends), shape=(len(nodes), len(nodes)))


def _check_adjacency(graph: Any) -> sp.csr_array:
    """Return an adjacency matrix as a CSR array of float64, without loops."""
    refuse_masked(graph, "the adjacency matrix")
    check_sparse(graph, "the adjacency matrix")
    matrix: Any = graph if sp.issparse(graph) else np.asarray(graph)
    shape = matrix.shape
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
        raise ValueError(
            f"the graph has shape {shape}; pass a square adjacency matrix, sparse or dense, or a "
            "networkx graph."
        )
    if matrix.dtype.kind not in "fiub":
        raise ValueError(f"the adjacency matrix is of type {matrix.dtype}; it must hold numbers.")
    adjacency: sp.csr_array = sp.csr_array(matrix, dtype=np.float64, copy=True)
    if not np.isfinite(adjacency.data).all():
        raise ValueError("the adjacency matrix has NaN or infinite weights; use 0 for no link.")
    if adjacency.data.min(initial=0.0) < 0:
        raise ValueError(
            f"the adjacency matrix has a weight of {adjacency.data.min():.3g}; weights of links "
            "must not be negative."
        )
    difference = sp.coo_array(adjacency - adjacency.T)
    if np.abs(difference.data).max(initial=0.0) > TOLERANCE * adjacency.data.max(initial=0.0):
        worst = np.abs(difference.data).argmax()
        row, column = difference.row[worst], difference.col[worst]
        raise ValueError(
            f"the adjacency matrix is asymmetric: entries ({row}, {column}) and ({column}, {row}) "
            f"differ by {abs(difference.data[worst]):.3g}. For links without direction, use "
            "A.maximum(A.T) if A is sparse, np.maximum(A, A.T) if not."
        )
    # Loops cancel in D − A; removing them corrects the degrees, too.
    links = sp.coo_array(adjacency)
    kept = (links.row != links.col) & (links.data > 0)
    return sp.csr_array((links.data[kept], (links.row[kept], links.col[kept])), shape=shape)
