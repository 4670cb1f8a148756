"""Completion of bipartite networks, such as drugs and their targets, and its cross-validation."""

from collections.abc import Iterator, Sequence
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from okforest._utils.arrays import Floats, Outputs, check_sparse
from okforest._utils.compat import Interval, StrOptions, fit_context, rows_of
from okforest._utils.distinct import refuse_masked
from okforest._utils.parameters import COUNT, check_arguments
from okforest._utils.state import FittedState
from okforest.kernels import as_kernel
from okforest.network.evaluation import KindScores, ScoredPairs, folds_of, judge
from okforest.network.graphs import (
    KNOWN_KNOWN,
    KNOWN_NEW,
    NEW_NEW,
    Positions,
    count_rows,
    name_new,
    name_rows,
    order_frame,
    row_names_of,
)
from okforest.network.links import (
    RankedLinks,
    TopPairs,
    check_inner_model,
    check_matrix,
    check_names,
    new_model,
    predicted_weights,
    ranked_links,
    row_blocks,
)
from okforest.weights import WeightMatrix, as_weights


class BipartiteCompletion(FittedState):
    """Predict links between two sets of vertices, rows and columns, from the features of both.

    Each side has its own model, whose outputs are profiles: the links of a vertex with all vertices
    of the other side. The model of the rows predicts weights w(x) over the known rows, the model of
    the columns predicts weights v(z) over the known columns, and the score of a pair is
    w(x)ᵀ Y v(z), where Y is the matrix of links. For a known vertex, ``smoothing`` mixes its own
    profile with the predicted one. Pairs with a new row, a new column or both have scores, and so
    do missing links between known vertices.

    Parameters
    ----------
    row_estimator : estimator, optional
        A model of okforest, or a pipeline that ends with one; its ``kernel`` is replaced. By
        default ``OKExtraTrees(100, max_features=0.25, min_samples_split=5)``.
    column_estimator : estimator, optional
        The model of the columns; by default a clone of ``row_estimator``.
    profile_kernel : OutputKernel or str, default="linear"
        The kernel on profiles, which are vectors of zeros and ones.
    smoothing : float, default=0.5
        Share of the prediction in the profile of a known vertex, between 0 and 1.

    Attributes
    ----------
    row_model_, column_model_ : estimator
        The fitted models.
    links_ : csr_array of shape (n, m)
        The training links.
    row_names_, column_names_ : ndarray
        Names of the rows and columns, or their positions.
    known_rows_, known_columns_ : csr_array
        Weights of the known rows over the known rows, and of the known columns over the known
        columns.

    See Also
    --------
    NetworkCompletion : Links between vertices of one set.
    cross_validate_bipartite : Evaluate predictions by cross-validation.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.network import BipartiteCompletion
    >>> rng = np.random.default_rng(0)
    >>> drugs, targets = rng.random((50, 2)), rng.random((30, 2))
    >>> links = np.abs(drugs[:, :1] - targets[:, 0]) < 0.1
    >>> model = BipartiteCompletion().fit(drugs[:40], targets[:25], links[:40, :25])
    >>> model.predict_links(drugs[40:]).shape  # new drugs, known targets
    (10, 25)
    >>> model.predict_links(X_columns=targets[25:]).shape  # known drugs, new targets
    (40, 5)
    >>> model.predict_links(drugs[40:], targets[25:]).shape  # both new
    (10, 5)
    """

    row_model_: Any
    column_model_: Any
    links_: sp.csr_array
    known_rows_: sp.csr_array
    known_columns_: sp.csr_array
    row_names_: Outputs
    column_names_: Outputs

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "row_estimator": "no_validation",  # new_model has better messages
        "column_estimator": "no_validation",
        "profile_kernel": "no_validation",  # as_kernel has better messages
        "smoothing": [Interval(Real, 0.0, 1.0, closed="both")],
    }

    def __init__(
        self,
        row_estimator: Any = None,
        column_estimator: Any = None,
        *,
        profile_kernel: Any = "linear",
        smoothing: float = 0.5,
    ):
        self.row_estimator = row_estimator
        self.column_estimator = column_estimator
        self.profile_kernel = profile_kernel
        self.smoothing = smoothing

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X_rows: Any,
        X_columns: Any,
        links: Any,
        row_names: Any = None,
        column_names: Any = None,
    ) -> "BipartiteCompletion":
        """Fit the model to the links between rows and columns.

        Parameters
        ----------
        X_rows : array-like, frame or sparse matrix of shape (n, p)
            Features of the rows, or their similarities with all rows.
        X_columns : array-like, frame or sparse matrix of shape (m, q)
            Features of the columns, or their similarities with all columns.
        links : array-like or sparse matrix of shape (n, m)
            1 where a row and a column are linked, 0 elsewhere. The labels of a data frame are the
            names of rows and columns.
        row_names : array-like of shape (n,), optional
            Names of the rows; by default the index of a data frame, or positions.
        column_names : array-like of shape (m,), optional
            Names of the columns; by default the index of a data frame, or positions.

        Returns
        -------
        self : object
            The fitted model.
        """
        self.links_ = read_links(links, X_rows, X_columns, row_names, column_names)
        self.row_names_ = name_rows(X_rows, row_names)
        self.column_names_ = name_rows(X_columns, column_names)
        profiles = self.links_.toarray()
        columns = self.row_estimator if self.column_estimator is None else self.column_estimator
        self.row_model_ = self._fit_side(self.row_estimator, X_rows, profiles)
        self.column_model_ = self._fit_side(columns, X_columns, profiles.T)
        self.known_rows_ = self._known_weights(self.row_model_, X_rows)
        self.known_columns_ = self._known_weights(self.column_model_, X_columns)
        return self

    def _fit_side(self, estimator: Any, X: Any, profiles: Floats) -> Any:
        return new_model(estimator, as_kernel(self.profile_kernel)).fit(X, profiles)

    def _known_weights(self, model: Any, X: Any) -> sp.csr_array:
        predicted = predicted_weights(model, X).tocsr()
        identity = sp.eye_array(predicted.shape[0], format="csr")
        return sp.csr_array((1 - self.smoothing) * identity + self.smoothing * predicted)

    def predict_links(self, X_rows: Any = None, X_columns: Any = None) -> Floats:
        """Score pairs of a row and a column: a higher score means that a link is more likely.

        Parameters
        ----------
        X_rows : array-like, frame or sparse matrix of shape (n, p), optional
            Features of new rows (or similarities with the known rows); by default the known rows.
        X_columns : array-like, frame or sparse matrix of shape (m, q), optional
            Features of new columns (or similarities with the known columns); by default the known
            columns.

        Returns
        -------
        scores : ndarray of shape (n, m)
            The scores.
        """
        check_is_fitted(self)
        W, V = self._weights(X_rows, X_columns)
        return _score_pairs(W, self.links_, V)

    def _weights(self, X_rows: Any, X_columns: Any) -> tuple[WeightMatrix, WeightMatrix]:
        """Return the weights of rows and of columns, of the known ones by default."""
        check_sparse(X_rows, "X_rows")
        check_sparse(X_columns, "X_columns")
        sides = (
            (X_rows, self.row_model_, self.known_rows_),
            (X_columns, self.column_model_, self.known_columns_),
        )
        W, V = (as_weights(k) if X is None else predicted_weights(m, X) for X, m, k in sides)
        return W, V

    def rank_links(
        self,
        X_rows: Any = None,
        X_columns: Any = None,
        row_names: Any = None,
        column_names: Any = None,
        k: int = 100,
        per_vertex: Literal["row", "column"] | None = None,
    ) -> RankedLinks:
        """Return the most likely links, best first: overall, or for each row or column.

        Parameters
        ----------
        X_rows : array-like, frame or sparse matrix of shape (n, p), optional
            Features of new rows; by default the known rows.
        X_columns : array-like, frame or sparse matrix of shape (m, q), optional
            Features of new columns; by default the known columns. If both sides are the known ones,
            only pairs that are not linked are ranked.
        row_names, column_names : array-like, optional
            Names of the new rows and columns; by default the index of a data frame, or positions.
            A name of a known row or column is an error.
        k : int, default=100
            Number of links to return; all of them if there are fewer.
        per_vertex : {"row", "column"}, optional
            Return the ``k`` links of each row, or of each column, in their order. By default the
            ``k`` links overall, which may all belong to a few vertices.

        Returns
        -------
        links : structured array
            The fields ``source`` (a row), ``target`` (a column), ``score`` and ``kind``.
        """
        check_is_fitted(self)
        constraints = {"k": [COUNT], "per_vertex": [StrOptions({"row", "column"}), None]}
        check_arguments("rank_links", constraints, k=k, per_vertex=per_vertex)
        pairs = TopPairs(k, per_row=per_vertex is not None)
        rows, columns = self.row_names_, self.column_names_
        if X_rows is not None:
            rows = name_new(X_rows, row_names, rows)
        if X_columns is not None:
            columns = name_new(X_columns, column_names, columns)
        W, V = self._weights(X_rows, X_columns)
        all_known = X_rows is None and X_columns is None
        if per_vertex == "column":
            _add_pairs(pairs, V, sp.csr_array(self.links_.T), W, all_known)
            pairs.rows, pairs.columns = pairs.columns, pairs.rows
        else:
            _add_pairs(pairs, W, self.links_, V, all_known)
        n_new = (X_rows is not None) + (X_columns is not None)
        return ranked_links(pairs, rows, columns, (KNOWN_KNOWN, KNOWN_NEW, NEW_NEW)[n_new])

    def check_state(self) -> None:
        """Raise a ValueError unless the fitted attributes fit each other."""
        super().check_state()
        n = check_inner_model(self.row_model_, "row_model_")
        m = check_inner_model(self.column_model_, "column_model_")
        check_matrix(self.links_, "links_", (n, m))
        check_matrix(self.known_rows_, "known_rows_", (n, n))
        check_matrix(self.known_columns_, "known_columns_", (m, m))
        check_names(self.row_names_, "row_names_", n)
        check_names(self.column_names_, "column_names_", m)


