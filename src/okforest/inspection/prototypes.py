"""The training outputs with the largest weights in a prediction."""

from typing import Any

import numpy as np
import numpy.typing as npt

from okforest._utils.arrays import Floats
from okforest._utils.parameters import as_integer
from okforest.inspection.requirements import require_model


def prototypes(model: Any, X: Any, k: int = 5) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the training outputs with the largest weights in each prediction.

    A prediction is a weighted sum of training outputs in the kernel's feature space. Weights of
    trees and forests are not negative. Those of OKBoost and OKRidge may be: they are ranked by
    their signed value, from the largest to the most negative, so that the first rows are those that
    the prediction is drawn towards.

    Parameters
    ----------
    model : estimator
        A fitted model of okforest; one fitted without y has weights, too.
    X : array-like of shape (n, p)
        Inputs.
    k : int, default=5
        Number of training outputs for each input.

    Returns
    -------
    rows : ndarray of shape (n, k)
        The training rows with the largest weights, in descending order; ties go to the first
        row. If fewer than k rows have a nonzero weight, the rest is -1. Where ``rows >= 0``,
        ``model.outputs_[rows]`` are the outputs.
    weights : ndarray of shape (n, k)
        Their weights in the prediction; 0 where the row is -1.

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
    require_model(model)
    k = as_integer("k", k, 1)
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
