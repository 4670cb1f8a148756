"""Balls around random vertices of graphs."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra
from sklearn.base import clone

from okforest._typing import Booleans, Floats, Ints
from okforest.segments._base import Objects, Segmenter, Segments, mean_of
from okforest.segments._parameters import check_count
from okforest.segments._random import below, content_seed, uniforms

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Graph(NamedTuple):
    """A graph in canonical form."""

    adjacency: sp.csr_array  # of shape (n, n), symmetric, ones and zeros, no loops
    features: Floats  # of shape (n, q), q may be 0


class Neighborhoods(Segmenter):
    """Balls around random vertices of graphs: what is within one step, within two, and so on.

    The features of a ball of each radius are its numbers of vertices and of edges, and the means
    over its vertices of the degree and of the vertices' own features. Graphs are a list of networkx
    graphs, of square adjacency matrices (dense or sparse), or of pairs of an adjacency matrix and
    an array of features with one row per vertex. Nonzero entries are edges; directions and loops
    are ignored.

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
    The column of ``places`` is the vertex. The features are those of the radii 0, 1, …: for the
    vertex itself the degree and its features, then for each radius the number of vertices, the
    number of edges, and the means.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.segments import Neighborhoods
    >>> ring = np.roll(np.eye(5), 1, axis=1)
    >>> segmenter = Neighborhoods(n_segments=1, radius=1)
    >>> segmenter.cut(segmenter.check([ring])).values
    array([[2., 3., 2., 2.]], dtype=float32)
    """

    n_vertex_features_: int

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
        check_count(self, "n_segments")
        check_count(self, "radius")
        graphs = [self._read(item, f"graph {i}") for i, item in enumerate(X)]
        if not graphs:
            return graphs
        expected = getattr(self, "n_vertex_features_", graphs[0].features.shape[1])
        for i, graph in enumerate(graphs):
            if graph.features.shape[1] != expected:
                raise ValueError(
                    f"graph {i} has {graph.features.shape[1]} features per vertex and others have "
                    f"{expected}."
                )
        return graphs

    def _read(self, item: Any, name: str) -> Graph:
        if isinstance(item, Graph):
            return item
        if hasattr(item, "nodes") and hasattr(item, "edges"):
            return self._read_networkx(item, name)
        adjacency, features = item if isinstance(item, tuple) and len(item) == 2 else (item, None)
        if not sp.issparse(adjacency):
            adjacency = np.asarray(adjacency)
        if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
            raise ValueError(
                f"{name} has an adjacency matrix of shape {adjacency.shape}; expected a square "
                "matrix, a pair of it and vertex features, or a networkx graph."
            )
        return _canonical(sp.csr_array(adjacency), features, name)

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
        """Return a copy that knows the number of features per vertex.

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
        ax.figure.colorbar(dots, ax=ax)
        ax.set_axis_off()


def _distances(graph: Graph, vertices: npt.NDArray[Any], radius: int) -> Floats:
    """Return the numbers of steps to all vertices, infinite beyond the radius."""
    return np.asarray(
        dijkstra(graph.adjacency, unweighted=True, indices=np.asarray(vertices), limit=radius)
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
    table = np.zeros((n, 0)) if features is None else np.asarray(features, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) != n:
        raise ValueError(
            f"{name} has {n} vertices and features of shape {table.shape}; expected one row per "
            "vertex."
        )
    if not np.isfinite(table).all():
        raise ValueError(f"{name} has NaN or infinite features; fill them in first.")
    return Graph(both, table)
