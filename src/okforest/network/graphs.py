"""Graphs as users pass them, converted to an adjacency matrix; the kinds of pairs of vertices."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._utils.arrays import Outputs, check_sparse
from okforest._utils.compat import rows_of
from okforest._utils.distinct import refuse_masked
from okforest._utils.frames import is_frame
from okforest.kernels.laplacian import Vertices

NAMES_IN_MESSAGE = 5


class Graph(NamedTuple):
    """An undirected graph; vertex i is row i of X."""

    adjacency: sp.csr_array
    names: Outputs

    def part(self, vertices: npt.NDArray[np.intp]) -> "Graph":
        """Return the subgraph of some vertices."""
        return Graph(self.adjacency[vertices][:, vertices], self.names[vertices])


def read_graph(graph: Any, X: Any, names: Any = None) -> Graph:
    """Return a graph whose vertices are the rows of X; raise an error if they do not match.

    ``graph`` is an adjacency matrix, a networkx graph, or an edge list. The rows are identified by
    ``names``, or else by the index of a data frame, or else by position. Without names, the nodes
    of a networkx graph that are not integers are the rows in order.
    """
    refuse_masked(graph, "the graph")
    n_rows, names = count_rows(X), row_names_of(X, names)
    if all(hasattr(graph, name) for name in ("nodes", "edges", "is_directed")):
        return _align(Vertices(graph), names, n_rows)
    if not sp.issparse(graph):
        graph = _as_rows(graph)
        shape: tuple[int, ...] = np.shape(graph) if _is_rectangular(graph) else (len(graph),)
        if shape != (n_rows, n_rows) and (len(graph) == 0 or shape[1:] == (2,)):
            rows = _check_names(names, n_rows)
            return Graph(read_edges(_edge_ends(graph), rows), rows)
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(_wrong_shape(graph, shape))
    for axis in (0, 1):
        graph = order_frame(graph, names, n_rows, axis)
    vertices = Vertices(graph)
    if len(vertices) != n_rows:
        raise ValueError(
            f"the graph has {len(vertices)} vertices, and X has {n_rows} rows; pass one row for "
            "each vertex, in the same order."
        )
    return Graph(vertices.adjacency, _check_names(names, n_rows))


def read_edges(edges: Iterable[tuple[Any, Any]], names: Outputs) -> sp.csr_array:
    """Return the adjacency matrix (0 and 1) of an edge list; raise an error if it has mistakes."""
    position = {name: i for i, name in enumerate(names.tolist())}
    links: dict[tuple[int, int], tuple[Any, Any]] = {}
    unknown: dict[Any, None] = {}
    for a, b in edges:
        i, j = position.get(a, -1), position.get(b, -1)
        if min(i, j) < 0:
            unknown.update((name, None) for name in (a, b) if name not in position)
            continue
        if i == j:
            raise ValueError(f"the edge list links {a!r} with itself; remove such loops.")
        pair = (min(i, j), max(i, j))
        if pair in links:
            raise ValueError(
                f"the edge list has {a!r} – {b!r} twice (links have no direction); remove "
                "duplicates."
            )
        links[pair] = (a, b)
    if unknown:
        raise ValueError(
            f"the edge list has names without features ({len(unknown)}): "
            f"{list_names(list(unknown))}; names with features: {list_names(names.tolist())}. "
            "Names are the index of a data frame of features (pd.read_csv(..., index_col=0)), or "
            "names=. Add the missing features, or remove the links."
        )
    ends = np.array(list(links), dtype=np.intp).reshape(-1, 2)
    rows, columns = np.concatenate([ends, ends[:, ::-1]]).T
    n = len(names)
    return sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, n))


def order_frame(frame: Any, names: Any, n_names: int, axis: int) -> Any:
    """Return a data frame with its labels along an axis in the order of names.

    Anything else is returned unchanged; so is a data frame whose labels are positions, or that
    belongs to rows without names.
    """
    if not nw.dependencies.is_pandas_like_dataframe(frame):
        return frame
    labels = (frame.index, frame.columns)[axis].tolist()
    wanted = _check_names(names, n_names).tolist()
    position = {label: i for i, label in enumerate(labels)}
    if position.keys() == set(wanted) and len(labels) == n_names:
        return rows_of(frame, [position[name] for name in wanted], axis=axis)
    if names is None or labels == list(range(len(labels))):
        return frame
    unknown = [label for label in labels if label not in set(wanted)]
    missing = [name for name in wanted if name not in position]
    raise ValueError(
        f"the {('index', 'columns')[axis]} of the data frame of links and the names of the "
        f"features differ: labels without features ({len(unknown)}): {list_names(unknown)}; "
        f"names without a label ({len(missing)}): {list_names(missing)}. Use every name once, or "
        "pass links.to_numpy() if it is in the order of the features."
    )


def name_rows(X: Any, names: Any = None) -> Outputs:
    """Return one name per row: the given ones, the index of a data frame, or positions."""
    return _check_names(row_names_of(X, names), count_rows(X))


def name_new(X: Any, names: Any, known: Outputs) -> Outputs:
    """Return the names of new vertices; raise an error if some of them are known ones."""
    listed = row_names_of(X, names)
    new_names = _check_names(listed, count_rows(X))
    taken = set(known.tolist())
    repeated = [] if listed is None else [name for name in new_names.tolist() if name in taken]
    if repeated:
        raise ValueError(
            f"vertices of the training graph are among the new ones ({len(repeated)}): "
            f"{list_names(repeated)}. Call rank_links() without features to rank the missing links "
            "between known vertices; give vertices that are really new names of their own, by "
            "names= or by the index of a data frame."
        )
    return new_names


def count_rows(X: Any, name: str = "X") -> int:
    """Return the number of rows of an array, a data frame or a list."""
    if type(X).__name__ == "LazyFrame":
        raise TypeError(
            f"{name} is a LazyFrame, whose values are not computed; pass its collect()."
        )
    check_sparse(X, name)
    shape = getattr(X, "shape", None)
    if shape is None and hasattr(X, "__len__"):
        return len(X)
    if not shape:
        raise TypeError(
            f"{name} is {X!r}; pass features as an array, a data frame or a sparse matrix with "
            "one row per vertex."
        )
    return int(shape[0])


def row_names_of(X: Any, names: Any) -> Any:
    """Return the given names, or the index of a data frame, or None."""
    return X.index if names is None and nw.dependencies.is_pandas_like_dataframe(X) else names


def list_names(names: list[Any]) -> str:
    """Return the first names, quoted, and the number of the others."""
    more = f" and {len(names) - NAMES_IN_MESSAGE} more" if len(names) > NAMES_IN_MESSAGE else ""
    return (", ".join(map(repr, names[:NAMES_IN_MESSAGE])) or "none") + more


def _check_names(names: Any, n_rows: int) -> Outputs:
    if names is None:
        return np.arange(n_rows)
    checked = Vertices(sp.csr_array((n_rows, n_rows)), names).names
    assert checked is not None
    return checked


def _align(vertices: Vertices, names: Any, n_rows: int) -> Graph:
    """Put the vertices of a networkx graph in the order of the rows."""
    assert vertices.names is not None
    positions = vertices.names.dtype.kind in "iu"  # node i is row i, whatever the order of nodes
    if names is None and not positions and len(vertices) == n_rows:
        return Graph(vertices.adjacency, vertices.names)
    rows = _check_names(names, n_rows)
    order = vertices.positions(rows)
    unknown = rows[order < 0].tolist()
    missing = vertices.names[np.setdiff1d(np.arange(len(vertices)), order)].tolist()
    if unknown or missing:
        raise ValueError(
            "the rows of X and the vertices of the graph have different names: "
            f"rows that are not in the graph ({len(unknown)}): {list_names(unknown)}; vertices "
            f"without a row ({len(missing)}): {list_names(missing)}. Pass names= that match, one "
            "for each row."
        )
    return Graph(vertices.adjacency[order][:, order], rows)


def _as_rows(graph: Any) -> Any:
    """Return a matrix unchanged, and any other iterable as a list."""
    if hasattr(graph, "shape"):
        return graph
    if isinstance(graph, str | bytes | Mapping) or not isinstance(graph, Iterable):
        raise TypeError(
            f"graph is {'None' if graph is None else f'of type {type(graph).__name__}'}; pass an "
            "adjacency matrix, a networkx graph, or a list of pairs, the two ends of each link."
        )
    return list(graph)


def _wrong_shape(graph: Any, shape: tuple[int, ...]) -> str:
    # A frame of ten or more columns is taken for an adjacency matrix.
    if is_frame(graph) and 2 < shape[1] < 10:
        columns = [str(name) for name in graph.columns]
        return (
            f"the table of links has {shape[1]} columns ({', '.join(columns[:5])}"
            f"{', …' if len(columns) > 5 else ''}); pass the two that name the ends of a link: "
            f"links[{columns[:2]}], for example. Weights of links are not used."
        )
    return (
        f"the graph has shape {shape}; pass a square adjacency matrix, a networkx graph, "
        "or a list of pairs, the two ends of each link."
    )


def _is_rectangular(graph: Any) -> bool:
    return hasattr(graph, "shape") or len({np.size(row) for row in graph}) <= 1


def _edge_ends(edges: Any) -> list[tuple[Any, Any]]:
    """Return the two ends of each edge; NumPy would convert mixed names to text."""
    rows = edges.to_numpy() if is_frame(edges) else edges
    rows = rows.tolist() if isinstance(rows, np.ndarray) else rows
    return [(a, b) for a, b in rows]


Positions = npt.NDArray[np.intp]
PairKind = Literal["known-known", "known-new", "new-new", "with-new"]

KNOWN_KNOWN: PairKind = "known-known"
KNOWN_NEW: PairKind = "known-new"
NEW_NEW: PairKind = "new-new"
WITH_NEW: PairKind = "with-new"  # the union of the two kinds above
PAIR_KINDS = (KNOWN_NEW, NEW_NEW, WITH_NEW, KNOWN_KNOWN)

TITLES: dict[PairKind, str] = {
    KNOWN_NEW: "known–new pairs",
    NEW_NEW: "new–new pairs",
    WITH_NEW: "all pairs with a new vertex",
    KNOWN_KNOWN: "known–known pairs",
}