def _score_pairs(rows: WeightMatrix, links: sp.csr_array, columns: WeightMatrix) -> Floats:
    """Return W Y Vᵀ."""
    column_profiles = columns @ links.T.toarray()
    return np.ascontiguousarray(rows @ np.ascontiguousarray(column_profiles.T))


def _add_pairs(
    pairs: TopPairs, rows: WeightMatrix, links: sp.csr_array, columns: WeightMatrix, all_known: bool
) -> None:
    """Add all pairs of a row and a column; without the links if all vertices are known."""
    for block in row_blocks(rows.shape[0], columns.shape[0]):
        scores = _score_pairs(rows[block], links, columns)
        candidates = np.ones(scores.shape, dtype=bool)
        if all_known:
            candidates = links[block].toarray() == 0.0
        pairs.add(block.start, scores, candidates)


def read_links(
    links: Any, X_rows: Any, X_columns: Any, row_names: Any = None, column_names: Any = None
) -> sp.csr_array:
    """Return the links in the order of rows and columns; raise an error if they are wrong."""
    n_rows, n_columns = count_rows(X_rows, "X_rows"), count_rows(X_columns, "X_columns")
    links = order_frame(links, row_names_of(X_rows, row_names), n_rows, axis=0)
    links = order_frame(links, row_names_of(X_columns, column_names), n_columns, axis=1)
    refuse_masked(links, "links")
    check_sparse(links, "links")
    array: Any = links if sp.issparse(links) else np.asarray(links)
    if array.dtype.kind not in "fiub" or array.ndim != 2:
        what = f"an array of shape {array.shape} and type {array.dtype}"
        raise ValueError(
            f"links is {None if links is None else what}; pass a matrix of 0 and 1, with a row for "
            "each row of X_rows and a column for each row of X_columns."
        )
    matrix: sp.csr_array = sp.csr_array(array, dtype=np.float64, copy=True)
    if matrix.shape != (n_rows, n_columns):
        raise ValueError(
            f"links has shape {matrix.shape}; X_rows has {n_rows} rows and X_columns {n_columns}, "
            f"so it must have shape {(n_rows, n_columns)}."
        )
    if not np.isin(matrix.data, (0.0, 1.0)).all():
        raise ValueError("links has values other than 0 and 1; use 1 for a link and 0 for none.")
    matrix.eliminate_zeros()
    if matrix.nnz == 0:
        raise ValueError("links has no 1; pass at least one link to learn from.")
    return matrix


