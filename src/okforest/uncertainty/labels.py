"""Marginal probabilities of the labels in predicted sets."""

from typing import Any, NamedTuple

import numpy as np

from okforest._typing import Floats, Outputs
from okforest.uncertainty._predictions import predictions


class LabelProbabilities(NamedTuple):
    """Marginal probabilities of labels.

    Parameters
    ----------
    labels : ndarray of shape (q,)
        The labels: positions of the columns of an indicator matrix, or members of the sets.
    values : ndarray of shape (n, q)
        The probability that the set of a row contains each label.
    """

    labels: Outputs
    values: Floats


def marginals(model: Any, X: Any) -> LabelProbabilities:
    """Return the probability of each label: the total weight of the training sets that contain it.

    Parameters
    ----------
    model : estimator
        A fitted model of okforest, or a pipeline that ends with one. Its outputs are indicator
        matrices of 0 and 1, or sets.
    X : array-like of shape (n, p)
        Inputs.

    Returns
    -------
    probabilities : LabelProbabilities
        ``labels``, and ``values`` of shape (n, q).

    Examples
    --------
    >>> from okforest import OKTree
    >>> from okforest.uncertainty import marginals
    >>> tree = OKTree().fit([[0.0]] * 4, [[1, 0], [1, 1], [1, 0], [0, 0]])
    >>> marginals(tree, [[0.0]]).values
    array([[0.75, 0.25]])
    """
    span, W = predictions(model, X)
    labels, indicators = _indicators(span.outputs)
    return LabelProbabilities(labels, np.clip(W @ indicators, 0.0, 1.0))


def _indicators(outputs: Outputs) -> tuple[Outputs, Floats]:
    if outputs.dtype.kind == "O" and all(isinstance(y, set | frozenset) for y in outputs):
        labels = sorted(frozenset().union(*outputs))
        place = {label: j for j, label in enumerate(labels)}
        indicators = np.zeros((len(outputs), len(labels)))
        for i, output in enumerate(outputs):
            indicators[i, [place[label] for label in output]] = 1.0
        return np.array(labels), indicators
    if outputs.ndim == 2 and outputs.dtype.kind in "biuf" and np.isin(outputs, (0, 1)).all():
        return np.arange(outputs.shape[1]), outputs.astype(np.float64)
    raise ValueError(
        "marginals are of labels in sets: outputs must be an indicator matrix of 0 and 1 with a "
        "column for each label, or sets. For other outputs, use probabilities."
    )
