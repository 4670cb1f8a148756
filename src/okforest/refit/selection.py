"""Choosing the penalty of a refit by cross-validation, with one forest and one path per fold."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv

from okforest._utils.arrays import Floats, check_sparse
from okforest._utils.compat import rows_of
from okforest.refit.censored import CensoredForest
from okforest.refit.convex import warn_unless_converged
from okforest.refit.intervals import refit_intervals
from okforest.refit.leaves import Adjustments, check_rows, leaves_of
from okforest.survival.metrics import concordance_index


@dataclass(frozen=True)
class PenaltyChoice:
    """The result of :func:`select_C_leaves`.

    Parameters
    ----------
    C_leaves : float
        The chosen penalty.
    candidates : ndarray of shape (m,)
        The penalties, descending.
    scores : ndarray of shape (n_folds, m)
        Harrell's C of each fold and penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.refit import CensoredForest, select_C_leaves
    >>> X = np.random.default_rng(0).uniform(size=(100, 1))
    >>> y = np.rec.fromarrays([np.arange(100) % 3 > 0, np.exp(X[:, 0])], names="event,time")
    >>> choice = select_C_leaves(CensoredForest(), X, y)
    >>> bool(choice.C_leaves in choice.candidates), choice.scores.shape[1] == len(choice.candidates)
    (True, True)
    """

    C_leaves: float
    candidates: Floats
    scores: Floats


def select_C_leaves(
    model: CensoredForest,
    X: Any,
    y: Any,
    *,
    candidates: Any = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3),
    cv: Any = 5,
) -> PenaltyChoice:
    """Choose ``C_leaves`` of a CensoredForest by cross-validation of Harrell's C.

    In every fold the forest is grown once, and the refit with one penalty starts from the solution
    with the next larger one. The result is that of a grid search, in a fraction of its time.

    Parameters
    ----------
    model : CensoredForest
        The model, with ``norm="l2"`` and no priors; it is not modified.
    X, y : array-like
        Inputs and outputs.
    candidates : array-like of shape (m,), optional
        The penalties to try.
    cv : int or splitter, default=5
        The folds, as in :func:`sklearn.model_selection.cross_val_score`.

    Returns
    -------
    choice : PenaltyChoice
        The penalty with the largest mean score, and all scores.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.refit import CensoredForest, select_C_leaves
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 2))
    >>> time, limit = np.exp(2 * X[:, 0]), rng.exponential(6.0, size=200)
    >>> y = np.rec.fromarrays([time <= limit, np.minimum(time, limit)], names="event,time")
    >>> choice = select_C_leaves(CensoredForest(), X, y)
    >>> model = CensoredForest(C_leaves=choice.C_leaves).fit(X, y)
    """
    if not isinstance(model, CensoredForest):
        raise TypeError(f"select_C_leaves takes a CensoredForest, got {type(model).__name__}.")
    if model.adjust == "outputs" or model.norm != "l2" or len(model.priors):
        raise ValueError(
            f"select_C_leaves follows the path of leaf penalties with norm='l2' and without "
            f"priors; got adjust={model.adjust!r}, norm={model.norm!r} and {len(model.priors)} "
            "priors. Use sklearn.model_selection.GridSearchCV."
        )
    if not (
        model.laplacian is None or isinstance(model.laplacian, str) or callable(model.laplacian)
    ):
        raise ValueError(
            "the laplacian is a matrix of all rows, and every fold needs one of its own; pass a "
            "function of X that returns it, or 'knn'."
        )
    penalties = np.sort(np.unique(np.asarray(candidates, dtype=np.float64)))[::-1]
    if not len(penalties) or not penalties.min() > 0:
        raise ValueError(f"candidates={candidates!r}; pass one or more positive numbers.")
    check_sparse(X, "X")
    X = check_rows(model._new_forest(), X)
    intervals = model._read(X, y)
    scores = [
        _path(clone(model), rows_of(X, train), intervals[train], X, intervals, test, penalties)
        for train, test in check_cv(cv).split(X, intervals)
    ]
    best = int(np.mean(scores, axis=0).argmax())
    return PenaltyChoice(float(penalties[best]), penalties, np.array(scores))


def _path(
    model: CensoredForest,
    X_train: Any,
    y_train: Floats,
    X: Any,
    y: Floats,
    test: Any,
    penalties: Floats,
) -> list[float]:
    """Return the score of every penalty on the rows of a test fold."""
    grown = model._grow(X_train, y_train)
    rows = grown.expansion.rows(leaves_of(grown.model, rows_of(X, test)))
    n_outputs = grown.expansion.means.shape[1] if model.adjust == "both" else 0
    scores, start, previous = [], None, 1.0
    for C in penalties:
        if start is not None:  # adjustments are stored times the root of their penalty
            start[n_outputs:] *= np.sqrt(C / previous)
        solution = refit_intervals(model, X_train, grown, C, start)
        warn_unless_converged(solution, model.tol)
        B = Adjustments.create(grown.L, grown.expansion.means, model.adjust, C, model.C_outputs)
        values = grown.values + B.leaf_values(solution.v)
        scores.append(concordance_index(y[test], -(rows @ values)))
        start, previous = solution.v.copy(), C
    return scores