Setting = Literal["new rows", "new columns", "both new"]


def cross_validate_bipartite(
    model: BipartiteCompletion,
    X_rows: Any,
    X_columns: Any,
    links: Any,
    setting: Setting = "new rows",
    *,
    cv: int = 10,
    similarities: bool = False,
    precision_at: Sequence[int] = (10,),
    random_state: int = 0,
) -> KindScores:
    """Evaluate a model of links between two sides by cross-validation.

    Parameters
    ----------
    model : BipartiteCompletion
        The model; it is cloned.
    X_rows : array-like, frame or sparse matrix of shape (n, p)
        Features of the rows.
    X_columns : array-like, frame or sparse matrix of shape (m, q)
        Features of the columns.
    links : array-like or sparse matrix of shape (n, m)
        1 where a row and a column are linked, 0 elsewhere. If X_rows and X_columns are data frames,
        the labels of a data frame of links are the names of rows and columns.
    setting : {"new rows", "new columns", "both new"}, default="new rows"
        What is held out; with "both new", every fold of rows with every fold of columns.
    cv : int, default=10
        Number of folds of each side.
    similarities : bool, default=False
        Whether the features are similarities with the vertices of the same side. If so, the
        similarities with vertices held out are removed as well.
    precision_at : sequence of int, default=(10,)
        The numbers k for which to compute the precision among the k best-scoring pairs.
    random_state : int, default=0
        Seed of the folds.

    Returns
    -------
    scores : KindScores
        Scores and curves of each fold.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.network import BipartiteCompletion, cross_validate_bipartite
    >>> rng = np.random.default_rng(0)
    >>> drugs, targets = rng.random((40, 2)), rng.random((30, 2))
    >>> links = np.abs(drugs[:, :1] - targets[:, 0]) < 0.1
    >>> scores = cross_validate_bipartite(BipartiteCompletion(), drugs, targets, links, cv=3)
    >>> bool(scores.auc.mean() > 0.8)
    True
    """
    if not isinstance(model, BipartiteCompletion):
        raise TypeError(
            f"model is {model!r}; pass a BipartiteCompletion, such as "
            "BipartiteCompletion(OKExtraTrees())."
        )
    Y = read_links(links, X_rows, X_columns).toarray()
    if similarities:
        _check_square(X_rows, "X_rows")
        _check_square(X_columns, "X_columns")
    folds = []
    splits = _splits(setting, count_rows(X_rows), count_rows(X_columns), cv, random_state)
    for number, (known, new) in enumerate(splits, start=1):
        training = Y[np.ix_(*known)]
        if not training.any():
            raise ValueError(
                f"in fold {number} the {training.shape[0]} known rows and {training.shape[1]} "
                "known columns have no links to learn from; use more folds (cv), so that more of "
                "them are known."
            )
        rows, columns = (
            _part(X, kept, kept, similarities)
            for X, kept in zip((X_rows, X_columns), known, strict=True)
        )
        fitted = clone(model).fit(rows, columns, training)
        new_rows, new_columns = (
            None if apart is None else _part(X, apart, kept, similarities)
            for X, kept, apart in zip((X_rows, X_columns), known, new, strict=True)
        )
        scored = [kept if apart is None else apart for kept, apart in zip(known, new, strict=True)]
        truth = Y[np.ix_(*scored)].ravel() > 0
        folds.append(ScoredPairs(truth, fitted.predict_links(new_rows, new_columns).ravel()))
    return judge(folds, precision_at)


