"""Variance, probabilities and entropy of the predicted distribution over outputs and labels."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.resources import check_memory
from okforest.decode.label_sets import label_set_kernel
from okforest.decode.label_sets import marginals as weighted_labels
from okforest.kernels import Dirac
from okforest.kernels.outputs import array_of_objects
from okforest.uncertainty.predictions import Predictions, moments, predictions


class OutputProbabilities(NamedTuple):
    """Probabilities of outputs.

    Parameters
    ----------
    outputs : ndarray of m outputs
        The different training outputs, or classes in sorted order.
    values : ndarray of shape (n, m)
        Their probabilities, one row per prediction.

    Examples
    --------
    >>> from okforest import OKTree
    >>> from okforest.uncertainty import probabilities
    >>> tree = OKTree(kernel="dirac").fit([[0]] * 4, ["a", "b", "b", "b"])
    >>> outputs, values = probabilities(tree, [[0]])
    >>> outputs, values
    (array(['a', 'b'], dtype='<U1'), array([[0.25, 0.75]]))
    """

    outputs: Outputs
    values: Floats


def variance(model: Any, X: Any) -> Floats:
    """Return the variance of the predicted distribution in feature space.

    It is Σ_i w_i ‖φ(y_i) − F(x)‖², how far the outputs that support a prediction F(x) are from it;
    it needs a kernel only. For numbers and the linear kernel it is their variance, for the Dirac
    kernel the Gini index.

    Parameters
    ----------
    model : estimator
        A fitted model of okforest, or a pipeline that ends with one.
    X : array-like of shape (n, p)
        Inputs.

    Returns
    -------
    variance : ndarray of shape (n,)
        The variances.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest import OKTree
    >>> from okforest.uncertainty import variance
    >>> tree = OKTree(max_depth=1).fit([[0.0], [0.1], [5.0], [5.1]], [1.0, 1.0, 7.0, 9.0])
    >>> variance(tree, [[0.0], [5.0]])
    array([0., 1.])
    """
    return spread_of(predictions(model, X))


def probabilities(model: Any, X: Any) -> OutputProbabilities:
    """Return the probabilities of outputs: the total weight of the training outputs equal to each.

    For classes (the Dirac kernel) these are class probabilities; for label sets, rankings or
    strings, probabilities of those that occur in the training set.

    Parameters
    ----------
    model : estimator
        A fitted model of okforest, or a pipeline that ends with one.
    X : array-like of shape (n, p)
        Inputs.

    Returns
    -------
    probabilities : OutputProbabilities
        ``outputs``, the different training outputs, and ``values`` of shape (n, m).

    Examples
    --------
    >>> from okforest import OKTree
    >>> from okforest.uncertainty import probabilities
    >>> tree = OKTree(kernel="dirac").fit([[0.0]] * 3, ["a", "b", "b"])
    >>> outputs, values = probabilities(tree, [[0.0]])
    >>> dict(zip(outputs.tolist(), values[0].round(3).tolist()))
    {'a': 0.333, 'b': 0.667}
    """
    predicted = predictions(model, X)
    votes = _votes(predicted)
    outputs = predicted.span.training.outputs
    check_memory(
        8 * votes.shape[0] * votes.shape[1],
        f"the matrix of probabilities of {votes.shape[1]} outputs",
        "Predict fewer rows at a time.",
    )
    values: Floats = votes.toarray() if sp.issparse(votes) else np.asarray(votes)
    if isinstance(predicted.span.kernel, Dirac):
        order = np.argsort(outputs, kind="stable")
        outputs, values = outputs[order], values[:, order]
    outputs = predicted.span.kernel.as_given(outputs)
    values = np.maximum(values, 0.0)
    totals = values.sum(axis=1, keepdims=True)
    certain = totals > 0
    shares = np.divide(values, totals, out=np.full_like(values, 1 / len(outputs)), where=certain)
    return OutputProbabilities(outputs, shares)


def entropy(model: Any, X: Any) -> Floats:
    """Return the entropy −Σ p log p of the predicted probabilities of outputs, in nats.

    It is 0 for a prediction that all its weights agree on, and log m for m equally probable
    outputs. If every training output is different, as numbers often are, use :func:`variance`.

    Parameters
    ----------
    model : estimator
        A fitted model of okforest, or a pipeline that ends with one.
    X : array-like of shape (n, p)
        Inputs.

    Returns
    -------
    entropy : ndarray of shape (n,)
        The entropies.

    Examples
    --------
    >>> from okforest import OKTree
    >>> from okforest.uncertainty import entropy
    >>> tree = OKTree(kernel="dirac").fit([[0.0]] * 2, ["a", "b"])
    >>> entropy(tree, [[0.0]]).round(3)
    array([0.693])
    """
    votes = sp.csr_array(_votes(predictions(model, X)))
    rows = np.repeat(np.arange(votes.shape[0]), np.diff(votes.indptr))
    values = np.maximum(votes.data, 0.0)
    totals = np.bincount(rows, values, minlength=votes.shape[0])
    shares = values / np.where(totals > 0, totals, 1.0)[rows]
    logs = np.log(np.where(shares > 0, shares, 1.0))
    entropies = np.bincount(rows, -shares * logs, minlength=votes.shape[0])
    return np.where(totals > 0, np.abs(entropies), np.log(votes.shape[1]))


def spread_of(predicted: Predictions) -> Floats:
    """Return the variance of predicted distributions in feature space."""
    span, W = predicted
    if span.features is not None:
        return moments(W, span.features)[1].sum(axis=1)
    squares = span.training.squares[span.training.group]
    total = W @ np.ones(len(squares))
    return np.maximum(W @ squares + (total - 2.0) * span.squared_norms(W), 0.0)


def _votes(predicted: Predictions) -> sp.csr_array | Floats:
    """Return the total weight of each of the different training outputs."""
    span, W = predicted
    training = span.training
    if isinstance(span.kernel, Dirac) and span.features is not None:
        # Features indicate the classes, and some models know their sums without weights.
        return W.feature_sums(span) @ span.kernel.features(training.outputs).T
    return merged(W.tocsr(), training.group, len(training))


def merged(W: sp.csr_array, columns: Any, n_columns: int) -> sp.csr_array:
    """Return weights with column i moved to ``columns[i]``, and those of equal places added."""
    moved = sp.csr_array((W.data, columns[W.indices], W.indptr), shape=(W.shape[0], n_columns))
    moved.sum_duplicates()
    return moved


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
