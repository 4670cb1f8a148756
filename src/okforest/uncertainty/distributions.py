"""The predicted distribution over outputs: variance, probabilities, entropy, quantiles, bands."""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.resources import check_memory
from okforest.decode.label_sets import label_set_kernel
from okforest.decode.label_sets import marginals as weighted_labels
from okforest.engine import quantile_places
from okforest.kernels import Dirac
from okforest.kernels.outputs import array_of_objects
from okforest.metrics.losses import unwrap
from okforest.weights import Span, WeightMatrix, as_weights


class Predictions(NamedTuple):
    """Weights over training outputs, and the span of these."""

    span: Span
    W: WeightMatrix

    def vectors(self) -> Floats:
        """Return the training outputs as vectors, of shape (n_train, q), or raise a ValueError."""
        outputs = self.span.outputs
        if outputs.dtype.kind != "f" or not self.span.kernel.numeric:
            raise ValueError(
                f"quantiles, intervals and bands need numbers or vectors as outputs; the kernel is "
                f"of type {type(self.span.kernel).__name__}. For other outputs, use ConformalSets."
            )
        return outputs.reshape(len(outputs), -1)


def moments(W: WeightMatrix, values: Floats) -> tuple[Floats, Floats]:
    """Return F = Σ_i w_i v_i and Σ_i w_i (v_i − F)², coordinate by coordinate.

    Values are centred first, so that no digits are lost to a large mean. Weights need not sum to
    one.
    """
    origin = values.mean(axis=0)
    centred = values - origin
    total = W @ np.ones((len(values), 1))
    sums = W @ centred
    means = sums + (total - 1.0) * origin  # F, centred
    squares = W @ centred**2 - 2.0 * sums * means + total * means**2
    return means + origin, np.maximum(squares, 0.0)


def spread_around(means: Floats, predicted: Predictions) -> Floats:
    """Return Σ_i |w_i| (v_i − F)² / Σ_i |w_i|, coordinate by coordinate: a scale for errors.

    For non-negative weights of sum one this is the variance. The signed sum Σ_i w_i (v_i − F)² can
    be zero or negative, and is then not a scale. Where a weight is negative, the mean over all
    coordinates is returned for each: these weights reach far beyond similar outputs, and where a
    curve varies among all outputs is not where its prediction errs.
    """
    values = predicted.vectors()
    origin = values.mean(axis=0)
    centred = values - origin
    result = np.empty_like(means)
    for rows in predicted.span.blocks(len(means), 2 * len(values)):
        entries: Any = predicted.W[rows].entries()
        signed = np.asarray((entries < 0).sum(axis=1)).ravel() > 0
        weights = abs(entries)
        total = np.asarray(weights.sum(axis=1)).reshape(-1, 1)
        total[total == 0] = 1.0
        own = means[rows] - origin
        parts = weights @ centred**2 - 2.0 * (weights @ centred) * own
        spread = parts / total + own**2
        spread[signed] = spread[signed].mean(axis=1, keepdims=True)
        result[rows] = spread
    return np.maximum(result, 0.0)


def predictions(model: Any, X: Any) -> Predictions:
    """Return the predictions of a model, or of a pipeline that ends with one."""
    model, X = unwrap(model, X)
    if not hasattr(model, "weight_matrix") or not hasattr(type(model), "span_"):
        raise TypeError(
            f"uncertainty is computed from the weights of a model of okforest, such as "
            f"OKRandomForest; got {type(model).__name__}."
        )
    return Predictions(model.span_, as_weights(model.weight_matrix(X)))


def check_coverage(coverage: Any) -> float:
    """Return a coverage between 0 and 1."""
    if not isinstance(coverage, Real) or not 0 < float(coverage) < 1:
        raise ValueError(f"coverage={coverage!r}; use a number between 0 and 1, such as 0.9.")
    return float(coverage)


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
    span, W = predicted
    vectors = predicted.vectors()
    n, n_train = W.shape
    result = np.empty((n, vectors.shape[1], len(levels)))
    ranks = np.empty(n_train, dtype=np.int32)
    orders = np.argsort(vectors, axis=0, kind="stable").T
    for rows in span.blocks(n, max(1, 2 * W.max_entries // max(1, n))):
        weights, n_threads = W[rows].tocsr(), getattr(W, "n_threads", 1)
        for j, order in enumerate(orders):
            ranks[order] = np.arange(n_train, dtype=np.int32)
            places = quantile_places(weights, ranks, levels - ROUNDING, n_threads)
            result[rows, j] = vectors[order[places], j]
    return result


def _check_levels(levels: Any) -> Floats:
    values = np.asarray(levels, dtype=np.float64)
    if values.ndim > 1 or not values.size or not ((values > 0) & (values < 1)).all():
        raise ValueError(f"levels={levels!r}; use numbers between 0 and 1, such as 0.5.")
    return values
