"""Quantiles, intervals and bands of the predicted distribution, for numbers and vectors."""

from typing import Any

import numpy as np

from okforest._utils.arrays import Floats
from okforest.uncertainty.predictions import Predictions, check_coverage, predictions

ROUNDING = 1e-12  # sums of weights may miss a level by this


def quantiles(model: Any, X: Any, levels: Any = 0.5) -> Floats:
    """Return quantiles of the predicted distribution: for forests, quantile regression forests.

    The quantile of level q is the smallest training output up to which the weights of the outputs
    sum to at least the share q of the total. With negative weights the sum may fall; where it does,
    its largest value so far counts. If no sum is positive, all training outputs count alike.
    Vectors have a quantile in each coordinate.

    Parameters
    ----------
    model : estimator
        A fitted model of okforest on numbers or vectors, or a pipeline that ends with one.
    X : array-like of shape (n, p)
        Inputs.
    levels : float or array-like of shape (m,), default=0.5
        Levels between 0 and 1.

    Returns
    -------
    quantiles : ndarray
        Of shape (n,) or (n, m) for numbers, (n, q) or (n, q, m) for vectors.

    References
    ----------
    N. Meinshausen, "Quantile regression forests", JMLR 7, 2006.

    Examples
    --------
    >>> from okforest import OKTree
    >>> from okforest.uncertainty import quantiles
    >>> tree = OKTree().fit([[0.0]] * 5, [1.0, 2.0, 3.0, 4.0, 90.0])
    >>> quantiles(tree, [[0.0]], [0.1, 0.5, 0.9])
    array([[ 1.,  3., 90.]])
    """
    predicted = predictions(model, X)
    values = quantiles_of(predicted, np.atleast_1d(_check_levels(levels)))
    if predicted.span.outputs.ndim == 1:
        values = values[:, 0]
    return values[..., 0] if np.ndim(levels) == 0 else values


def intervals(model: Any, X: Any, coverage: float = 0.9) -> Floats:
    """Return the central intervals of the predicted distribution, between two quantiles.

    They contain a share ``coverage`` of the weights. Whether they contain that share of the true
    outputs depends on the model; :class:`ConformalIntervals` makes sure of it.

    Parameters
    ----------
    model : estimator
        A fitted model of okforest on numbers or vectors, or a pipeline that ends with one.
    X : array-like of shape (n, p)
        Inputs.
    coverage : float, default=0.9
        The share of the weights.

    Returns
    -------
    intervals : ndarray of shape (n, 2), or (n, q, 2) for vectors
        Lower and upper bounds; those of each coordinate of a vector alone.

    Examples
    --------
    >>> from okforest import OKTree
    >>> from okforest.uncertainty import intervals
    >>> tree = OKTree().fit([[0.0]] * 5, [1.0, 2.0, 3.0, 4.0, 90.0])
    >>> intervals(tree, [[0.0]], coverage=0.6)
    array([[1., 4.]])
    """
    coverage = check_coverage(coverage)
    return quantiles(model, X, [(1 - coverage) / 2, (1 + coverage) / 2])


def bands(model: Any, X: Any, coverage: float = 0.9) -> Floats:
    """Return bands that contain whole curves: a share ``coverage`` of the weights.

    A band is the mean curve plus and minus a multiple of the standard deviation at each place, and
    the multiple is the smallest for which the curves within it have the given share of the weights.

    Parameters
    ----------
    model : estimator
        A fitted model of okforest on vectors, or a pipeline that ends with one.
    X : array-like of shape (n, p)
        Inputs.
    coverage : float, default=0.9
        The share of the weights.

    Returns
    -------
    bands : ndarray of shape (n, q, 2)
        Lower and upper curves.

    See Also
    --------
    intervals : Bounds of each coordinate alone, which are narrower.
    ConformalIntervals : Bands that contain a share of the true curves.

    Examples
    --------
    >>> from okforest import OKTree
    >>> from okforest.uncertainty import bands
    >>> tree = OKTree().fit([[0.0]] * 2, [[1.0, 2.0], [3.0, 2.0]])
    >>> bands(tree, [[0.0]]).tolist()
    [[[1.0, 3.0], [2.0, 2.0]]]
    """
    coverage = check_coverage(coverage)
    predicted = predictions(model, X)
    curves = predicted.vectors()
    if predicted.span.outputs.ndim == 1:
        raise ValueError(
            "bands are for curves, outputs of shape (n, q); for numbers use intervals."
        )
    origin = curves.mean(axis=0)
    curves = curves - origin  # so that no digits are lost to a large mean
    W = predicted.W.tocsr()
    result = np.empty((W.shape[0], curves.shape[1], 2))
    for i in range(W.shape[0]):
        own = slice(W.indptr[i], W.indptr[i + 1])
        weights, support = np.maximum(W.data[own], 0.0), curves[W.indices[own]]
        if not weights.sum() > 0:
            weights, support = np.ones(len(curves)), curves
        weights = weights / weights.sum()
        mean = weights @ support
        errors = np.abs(support - mean)
        deviation = np.sqrt(weights @ errors**2)
        varies = deviation > ROUNDING * np.abs(support).max(axis=0)
        ratios = np.divide(errors, deviation, out=np.zeros_like(errors), where=varies)
        largest = ratios.max(axis=1)
        order = np.argsort(largest)
        place = int(np.searchsorted(np.cumsum(weights[order]), coverage - ROUNDING))
        margin = largest[order[min(place, len(order) - 1)]] * deviation
        result[i] = np.stack([mean - margin, mean + margin], axis=1)
    return result + origin[:, None]


def quantiles_of(predicted: Predictions, levels: Floats) -> Floats:
    """Return quantiles of every coordinate, of shape (n, q, m)."""
    vectors = predicted.vectors()
    n, n_train = predicted.W.shape
    result = np.empty((n, vectors.shape[1], len(levels)))
    orders = np.argsort(vectors, axis=0, kind="stable")
    for rows in predicted.span.blocks(n, 4 * n_train):
        entries: Any = predicted.W[rows].entries()
        dense = entries if isinstance(entries, np.ndarray) else entries.toarray()
        for j, order in enumerate(orders.T):
            # Negative weights may make the sums fall; the distribution is made to rise.
            sums = np.maximum.accumulate(np.cumsum(dense[:, order], axis=1), axis=1)
            unknown = sums[:, -1] <= 0  # nothing supports the prediction: all outputs alike
            sums[unknown] = np.arange(1.0, n_train + 1)
            sums = sums / sums[:, -1:]
            for k, level in enumerate(levels):
                place = (sums >= level - ROUNDING).argmax(axis=1)
                result[rows, j, k] = vectors[order[place], j]
    return result


def _check_levels(levels: Any) -> Floats:
    values = np.asarray(levels, dtype=np.float64)
    if values.ndim > 1 or not values.size or not ((values > 0) & (values < 1)).all():
        raise ValueError(f"levels={levels!r}; use numbers between 0 and 1, such as 0.5.")
    return values
