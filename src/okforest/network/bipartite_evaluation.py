"""Cross-validation of predicted links between two sides: new rows, new columns, or both."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from okforest._utils.compat import rows_of
from okforest.network.bipartite import BipartiteCompletion, read_links
from okforest.network.evaluation import KindScores, ScoredPairs, folds_of, judge
from okforest.network.graphs import Positions, count_rows

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
