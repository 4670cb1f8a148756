"""Completion of a network with two sides, as of drugs and their targets."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from okforest._compat import Interval, fit_context
from okforest._typing import Floats, Outputs, WeightMatrix, Weights
from okforest.kernels import as_kernel
from okforest.metrics.losses import unwrap
from okforest.network._base import Table, check_top, make_table
from okforest.network._graphs import count_rows, given_names, name_rows, order_frame
from okforest.network._models import new_model
from okforest.network._pairs import SEEN_SEEN, SEEN_UNSEEN, UNSEEN_UNSEEN, Best, row_blocks


class BipartiteCompletion(BaseEstimator):
    """Predict links between two sides, rows and columns, from features of both.

    Each side has a model of its own, whose outputs are profiles of links with the other side. It
    gives an object weights over the seen objects of its side, w(x) for rows and v(z) for columns;
    with the matrix Y of links the score of a pair is w(x)ᵀ Y v(z). An object that was seen is not
    all that its model says: its weights are those of itself alone, mixed with its prediction by
    ``smoothing``. So new rows, new columns, pairs of both, and missing links of seen ones have
    scores.

    Parameters
    ----------
    row_estimator : estimator, optional
        A model of okforest, or a pipeline that ends with one; its ``kernel`` is set. By default
        ``OKExtraTrees(100, max_features=0.25, min_samples_split=5)``.
    column_estimator : estimator, optional
        The model of columns; by default that of rows.
    profile_kernel : OutputKernel or str, default="linear"
        The kernel on profiles, vectors of zeros and ones.
    smoothing : float, default=0.5
        How much of a seen object's place is predicted, from 0 to 1.

    Attributes
    ----------
    row_model_, column_model_ : estimator
        The fitted models.
    links_ : csr_array of shape (n, m)
        The training links.
    row_names_, column_names_ : ndarray
        Names of rows and columns, or their positions.
    seen_rows_, seen_columns_ : csr_array
        The places of seen objects, as weights.

    See Also
    --------
    NetworkCompletion : Links among objects of one kind.
    cross_validate_bipartite : How good predictions are.

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

    links_: sp.csr_array
    seen_rows_: Weights
    seen_columns_: Weights
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
        """Learn from the links between rows and columns.

        Parameters
        ----------
        X_rows : array-like, frame or sparse matrix of shape (n, p)
            Features of rows, or their similarities with all rows.
        X_columns : array-like, frame or sparse matrix of shape (m, q)
            Features of columns, or their similarities with all columns.
        links : array-like or sparse matrix of shape (n, m)
            1 where a row and a column are linked, 0 where not. The labels of a frame are names of
            rows and columns.
        row_names : array-like of shape (n,), optional
            Names of rows; by default the index of a frame, or positions.
        column_names : array-like of shape (m,), optional
            Names of columns, likewise.

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
        self.seen_rows_ = self._seen(self.row_model_, X_rows)
        self.seen_columns_ = self._seen(self.column_model_, X_columns)
        return self

    def _fit_side(self, estimator: Any, X: Any, profiles: Floats) -> Any:
        return new_model(estimator, as_kernel(self.profile_kernel)).fit(X, profiles)

    def _seen(self, model: Any, X: Any) -> Weights:
        predicted = _weights(model, X).tocsr()
        known = sp.eye_array(predicted.shape[0], format="csr")
        return sp.csr_array((1 - self.smoothing) * known + self.smoothing * predicted)

    def predict_links(self, X_rows: Any = None, X_columns: Any = None) -> Floats:
        """Score pairs of a row and a column: the larger, the more likely is a link.

        Parameters
        ----------
        X_rows : array-like, frame or sparse matrix of shape (n, p), optional
            Features of new rows (or similarities with seen rows); by default the seen rows.
        X_columns : array-like, frame or sparse matrix of shape (m, q), optional
            Features of new columns (or similarities with seen ones); by default the seen columns.

        Returns
        -------
        scores : ndarray of shape (n, m)
            The scores.
        """
        check_is_fitted(self)
        return _compare(self._rows(X_rows), self.links_, self._columns(X_columns))

    def _rows(self, X: Any) -> WeightMatrix:
        return self.seen_rows_ if X is None else _weights(self.row_model_, X)

    def _columns(self, X: Any) -> WeightMatrix:
        return self.seen_columns_ if X is None else _weights(self.column_model_, X)

    def rank_links(
        self,
        X_rows: Any = None,
        X_columns: Any = None,
        row_names: Any = None,
        column_names: Any = None,
        top: int = 100,
    ) -> Table:
        """Return the pairs that are most likely to be linked, best first.

        Parameters
        ----------
        X_rows : array-like, frame or sparse matrix of shape (n, p), optional
            Features of new rows; by default the seen rows.
        X_columns : array-like, frame or sparse matrix of shape (m, q), optional
            Features of new columns; by default the seen columns. Of pairs that were seen, those
            without a link are ranked.
        row_names, column_names : array-like, optional
            Names of the new ones; by default the index of a frame, or positions.
        top : int, default=100
            How many pairs; all, if there are fewer.

        Returns
        -------
        links : structured array
            ``source`` (a row) and ``target`` (a column), their ``score``, and the ``kind`` of pair.
        """
        check_is_fitted(self)
        rows, columns = self._rows(X_rows), self._columns(X_columns)
        best = Best(check_top(top))
        all_seen = X_rows is None and X_columns is None
        for block in row_blocks(rows.shape[0], columns.shape[0]):
            scores = _compare(rows[block], self.links_, columns)
            free = np.ones(scores.shape, dtype=bool)
            if all_seen:
                free = self.links_[block].toarray() == 0.0
            i, j = np.nonzero(free)
            best.add(i + block.start, j, scores[i, j])
        n_new = (X_rows is not None) + (X_columns is not None)
        return make_table(
            best,
            self.row_names_ if X_rows is None else name_rows(X_rows, row_names),
            self.column_names_ if X_columns is None else name_rows(X_columns, column_names),
            (SEEN_SEEN, SEEN_UNSEEN, UNSEEN_UNSEEN)[n_new],
        )


def _weights(model: Any, X: Any) -> WeightMatrix:
    final, X = unwrap(model, X)
    return final._weights(X)


def _compare(rows: WeightMatrix, links: sp.csr_array, columns: WeightMatrix) -> Floats:
    """Return W Y Vᵀ."""
    profiles = columns @ links.T.toarray()  # of the columns, over seen rows
    return np.ascontiguousarray(rows @ np.ascontiguousarray(profiles.T))


def read_links(
    links: Any, X_rows: Any, X_columns: Any, row_names: Any = None, column_names: Any = None
) -> sp.csr_array:
    """Return the links in the order of rows and columns, or say what is wrong with them."""
    n_rows, n_columns = count_rows(X_rows), count_rows(X_columns)
    links = order_frame(links, given_names(X_rows, row_names), n_rows, axis=0)
    links = order_frame(links, given_names(X_columns, column_names), n_columns, axis=1)
    given: Any = links if sp.issparse(links) else np.asarray(links)
    if given.dtype.kind not in "fiub" or given.ndim != 2:
        raise ValueError(
            f"links is an array of shape {given.shape} and type {given.dtype}; pass a matrix of 0 "
            "and 1, a row for each row of X_rows and a column for each of X_columns."
        )
    matrix: sp.csr_array = sp.csr_array(given, dtype=np.float64, copy=True)
    if matrix.shape != (n_rows, n_columns):
        raise ValueError(
            f"links has shape {matrix.shape}; X_rows has {n_rows} rows and X_columns {n_columns}, "
            f"so that it must have shape {(n_rows, n_columns)}."
        )
    if not np.isin(matrix.data, (0.0, 1.0)).all():
        raise ValueError("links has values other than 0 and 1; use 1 for a link and 0 for none.")
    matrix.eliminate_zeros()
    if matrix.nnz == 0:
        raise ValueError("links are all 0; there is nothing to learn from.")
    return matrix
