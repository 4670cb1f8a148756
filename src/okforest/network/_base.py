"""The contract of a model of links: fitted to a graph, it scores pairs of vertices."""

from abc import ABC, abstractmethod
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from okforest._compat import fit_context
from okforest._typing import Floats, Outputs
from okforest.network._graphs import Graph, name_rows, read_graph
from okforest.network._pairs import (
    SEEN_SEEN,
    SEEN_UNSEEN,
    UNSEEN_UNSEEN,
    Best,
    Kind,
    row_blocks,
)

Table = npt.NDArray[np.void]


class LinkPredictor(ABC, BaseEstimator):
    """A model that scores how likely two vertices are linked, by their features.

    Vertices of the training graph are *seen*, others *unseen*. A subclass learns from the graph,
    places vertices where they can be compared, and compares them.
    """

    adjacency_: sp.csr_array
    names_: Outputs

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, graph: Any, names: Any = None) -> Self:
        """Learn from the links among the vertices of a graph.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Features, one row for each vertex.
        graph : adjacency matrix, networkx graph or edge list
            The links, all of them among the rows of X: a symmetric matrix, dense or sparse, in the
            order of rows (of a frame, its labels are the names); a networkx graph; or pairs of
            names.
        names : array-like of shape (n,), optional
            Names of the rows, by which they are found in a frame, a networkx graph or an edge
            list; by default the index of a frame, or positions: node i of a networkx graph is row
            i, and nodes that are no integers are the rows in their order.

        Returns
        -------
        self : object
            The fitted model.
        """
        seen = read_graph(graph, X, names)
        self._fit(X, seen)
        self.adjacency_, self.names_ = seen
        return self

    @abstractmethod
    def _fit(self, X: Any, graph: Graph) -> None:
        """Learn from the links among the rows of X."""

    @abstractmethod
    def _place(self, X: Any) -> Any:
        """Return the rows of X, or the seen vertices for None, as a sequence that can be sliced."""

    @abstractmethod
    def _compare(self, a: Any, b: Any) -> Floats:
        """Return the scores of every one of some placed vertices with every one of others."""

    def predict_links(self, X_new: Any = None, Z_new: Any = None) -> Floats:
        """Score pairs of vertices: the larger, the more likely is a link.

        Parameters
        ----------
        X_new : array-like, frame or sparse matrix of shape (n, p), optional
            Features of unseen vertices; by default the seen vertices.
        Z_new : array-like, frame or sparse matrix of shape (m, p), optional
            Features of the other ends of links; by default the seen vertices.

        Returns
        -------
        scores : ndarray of shape (n, m)
            The score of a link between each row of X_new and each of Z_new.
        """
        check_is_fitted(self)
        a = self._place(X_new)
        return self._compare(a, a if Z_new is X_new else self._place(Z_new))

    def rank_links(self, X_new: Any = None, names: Any = None, top: int = 100) -> Table:
        """Return the pairs that are most likely to be linked, best first.

        Parameters
        ----------
        X_new : array-like, frame or sparse matrix of shape (n, p), optional
            Features of unseen vertices: the pairs ranked are those with at least one of them. By
            default pairs of seen vertices without a link are ranked.
        names : array-like of shape (n,), optional
            Names of the rows of X_new; by default the index of a frame, or positions.
        top : int, default=100
            How many pairs; all, if there are fewer.

        Returns
        -------
        links : structured array
            ``source`` (unseen, if X_new was given) and ``target``, their ``score``, and the
            ``kind`` of pair: "seen-seen", "seen-unseen" or "unseen-unseen". ``pandas.DataFrame``
            makes a frame of it.
        """
        check_is_fitted(self)
        top = check_top(top)
        seen = self._place(None)
        if X_new is None:
            best = self._best(seen, seen, top, known=self.adjacency_)
            return make_table(best, self.names_, self.names_, SEEN_SEEN)
        unseen = self._place(X_new)
        unseen_names = name_rows(X_new, names)
        table = np.concatenate(
            [
                make_table(self._best(unseen, seen, top), unseen_names, self.names_, SEEN_UNSEEN),
                make_table(
                    self._best(unseen, unseen, top), unseen_names, unseen_names, UNSEEN_UNSEEN
                ),
            ]
        )
        return table[np.argsort(-table["score"], kind="stable")[:top]]

    def _best(self, a: Any, b: Any, top: int, known: sp.csr_array | None = None) -> Best:
        """Return the best pairs of one of a and one of b, each pair once, but those known."""
        best = Best(top)
        for block in row_blocks(len(a), len(b)):
            scores = self._compare(a[block], b)
            candidates = np.ones(scores.shape, dtype=bool)
            if a is b:
                candidates = np.arange(len(b)) > np.arange(block.start, block.stop)[:, None]
            if known is not None:
                links = sp.coo_array(known[block])
                candidates[links.row, links.col] = False
            rows, columns = np.nonzero(candidates)
            best.add(rows + block.start, columns, scores[rows, columns])
        return best


def check_top(top: Any) -> int:
    """Return how many pairs are asked for."""
    if not isinstance(top, Integral) or top < 1:
        raise ValueError(f"top={top!r}; use a positive integer.")
    return int(top)


def make_table(best: Best, sources: Outputs, targets: Outputs, kind: Kind) -> Table:
    """Return pairs with their names, scores and kind."""
    # Of numbers and text together, NumPy would make text.
    same = sources.dtype.kind == targets.dtype.kind
    name = np.result_type(sources, targets) if same else np.dtype(object)
    fields = [("source", name), ("target", name), ("score", np.float64), ("kind", "U13")]
    table = np.empty(len(best.scores), dtype=fields)
    table["source"], table["target"] = sources[best.rows], targets[best.columns]
    table["score"], table["kind"] = best.scores, kind
    return table
