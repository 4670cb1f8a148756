"""What is behind a prediction."""

from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from okforest._typing import Floats
from okforest.models._base import Averager


def prototypes(model: Any, X: Any, k: int = 5) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the training outputs behind each prediction, with their weights.

    Parameters
    ----------
    model : estimator
        A fitted model of okforest, with or without y.
    X : array-like of shape (n, p)
        Inputs.
    k : int, default=5
        How many training outputs for each input.

    Returns
    -------
    rows : ndarray of shape (n, k)
        The training rows of largest weight, largest first and of equals the first; -1 where fewer
        have any. ``model.outputs_[rows]`` are their outputs.
    weights : ndarray of shape (n, k)
        Their weights in the prediction; 0 with row -1.

    See Also
    --------
    okforest.OKTree.predict_weights : All weights.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from okforest import OKTree
    >>> from okforest.inspection import prototypes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> tree = OKTree(min_samples_leaf=2, random_state=0).fit(X, y)
    >>> rows, weights = prototypes(tree, X[:2], k=3)
    >>> rows
    array([[  0, 437,  -1],
           [  1,  84,  -1]])
    >>> weights
    array([[0.5, 0.5, 0. ],
           [0.5, 0.5, 0. ]])
    """
    if not isinstance(model, Averager):
        raise TypeError(
            f"model is a {type(model).__name__}; expected a fitted model of okforest. "
            "Of a pipeline or a search, pass the model inside: pipeline[-1], "
            "search.best_estimator_."
        )
    if not isinstance(k, Integral) or k < 1:
        raise ValueError(f"k={k!r}; use a positive integer.")
    W = model.predict_weights(X)
    n = W.shape[0]
    row = np.repeat(np.arange(n), np.diff(W.indptr))
    order = np.lexsort((W.indices, -W.data, row))
    rank = np.arange(len(order)) - W.indptr[row]  # the sort keeps each row's entries together
    kept = rank < k
    place = row[kept], rank[kept]
    rows = np.full((n, k), -1, dtype=np.int64)
    weights = np.zeros((n, k))
    rows[place] = W.indices[order[kept]]
    weights[place] = W.data[order[kept]]
    return rows, weights