def _splits(
    setting: Setting, n_rows: int, n_columns: int, cv: int, random_state: int
) -> Iterator[tuple[list[Positions], list[Positions | None]]]:
    """Yield the known rows and columns, and the new ones (None for a side not held out)."""
    if setting not in ("new rows", "new columns", "both new"):
        raise ValueError(f"setting={setting!r}; use 'new rows', 'new columns' or 'both new'.")
    sides: list[list[tuple[Positions, Positions | None]]] = []
    for n, held in ((n_rows, "new rows"), (n_columns, "new columns")):
        if setting in (held, "both new"):
            sides.append([(f.known, f.new) for f in folds_of(n, cv, random_state)])
        else:
            sides.append([(np.arange(n), None)])
    for known_rows, new_rows in sides[0]:
        for known_columns, new_columns in sides[1]:
            yield [known_rows, known_columns], [new_rows, new_columns]


def _check_square(X: Any, name: str) -> None:
    n, shape = count_rows(X), np.shape(X)
    if shape != (n, n):
        raise ValueError(
            f"{name} has shape {shape}; similarities with the vertices of the same side form a "
            "square matrix. Use similarities=False for other features."
        )


def _part(X: Any, rows: Positions, columns: Positions, similarities: bool) -> Any:
    part = rows_of(X, rows)
    return rows_of(part, columns, axis=1) if similarities else part
