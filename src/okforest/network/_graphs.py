"""From the graph that users pass, in any of its forms, to vertices in the order of X's rows."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._compat import rows_of
from okforest._typing import Outputs
from okforest.kernels._vertices import Vertices

SHOWN = 5  # names in an error message


class Graph(NamedTuple):
    """An undirected graph; vertex i is row i of X."""

    adjacency: sp.csr_array
    names: Outputs

    def part(self, vertices: npt.NDArray[np.intp]) -> "Graph":
        """Return the subgraph of some vertices."""
        return Graph(self.adjacency[vertices][:, vertices], self.names[vertices])


def read_graph(graph: Any, X: Any, names: Any = None) -> Graph:
    """Return a graph whose vertices are the rows of X, or say how the two differ.

    ``graph`` is an adjacency matrix, a networkx graph, or an edge list. Rows are known by
    ``names``, else by the index of a frame, else by their positions (and, of a networkx graph whose
    nodes are no integers, are its nodes in their order).
    """
    n_rows, names = count_rows(X), given_names(X, names)
    if all(hasattr(graph, name) for name in ("nodes", "edges", "is_directed")):
        return _align(Vertices(graph), names, n_rows)
    if not sp.issparse(graph):
        graph = graph if hasattr(graph, "shape") else list(graph)
        shape: tuple[int, ...] = np.shape(graph) if _is_rectangular(graph) else (len(graph),)
        if shape != (n_rows, n_rows) and (len(graph) == 0 or shape[1:] == (2,)):
            rows = _check_names(names, n_rows)
            return Graph(read_edges(_pairs(graph), rows), rows)
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(
                f"the graph has shape {shape}; pass a square adjacency matrix, a networkx graph, "
                "or a list of pairs, the two ends of each link."
            )
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
    """Return the adjacency matrix of 0 and 1 of an edge list, or say what is wrong with it."""
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
            f"the edge list has names without a row of features ({len(unknown)}): "
            f"{shown(list(unknown))}. Give them features, or remove their links."
        )
    ends = np.array(list(links), dtype=np.intp).reshape(-1, 2)
    rows, columns = np.concatenate([ends, ends[:, ::-1]]).T
    n = len(names)
    return sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, n))


def order_frame(table: Any, names: Any, n_names: int, axis: int) -> Any:
    """Return a frame with its labels along an axis in the order of names; others as they are.

    Labels that are positions, as by default, or beside rows without names, say nothing.
    """
    if not _is_frame(table):
        return table
    labels = (table.index, table.columns)[axis].tolist()
    wanted = _check_names(names, n_names).tolist()
    position = {label: i for i, label in enumerate(labels)}
    if position.keys() == set(wanted) and len(labels) == n_names:
        return rows_of(table, [position[name] for name in wanted], axis=axis)
    if names is None or labels == list(range(len(labels))):
        return table
    strangers = [label for label in labels if label not in set(wanted)]
    missing = [name for name in wanted if name not in position]
    raise ValueError(
        f"the {('index', 'columns')[axis]} of the links' frame and the names of features differ: "
        f"{len(strangers)} labels have no features ({shown(strangers)}), and {len(missing)} names "
        f"no label ({shown(missing)}). Use the same names once each, or pass the frame's "
        "to_numpy() if it is in the order of features."
    )


def name_rows(X: Any, names: Any = None) -> Outputs:
    """Return one name for each row: those given, those of a frame's index, or positions."""
    return _check_names(given_names(X, names), count_rows(X))


def count_rows(X: Any) -> int:
    """Return the number of rows of an array, a frame or a list."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def given_names(X: Any, names: Any) -> Any:
    """Return the names given, or those of a frame's index, or None."""
    return X.index if names is None and _is_frame(X) else names


def _is_frame(table: Any) -> bool:
    return hasattr(table, "columns") and hasattr(table, "index")


def _check_names(names: Any, n_rows: int) -> Outputs:
    if names is None:
        return np.arange(n_rows)
    checked = Vertices(sp.csr_array((n_rows, n_rows)), names).names
    assert checked is not None
    return checked


def shown(names: list[Any]) -> str:
    """Return a few of the names, and how many there are more."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(repr, names[:SHOWN])) + more


def _align(vertices: Vertices, names: Any, n_rows: int) -> Graph:
    """Put the vertices of a graph that has names into the order of rows."""
    assert vertices.names is not None
    positions = vertices.names.dtype.kind in "iu"  # node i is row i, in whatever order it came
    if names is None and not positions and len(vertices) == n_rows:
        return Graph(vertices.adjacency, vertices.names)
    rows = _check_names(names, n_rows)
    order = vertices.positions(rows)
    strangers = rows[order < 0].tolist()
    missing = vertices.names[np.setdiff1d(np.arange(len(vertices)), order)].tolist()
    if strangers or missing:
        raise ValueError(
            "the rows of X and the vertices of the graph have different names: "
            f"{len(strangers)} rows are no vertices ({shown(strangers)}), and {len(missing)} "
            f"vertices have no row ({shown(missing)}). Pass names= that match, one for each row."
        )
    return Graph(vertices.adjacency[order][:, order], rows)


def _is_rectangular(graph: Any) -> bool:
    return hasattr(graph, "shape") or len({np.size(row) for row in graph}) <= 1


def _pairs(edges: Any) -> list[tuple[Any, Any]]:
    """Return the two ends of each edge, as they were: NumPy would make text of mixed names."""
    rows = edges.to_numpy() if hasattr(edges, "to_numpy") else edges
    rows = rows.tolist() if isinstance(rows, np.ndarray) else rows
    return [(a, b) for a, b in rows]
