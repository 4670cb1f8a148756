"""The base class of models of links: fitted to a graph, they score and rank pairs of vertices."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from okforest._utils.arrays import Booleans, Floats, Outputs, check_compressed, check_sparse
from okforest._utils.compat import fit_context
from okforest._utils.parameters import COUNT, check_arguments
from okforest._utils.state import FittedState
from okforest.kernels import OutputKernel
from okforest.metrics.losses import unwrap
from okforest.models import OKExtraTrees
from okforest.models.tree_model import TreeModel
from okforest.models.wrapping import check_inner, clone_with_kernel, final_model
from okforest.network.graphs import (
    KNOWN_KNOWN,
    KNOWN_NEW,
    NEW_NEW,
    Graph,
    PairKind,
    Positions,
    name_new,
    read_graph,
)
from okforest.weights import WeightMatrix

# A structured array with the fields source, target, score and kind.
RankedLinks = npt.NDArray[np.void]

BLOCK_PAIRS = 2**23  # number of scores held in memory at a time


class TopPairs:
    """The pairs with the highest scores among those added, best first; ties keep their order.

    Parameters
    ----------
    k : int
        Number of pairs to keep.
    per_row : bool, default=False
        Whether to keep that many pairs for each row; pairs are then ordered by row first.
    """

    def __init__(self, k: int, per_row: bool = False):
        self.k = k
        self.per_row = per_row
        self.rows = self.columns = np.empty(0, dtype=np.intp)
        self.scores = np.empty(0)

    def add(self, start: int, scores: Floats, candidates: Booleans) -> None:
        """Add the candidates among the pairs of a block of rows that begins at row ``start``."""
        scores = np.where(candidates, scores, -np.inf)
        # All pairs tied with the last one pass; best_first then keeps the first of them.
        rows, columns = np.nonzero(candidates & (scores >= self._thresholds(scores)))
        all_scores = np.concatenate([self.scores, scores[rows, columns]])
        all_rows = np.concatenate([self.rows, rows + start])
        all_columns = np.concatenate([self.columns, columns])
        best = best_first(all_scores, self.k, all_rows if self.per_row else None)
        self.rows, self.columns, self.scores = all_rows[best], all_columns[best], all_scores[best]

    def _thresholds(self, scores: Floats) -> Floats:
        """Return a score that the best pairs reach: one for each row, or one for all rows."""
        groups = scores if self.per_row else scores.reshape(1, -1)
        if groups.shape[1] <= self.k:
            return np.full((1, 1), -np.inf)
        last = self.k - 1
        return -np.partition(-groups, last, axis=1)[:, last : last + 1]


def best_first(scores: Floats, k: int, groups: Positions | None = None) -> Positions:
    """Return the positions of the highest scores, best first; ties keep their order.

    With ``groups``, these are the highest scores of each group, group by group.
    """
    if groups is None:
        return np.argsort(-scores, kind="stable")[:k]
    order = np.lexsort((-scores, groups))
    grouped = groups[order]
    rank = np.arange(len(order)) - np.searchsorted(grouped, grouped)
    return order[rank < k]


def ranked_links(
    pairs: TopPairs, sources: Outputs, targets: Outputs, kind: PairKind
) -> RankedLinks:
    """Return pairs with the names of their vertices, their scores and their kind."""
    # NumPy would convert a mixture of numbers and text to text.
    same = sources.dtype.kind == targets.dtype.kind
    name = np.result_type(sources, targets) if same else np.dtype(object)
    fields = [("source", name), ("target", name), ("score", np.float64), ("kind", "U13")]
    links = np.empty(len(pairs.scores), dtype=fields)
    links["source"], links["target"] = sources[pairs.rows], targets[pairs.columns]
    links["score"], links["kind"] = pairs.scores, kind
    return links


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Divide the rows of a matrix of pairs into blocks of bounded size."""
    size = max(1, BLOCK_PAIRS // max(1, n_columns))
    return (slice(i, min(i + size, n_rows)) for i in range(0, n_rows, size))


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
        known = read_graph(graph, X, names)  # its error explains what to pass
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
        self, X_new: Any = None, names: Any = None, k: int = 100, per_vertex: bool = False
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
        k : int, default=100
            Number of links to return; all of them if there are fewer.
        per_vertex : bool, default=False
            Whether to return the ``k`` links of each vertex (each row of X_new, or each known
            vertex) instead of the ``k`` links overall, which may all belong to a few vertices.
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
        >>> best = model.rank_links([[0.1, 2.0], [3.0, 1.0]], names=[3, 4], k=1, per_vertex=True)
        >>> [(source, target) for source, target, *_ in best.tolist()]
        [(3, 2), (4, 1)]
        """
        check_is_fitted(self)
        check_arguments("rank_links", {"k": [COUNT]}, k=k)
        known = self._represent(None)
        if X_new is None:
            pairs = self._top_pairs(known, known, TopPairs(k, per_vertex), linked=self.adjacency_)
            return ranked_links(pairs, self.names_, self.names_, KNOWN_KNOWN)
        new_names = name_new(X_new, names, self.names_)
        new = self._represent(X_new)
        across = self._top_pairs(new, known, TopPairs(k, per_vertex))
        within = self._top_pairs(new, new, TopPairs(k, per_vertex))
        links = np.concatenate(
            [
                ranked_links(across, new_names, self.names_, KNOWN_NEW),
                ranked_links(within, new_names, new_names, NEW_NEW),
            ]
        )
        sources = np.concatenate([across.rows, within.rows]) if per_vertex else None
        return links[best_first(links["score"], k, sources)]

    def _top_pairs(
        self, a: Any, b: Any, pairs: TopPairs, linked: sp.csr_array | None = None
    ) -> TopPairs:
        """Add all pairs of a vertex in ``a`` and one in ``b`` that are not linked."""
        for block in row_blocks(len(a), len(b)):
            scores = self._score_pairs(a[block], b)
            candidates = np.ones(scores.shape, dtype=bool)
            if a is b:
                rows, others = np.arange(block.start, block.stop)[:, None], np.arange(len(b))
                # Each pair once, or once from each of its ends.
                candidates = others != rows if pairs.per_row else others > rows
            if linked is not None:
                links = sp.coo_array(linked[block])
                candidates[links.row, links.col] = False
            pairs.add(block.start, scores, candidates)
        return pairs


# Chosen by the experiments in docs/results_networks.md.
DEFAULT = OKExtraTrees(100, max_features=0.25, min_samples_split=5)


def new_model(estimator: Any, kernel: OutputKernel, scheme: str = "convolve") -> Any:
    """Return a clone of an estimator (by default DEFAULT) with the given output kernel."""
    model = clone_with_kernel(DEFAULT if estimator is None else estimator, kernel)
    final = final_model(model)
    if scheme == "average" and not isinstance(final, TreeModel):
        raise ValueError(
            f"scheme='average' requires trees, and estimator is {final!r}; use scheme='convolve'."
        )
    return model


def predicted_weights(estimator: Any, X: Any) -> WeightMatrix:
    """Return the weights over training outputs that an estimator predicts."""
    model, X = unwrap(estimator, X)
    return model.weight_matrix(X)


def predicted_weights_by_tree(estimator: Any, X: Any) -> Sequence[WeightMatrix]:
    """Return the weights over training outputs that each tree of an estimator predicts."""
    model, X = unwrap(estimator, X)
    return model.tree_weight_matrices(X)


def check_inner_model(estimator: Any, name: str) -> int:
    """Check the model inside a model, or at the end of a pipeline; return its number of outputs."""
    final = final_model(estimator)
    check_inner(final, name)
    return len(final.outputs_)


def check_names(names: Any, name: str, n: int) -> None:
    """Check an array of n names."""
    if not isinstance(names, np.ndarray) or names.shape != (n,):
        raise ValueError(f"{name} is not an array of {n} names")


def check_matrix(matrix: Any, name: str, shape: tuple[int, int]) -> None:
    """Check a sparse matrix of floats fully: SciPy's compiled code trusts its three arrays."""
    if not isinstance(matrix, sp.csr_array) or matrix.dtype.kind != "f":
        raise ValueError(f"{name} is not a sparse matrix of floats")
    if matrix.shape != shape:
        raise ValueError(f"{name} has shape {matrix.shape}, not {shape}")
    try:
        check_compressed(matrix.data, matrix.indices, matrix.indptr, *shape)
    except ValueError as error:
        raise ValueError(f"{name} is not a valid sparse matrix: {error}") from None
