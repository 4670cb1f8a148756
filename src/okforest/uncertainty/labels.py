"""Marginal probabilities of the labels in predicted sets."""

from typing import Any, NamedTuple

import numpy as np

from okforest._typing import Floats, Outputs
from okforest.decode.label_sets import label_set_kernel
from okforest.decode.label_sets import marginals as weighted_labels
from okforest.kernels._outputs import array_of_objects
from okforest.uncertainty._predictions import predictions


class LabelProbabilities(NamedTuple):
    """Marginal probabilities of labels.

    Parameters
    ----------
    labels : ndarray of shape (q,)
        The labels: positions of the columns of an indicator matrix, or members of the sets.
    values : ndarray of shape (n, q)
        The probability that the set of a row contains each label.

    Examples
    --------
    >>> from okforest import OKTree
    >>> from okforest.uncertainty import marginals
    >>> tree = OKTree(kernel="hamming").fit([[0]] * 4, [{"sea"}, {"sea", "sand"}, {"sea"}, set()])
    >>> labels, values = marginals(tree, [[0]])
    >>> labels, values
    (array(['sand', 'sea'], dtype=object), array([[0.25, 0.75]]))
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
    kernel = label_set_kernel(span)
    if kernel is None:
        raise ValueError(
            "marginals are of labels in sets: outputs must be an indicator matrix of 0 and 1 with "
            "a column for each label, or sets. For other outputs, use probabilities."
        )
    values = np.clip(weighted_labels(W, span), 0.0, 1.0)
    labels = range(values.shape[1]) if kernel.labels is None else kernel.labels
    return LabelProbabilities(array_of_objects(list(labels)), values)
