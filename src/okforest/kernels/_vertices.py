"""Checking the graph that users pass, and deriving its vertices and Laplacian."""

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from okforest._outputs import refuse_masked
from okforest._sparse import check_sparse
from okforest._typing import Floats, Outputs
from okforest.kernels._laplacian import GraphLaplacian, Positions
from okforest.kernels._outputs import array_of_objects, check_collection

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
