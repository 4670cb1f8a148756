"""Balls around random vertices of graphs."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra
from sklearn.base import clone

from okforest._utils.arrays import Booleans, Floats, Ints, check_sparse
from okforest._utils.parameters import COUNT, check_parameters
from okforest.segments.base import (
    MEANS,
    Objects,
    Segmenter,
    Segments,
    below,
    content_seed,
    listed,
    mean_of,
    uniforms,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGEST = float(np.finfo(np.float32).max)


class Graph(NamedTuple):
    """A graph in canonical form."""

    adjacency: sp.csr_array  # shape (n, n), symmetric, ones and zeros, no loops
    features: Floats  # shape (n, q), q may be 0


class Neighborhoods(Segmenter):
    """Balls around random vertices of graphs: all vertices within one step, within two, and so on.

    The features of a ball of each radius are its numbers of vertices and of edges, and the means
    over its vertices of the degree and of the vertices' own features. Graphs are a list of networkx
    graphs, of square adjacency matrices (dense or sparse), or of pairs of an adjacency matrix and
    an array of numeric features with one row per vertex. Nonzero entries are edges, whatever their
    weight, which is not negative. A matrix is symmetric, or has every edge in its upper or lower
    triangle alone. Loops are ignored, and so are the directions of networkx graphs.

    Parameters
    ----------
    n_segments : int, default=20
        Number of vertices per graph, drawn at random with replacement.
    radius : int, default=2
        The largest radius, in steps.
    attributes : list of str, optional
        Names of numeric attributes of the vertices of networkx graphs; they become features.

    Attributes
    ----------
    n_vertex_features_ : int
        Number of features of the vertices of the training graphs; set when a model is fitted.

    See Also
    --------
    SegmentClassifier : Classifies graphs by their neighbourhoods.

    Notes
    -----
    The column of ``places`` is the vertex. The features belong to the radii 0, 1, …: for the
    vertex itself the degree and its features, then for each radius the number of vertices, the
    number of edges, and the means.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.segments import Neighborhoods
    >>> ring = np.roll(np.eye(5), 1, axis=1)
    >>> segmenter = Neighborhoods(n_segments=1, radius=1)
    >>> segmenter.cut(segmenter.check([ring + ring.T])).values
    array([[2., 3., 2., 2.]], dtype=float32)
    """

    n_vertex_features_: int

    _parameter_constraints: ClassVar[dict[str, Any]] = {"n_segments": [COUNT], "radius": [COUNT]}

    def __init__(
        self, n_segments: int = 20, *, radius: int = 2, attributes: list[str] | None = None
    ):
        self.n_segments = n_segments
        self.radius = radius
        self.attributes = attributes

    def check(self, X: Any) -> Objects:
        """Return graphs in canonical form: pairs of an adjacency matrix and vertex features.

        Parameters
        ----------
        X : list
            Graphs.

        Returns
        -------
        graphs : list of Graph
            One per graph.
        """
        check_parameters(self)
        if isinstance(self.attributes, str):
            raise ValueError(
                f"attributes={self.attributes!r}; expected a list of names, such as "
                f"[{self.attributes!r}]."
            )
        if _is_networkx(X) or sp.issparse(X) or len(getattr(X, "shape", ())) == 2:
            raise ValueError(
                f"X is a single graph, of type {type(X).__name__}; pass a list of graphs: [graph]."
            )
        graphs = [self._read(item, f"graph {i}") for i, item in enumerate(listed(X, "graphs"))]
        if not graphs:
            return graphs
        fitted = hasattr(self, "n_vertex_features_")
        expected = self.n_vertex_features_ if fitted else graphs[0].features.shape[1]
        others = "the training graphs" if fitted else "others"
        for i, graph in enumerate(graphs):
            if graph.features.shape[1] != expected:
                raise ValueError(
                    f"graph {i} has {graph.features.shape[1]} features per vertex and {others} "
                    f"have {expected}; pass the same features for every graph."
                )
        return graphs

    def _read(self, item: Any, name: str) -> Graph:
        if isinstance(item, Graph):
            return item
        if _is_networkx(item):
            return self._read_networkx(item, name)
        adjacency, features = item if _is_pair(item) else (item, None)
        return _canonical(_read_adjacency(adjacency, name), features, name)

    def _read_networkx(self, item: Any, name: str) -> Graph:
        vertices = list(item.nodes)
        number = {vertex: i for i, vertex in enumerate(vertices)}
        ends = np.array([(number[a], number[b]) for a, b in item.edges()], int).reshape(-1, 2)
        n = len(vertices)
        adjacency = sp.csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
        if not self.attributes:
            return _canonical(adjacency, None, name)
        try:
            table = [[item.nodes[v][key] for key in self.attributes] for v in vertices]
        except KeyError as error:
            raise ValueError(
                f"{name} has a vertex without the attribute {error}; set it for every vertex, or "
                "leave it out of attributes."
            ) from None
        return _canonical(adjacency, table, name)

    def resolve(self, objects: Objects) -> "Neighborhoods":
        """Return a copy that has learnt the number of features per vertex.

        Parameters
        ----------
        objects : list of Graph
            The training graphs, in canonical form.

        Returns
        -------
        segmenter : Neighborhoods
            The copy.
        """
        resolved: Neighborhoods = clone(self)
        resolved.n_vertex_features_ = objects[0].features.shape[1]
        return resolved

    def cut(self, objects: Objects, seed: int = 0, n_threads: int = 1) -> Segments:
        """Cut graphs into balls.

        Parameters
        ----------
        objects : list of Graph
            Graphs in canonical form.
        seed : int, default=0
            The seed. The vertices of a graph depend on it and on the graph alone.
        n_threads : int, default=1
            Not used.

        Returns
        -------
        segments : Segments
            The balls, graph by graph.
        """
        values, places = [], []
        for graph in objects:
            adjacency, features = graph
            ends = [adjacency.indptr, adjacency.indices]
            parts = [*(end.astype(np.int64) for end in ends), features]
            seeds = np.array([content_seed(seed, parts)], dtype=np.uint64)
            u = uniforms(seeds, self.n_segments, 1).ravel()
            vertices = below(u, np.array(len(features)))
            values.append(self._describe(graph, vertices))
            places.append(vertices)
        offsets = np.arange(len(places) + 1) * self.n_segments
        vertex = np.concatenate(places)[:, None].astype(np.int32)
        return Segments(np.concatenate(values).astype(np.float32), offsets, vertex)

    def _describe(self, graph: Graph, vertices: npt.NDArray[np.intp]) -> Floats:
        adjacency, features = graph
        degrees = np.asarray(adjacency.sum(axis=1)).reshape(-1, 1)
        table = np.hstack([degrees, features])
        columns = [table[vertices]]
        distances = _distances(graph, vertices, self.radius)
        for radius in range(1, self.radius + 1):
            ball = (distances <= radius).astype(np.float64)
            size = ball.sum(axis=1, keepdims=True)
            edges = ((adjacency @ ball.T).T * ball).sum(axis=1, keepdims=True) / 2
            columns += [size, edges, ball @ table / size]
        return np.hstack(columns)

    def spread(self, item: Graph, places: Ints, values: Floats) -> Floats:
        """Return the mean over the balls that cover each vertex.

        Parameters
        ----------
        item : Graph
            A graph.
        places : ndarray of shape (n, 1), int32
            The centres of its balls.
        values : ndarray of shape (n, q)
            Values of the balls.

        Returns
        -------
        means : ndarray of shape (n_vertices, q)
            NaN where no ball is.
        """
        covers: Booleans = _distances(item, places[:, 0], self.radius) <= self.radius
        return mean_of(covers.T @ values, covers.sum(axis=0).astype(np.float64))

    def plot(self, item: Graph, means: Floats, ax: "Axes") -> None:
        """Draw the graph with coloured vertices; it needs networkx.

        Parameters
        ----------
        item : Graph
            A graph.
        means : ndarray of shape (n_vertices,)
            A value for each vertex.
        ax : matplotlib Axes
            Where to draw.
        """
        try:
            networkx: Any = import_module("networkx")
        except ImportError as error:
            raise ImportError("drawing a graph needs networkx: pip install networkx") from error
        graph = networkx.from_scipy_sparse_array(item.adjacency)
        layout = networkx.spring_layout(graph, seed=0)
        points = np.array([layout[i] for i in range(len(means))])
        for a, b in graph.edges:
            ax.plot(*points[[a, b]].T, color="0.8", zorder=1)
        x, y = points.T
        dots = ax.scatter(x, y, c=means, cmap="YlOrBr", edgecolors="0.4", zorder=2)
        ax.figure.colorbar(dots, ax=ax, label=MEANS)
        ax.set_axis_off()


def _distances(graph: Graph, vertices: npt.NDArray[Any], radius: int) -> Floats:
    """Return the numbers of steps to all vertices, infinite beyond the radius."""
    return np.asarray(
        dijkstra(graph.adjacency, unweighted=True, indices=np.asarray(vertices), limit=radius)
    )


def _is_networkx(item: Any) -> bool:
    return hasattr(item, "nodes") and hasattr(item, "edges")


def _is_pair(item: Any) -> bool:
    """Return whether an item is a matrix and features; the rows of a matrix have one axis."""
    if not isinstance(item, tuple | list) or len(item) != 2:
        return False
    first = item[0]
    return sp.issparse(first) or (_is_array(first) and np.ndim(first) == 2)


def _is_array(item: Any) -> bool:
    try:
        np.asarray(item)
    except ValueError:  # rows of different lengths
        return False
    return True


def _read_adjacency(matrix: Any, name: str) -> sp.csr_array:
    """Return an adjacency matrix of numbers from 0, with edges both ways or in one triangle."""
    expected = "expected a square matrix, a pair of it and vertex features, or a networkx graph."
    check_sparse(matrix, f"the adjacency matrix of {name}")
    if not sp.issparse(matrix):
        if not _is_array(matrix):
            raise ValueError(
                f"{name} is of type {type(matrix).__name__}, with rows of different shapes; "
                f"{expected}"
            )
        matrix = np.asarray(matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name} has an adjacency matrix of shape {matrix.shape}; {expected}")
    if matrix.dtype.kind not in "buif":
        raise ValueError(
            f"{name} has an adjacency matrix of type {matrix.dtype}; expected numbers, zero where "
            "there is no edge."
        )
    adjacency = sp.csr_array(matrix)
    if not np.isfinite(adjacency.data).all():
        raise ValueError(
            f"{name} has NaN or infinite entries in its adjacency matrix; set them to 0 if there "
            "is no edge, and to 1 if there is one."
        )
    if adjacency.nnz and adjacency.data.min() < 0:
        raise ValueError(
            f"{name} has the negative entry {adjacency.data.min():g} in its adjacency matrix; "
            "expected numbers from 0. If it marks an edge, pass abs(adjacency)."
        )
    _check_symmetry(adjacency, name)
    return adjacency


def _check_symmetry(adjacency: sp.csr_array, name: str) -> None:
    edges: Any = adjacency.astype(np.bool_).astype(np.int8)
    one_way = (edges - edges.T > 0).tocoo()
    if one_way.nnz and sp.triu(edges, 1).nnz and sp.tril(edges, -1).nnz:
        raise ValueError(
            f"{name} has an adjacency matrix that is not symmetric: an edge from vertex "
            f"{one_way.row[0]} to vertex {one_way.col[0]} and none back. To ignore directions, "
            "pass adjacency + adjacency.T."
        )


def _canonical(adjacency: sp.csr_array, features: Any, name: str) -> Graph:
    n = adjacency.shape[0]
    if n == 0:
        raise ValueError(f"{name} has no vertices; leave it out.")
    edges: Any = adjacency.astype(np.bool_)
    both = sp.csr_array(edges + edges.T).astype(np.float64)
    both.setdiag(0.0)
    both.eliminate_zeros()
    both.data[:] = 1.0
    both.sort_indices()
    table = np.zeros((n, 0)) if features is None else _read_features(features, name)
    if table.ndim != 2 or len(table) != n:
        raise ValueError(
            f"{name} has {n} vertices and features of shape {table.shape}; expected one row per "
            "vertex. If these are two graphs, pass them in a list."
        )
    if not np.isfinite(table).all():
        raise ValueError(
            f"{name} has NaN or infinite features; fill them in, for example with np.nan_to_num."
        )
    if table.size and np.abs(table).max() > LARGEST:
        raise ValueError(
            f"{name} has features beyond the range of float32, such as {np.abs(table).max():.3g}; "
            "rescale them."
        )
    return Graph(both, table)


def _read_features(features: Any, name: str) -> Floats:
    values = features
    if sp.issparse(values):
        check_sparse(values, f"the feature matrix of {name}")
        values = features.toarray()
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} has vertex features that are not numbers ({error}); encode classes as numbers "
            "first, one column of zeros and ones for each."
        ) from None
    return table[:, None] if table.ndim == 1 else table
