"""How good predicted links between two sides are: new rows, new columns, or both."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from okforest._compat import rows_of
from okforest.network._folds import Pairs, folds_of
from okforest.network._graphs import count_rows
from okforest.network._pairs import Positions
from okforest.network.bipartite import BipartiteCompletion, read_links
from okforest.network.evaluation import KindScores, judge

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
        Features of rows.
    X_columns : array-like, frame or sparse matrix of shape (m, q)
        Features of columns.
    links : array-like or sparse matrix of shape (n, m)
        1 where a row and a column are linked, 0 where not. The labels of a frame are names of rows
        and columns, if X_rows and X_columns are frames.
    setting : {"new rows", "new columns", "both new"}, default="new rows"
        What is held out; of "both new", every fold of rows with every fold of columns.
    cv : int, default=10
        Number of folds of a side.
    similarities : bool, default=False
        Whether the features are similarities with the objects of the same side: then those with
        objects that are held out are left out as well.
    precision_at : sequence of int, default=(10,)
        For which numbers of best pairs to tell the precision.
    random_state : int, default=0
        The seed of folds.

    Returns
    -------
    scores : KindScores
        Scores and curves, fold by fold.

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
    Y = read_links(links, X_rows, X_columns).toarray()
    if similarities:
        _check_square(X_rows, "X_rows")
        _check_square(X_columns, "X_columns")
    folds = []
    splits = _splits(setting, count_rows(X_rows), count_rows(X_columns), cv, random_state)
    for number, (old, new) in enumerate(splits, start=1):
        rows, columns = (
            _part(X, seen, seen, similarities)
            for X, seen in zip((X_rows, X_columns), old, strict=True)
        )
        training = Y[np.ix_(*old)]
        if not training.any():
            raise ValueError(
                f"in fold {number} the {training.shape[0]} rows and {training.shape[1]} columns "
                "that are seen have no links to learn from; use more folds (cv), so that more of "
                "them are seen."
            )
        fitted = clone(model).fit(rows, columns, training)
        new_rows, new_columns = (
            None if unseen is None else _part(X, unseen, seen, similarities)
            for X, seen, unseen in zip((X_rows, X_columns), old, new, strict=True)
        )
        judged = [seen if unseen is None else unseen for seen, unseen in zip(old, new, strict=True)]
        truth = Y[np.ix_(*judged)].ravel() > 0
        folds.append(Pairs(truth, fitted.predict_links(new_rows, new_columns).ravel()))
    return judge(folds, precision_at)


def _splits(
    setting: Setting, n_rows: int, n_columns: int, cv: int, random_state: int
) -> Iterator[tuple[list[Positions], list[Positions | None]]]:
    """Yield what is seen, and what is not (None for nothing), of rows and of columns."""
    if setting not in ("new rows", "new columns", "both new"):
        raise ValueError(f"setting={setting!r}; use 'new rows', 'new columns' or 'both new'.")
    sides: list[list[tuple[Positions, Positions | None]]] = []
    for n, held in ((n_rows, "new rows"), (n_columns, "new columns")):
        if setting in (held, "both new"):
            sides.append([(f.seen, f.unseen) for f in folds_of(n, cv, random_state)])
        else:
            sides.append([(np.arange(n), None)])
    for old_rows, new_rows in sides[0]:
        for old_columns, new_columns in sides[1]:
            yield [old_rows, old_columns], [new_rows, new_columns]


def _check_square(X: Any, name: str) -> None:
    n, shape = count_rows(X), np.shape(X)
    if shape != (n, n):
        raise ValueError(
            f"{name} has shape {shape}; similarities with the objects of the same side are a "
            "square matrix. Use similarities=False for other features."
        )


def _part(X: Any, rows: Positions, others: Positions, similarities: bool) -> Any:
    part = rows_of(X, rows)
    return rows_of(part, others, axis=1) if similarities else part
