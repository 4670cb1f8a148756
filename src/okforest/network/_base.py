"""The base class of models of links: fitted to a graph, they score pairs of vertices."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from okforest._compat import fit_context
from okforest._sparse import check_sparse
from okforest._state import FittedState
from okforest._typing import Floats, Outputs
from okforest.network._graphs import Graph, name_new, read_graph
from okforest.network._pairs import KNOWN_KNOWN, KNOWN_NEW, NEW_NEW
from okforest.network._ranking import (
    RankedLinks,
    TopPairs,
    best_first,
    check_top,
    ranked_links,
    row_blocks,
)


class LinkPredictor(FittedState, ABC):
    """Base class of models that score how likely two vertices are linked, from their features.

    Vertices of the training graph are *known*, all others *new*. A subclass implements ``_fit``
    (learn from the graph), ``_represent`` (turn features into a representation of vertices) and
    ``_score_pairs`` (score pairs of represented vertices).

    Examples
    --------
    >>> from okforest.network import LinkPredictor, NetworkCompletion, PairClassifier
    >>> issubclass(NetworkCompletion, LinkPredictor), issubclass(PairClassifier, LinkPredictor)
    (True, True)
    """

    adjacency_: sp.csr_array
    names_: Outputs

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, graph: Any = None, names: Any = None) -> Self:
        """Fit the model to a graph.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Features, one row per vertex.
        graph : adjacency matrix, networkx graph or edge list
            The links between the rows of X: a symmetric matrix, dense or sparse, in the order of
            the rows (the labels of a data frame are names); a networkx graph; or pairs of names.
        names : array-like of shape (n,), optional
            Names of the rows, used to match them with a data frame, a networkx graph or an edge
            list. By default the index of a data frame X, or else positions: node i of a networkx
            graph is row i. If its nodes are not integers, they are the rows in order.

        Returns
        -------
        self : object
            The fitted model.
        """
        known = read_graph(graph, X, names)  # which explains what to pass if there is no graph
        self._fit(X, known)
        self.adjacency_, self.names_ = known
        return self

    @abstractmethod
    def _fit(self, X: Any, graph: Graph) -> None:
        """Learn from the links between the rows of X."""

    @abstractmethod
    def _represent(self, X: Any) -> Any:
        """Return a representation of the rows of X (of the known vertices if None).

        It has a length and can be sliced.
        """

    @abstractmethod
    def _score_pairs(self, a: Any, b: Any) -> Floats:
        """Return the score of every pair of a vertex in ``a`` and a vertex in ``b``."""

    def predict_links(self, X_new: Any = None, Z_new: Any = None) -> Floats:
        """Score pairs of vertices: a higher score means that a link is more likely.

        Parameters
        ----------
        X_new : array-like, frame or sparse matrix of shape (n, p), optional
            Features of new vertices; by default the known vertices.
        Z_new : array-like, frame or sparse matrix of shape (m, p), optional
            Features of new vertices at the other end of the links; by default the known vertices.

        Returns
        -------
        scores : ndarray of shape (n, m)
            The score of a link between each row of X_new and each row of Z_new.
        """
        check_is_fitted(self)
        check_sparse(X_new, "X_new")
        check_sparse(Z_new, "Z_new")
        a = self._represent(X_new)
        return self._score_pairs(a, a if Z_new is X_new else self._represent(Z_new))

    def rank_links(
        self, X_new: Any = None, names: Any = None, top: int = 100, per_vertex: bool = False
    ) -> RankedLinks:
        """Return the most likely links, best first: overall, or for each vertex.

        Parameters
        ----------
        X_new : array-like, frame or sparse matrix of shape (n, p), optional
            Features of new vertices: all pairs with at least one of them are ranked. By default,
            pairs of known vertices that are not linked are ranked: the missing links of the graph.
        names : array-like of shape (n,), optional
            Names of the rows of X_new; by default the index of a data frame, or positions in X_new.
            A name that a known vertex has is an error.
        top : int, default=100
            Number of links to return; all of them if there are fewer.
        per_vertex : bool, default=False
            Whether to return the ``top`` links of each vertex (each row of X_new, or each known
            vertex) instead of the ``top`` links overall, which may all belong to a few vertices.
            The links are then ordered by vertex, which is the ``source``; a link between two such
            vertices can appear twice, once for each of them.

        Returns
        -------
        links : structured array
            The fields ``source`` (a new vertex if X_new was given), ``target``, ``score`` and
            ``kind``: "known-known", "known-new" or "new-new". Pass it to
            ``pandas.DataFrame`` for a data frame.

        Examples
        --------
        >>> import numpy as np
        >>> from okforest.network import InputSimilarity
        >>> X = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
        >>> model = InputSimilarity().fit(X, [(0, 1)])
        >>> best = model.rank_links([[0.1, 2.0], [3.0, 1.0]], names=[3, 4], top=1, per_vertex=True)
        >>> [(source, target) for source, target, *_ in best.tolist()]
        [(3, 2), (4, 1)]
        """
        check_is_fitted(self)
        top = check_top(top)
        known = self._represent(None)
        if X_new is None:
            pairs = self._top_pairs(known, known, TopPairs(top, per_vertex), linked=self.adjacency_)
            return ranked_links(pairs, self.names_, self.names_, KNOWN_KNOWN)
        new_names = name_new(X_new, names, self.names_)
        new = self._represent(X_new)
        across = self._top_pairs(new, known, TopPairs(top, per_vertex))
        within = self._top_pairs(new, new, TopPairs(top, per_vertex))
        links = np.concatenate(
            [
                ranked_links(across, new_names, self.names_, KNOWN_NEW),
                ranked_links(within, new_names, new_names, NEW_NEW),
            ]
        )
        sources = np.concatenate([across.rows, within.rows]) if per_vertex else None
        return links[best_first(links["score"], top, sources)]

    def _top_pairs(
        self, a: Any, b: Any, pairs: TopPairs, linked: sp.csr_array | None = None
    ) -> TopPairs:
        """Add all pairs of a vertex in ``a`` and one in ``b`` that are not linked."""
        for block in row_blocks(len(a), len(b)):
            scores = self._score_pairs(a[block], b)
            candidates = np.ones(scores.shape, dtype=bool)
            if a is b:
                own, others = np.arange(block.start, block.stop)[:, None], np.arange(len(b))
                # Each pair once, or once from each of its ends.
                candidates = others != own if pairs.per_row else others > own
            if linked is not None:
                links = sp.coo_array(linked[block])
                candidates[links.row, links.col] = False
            pairs.add(block.start, scores, candidates)
        return pairs
