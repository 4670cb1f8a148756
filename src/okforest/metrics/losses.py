"""How far predictions are from the truth, measured in the kernel's feature space H."""

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_consistent_length

from okforest._compat import check_sample_weight
from okforest._typing import Floats, Outputs, WeightMatrix
from okforest.embedding import Span, check_alike
from okforest.kernels import OutputKernel, as_kernel


def kernel_loss(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return the mean loss in H, ‖φ(y) − F(x)‖², which needs no pre-image.

    Parameters
    ----------
    model : estimator
        A fitted model of okforest, or a pipeline that ends with one.
    X : array-like of shape (n, p)
        Inputs.
    y : array-like
        Their true outputs, of the kernel's kind.
    sample_weight : array-like of shape (n,), optional
        Weights of the mean.

    Returns
    -------
    loss : float
        The mean loss.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from okforest import OKTree
    >>> from okforest.metrics import kernel_loss
    >>> X, y = load_diabetes(return_X_y=True)
    >>> kernel_loss(OKTree(random_state=0).fit(X, y), X, y)
    0.0
    """
    span, W, outputs, weight = _predicted(model, X, y, sample_weight)
    return float(np.average(span.losses(W, outputs), weights=weight))


def kernel_r2(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return the kernel R², 1 − Σ‖φ(y) − F(x)‖² / Σ‖φ(y) − φ̄‖².

    φ̄ is the mean of the given outputs, as in :func:`sklearn.metrics.r2_score`, to which it is equal
    for the linear kernel (with ``multioutput="variance_weighted"``).

    Parameters
    ----------
    model : estimator
        A fitted model of okforest, or a pipeline that ends with one.
    X : array-like of shape (n, p)
        Inputs.
    y : array-like
        Their true outputs, of the kernel's kind.
    sample_weight : array-like of shape (n,), optional
        Weights of the sums.

    Returns
    -------
    score : float
        1 for perfect predictions, 0 for the mean of y.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from okforest import OKTree
    >>> from okforest.metrics import kernel_r2
    >>> X, y = load_diabetes(return_X_y=True)
    >>> kernel_r2(OKTree(random_state=0).fit(X, y), X, y)
    1.0
    """
    return weights_r2(*_predicted(model, X, y, sample_weight))


def weights_r2(span: Span, W: WeightMatrix, outputs: Outputs, sample_weight: Floats) -> float:
    """Return the kernel R² of predictions given by their weights; outputs are canonical."""
    return loss_r2(span.kernel, span.losses(W, outputs), outputs, sample_weight)


def loss_r2(kernel: OutputKernel, losses: Floats, outputs: Outputs, sample_weight: Floats) -> float:
    """Return the kernel R² of predictions with these losses in H."""
    if len(outputs) < 2:
        warnings.warn("R² needs at least two outputs.", UndefinedMetricWarning, stacklevel=2)
        return float("nan")
    weight = sample_weight
    spread = Span(kernel.resolve(outputs), outputs).spread(weight)
    loss = weight @ losses
    if spread == 0.0:  # constant outputs: predicted, up to rounding, or not
        return 1.0 if loss <= 1e-13 * (weight @ kernel.diag(outputs)) else 0.0
    return float(1.0 - loss / spread)


def output_loss(kernel: Any, y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
    """Return the mean loss of predicted outputs in H, ‖φ(y) − φ(ŷ)‖².

    Parameters
    ----------
    kernel : OutputKernel, str or callable
        The kernel; one with a parameter that is learnt, such as ``sigma="median"``, must be taken
        from a fitted model (``model.kernel_``).
    y_true, y_pred : array-like
        True and predicted outputs, of the kernel's kind.
    sample_weight : array-like of shape (n,), optional
        Weights of the mean.

    Returns
    -------
    loss : float
        The mean loss.

    Examples
    --------
    >>> from okforest.metrics import output_loss
    >>> output_loss("dirac", ["a", "b"], ["a", "c"])
    1.0
    """
    kernel = as_kernel(kernel)
    true, predicted = kernel.check(y_true), kernel.check(y_pred)
    check_consistent_length(true, predicted)
    check_alike(predicted, true, "y_pred")
    weight = check_sample_weight(sample_weight, true, ensure_non_negative=True)
    losses = kernel.diag(true) + kernel.diag(predicted) - 2.0 * kernel.pairs(true, predicted)
    return float(np.average(np.maximum(losses, 0.0), weights=weight))


def unwrap(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the model at the end of a pipeline, and X as it gets there."""
    while isinstance(model, Pipeline):
        X = model[:-1].transform(X) if len(model) > 1 else X
        model = model[-1]
    return model, X


def check_truth(span: Span, X: Any, y: Any) -> Outputs:
    """Return the true outputs of X's rows in canonical form; they are like those of training."""
    outputs = span.kernel.check(y)
    check_consistent_length(X, outputs)
    check_alike(outputs, span.outputs, "y")
    return outputs


def _predicted(
    model: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[Span, WeightMatrix, Outputs, Floats]:
    """Return what a model predicts for X, beside the true outputs and their weights."""
    model, X = unwrap(model, X)
    span = model.span_
    outputs = check_truth(span, X, y)
    weight = check_sample_weight(sample_weight, outputs, ensure_non_negative=True)
    return span, model._weights(X), outputs, weight
