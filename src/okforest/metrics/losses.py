"""How far predictions are from the true outputs, measured in a kernel's feature space H."""

from typing import Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_consistent_length

from okforest._utils.arrays import Floats, Outputs, check_sparse, to_host
from okforest._utils.compat import check_sample_weight
from okforest._utils.distinct import check_same_type
from okforest._utils.errors import warn
from okforest.kernels import OutputKernel, as_kernel
from okforest.weights import Span, WeightMatrix


def check_score_weight(sample_weight: Any, outputs: Outputs) -> Floats:
    """Return a non-negative weight for each output, 1 by default, the largest between 1/2 and 1.

    Sums of weighted losses then neither overflow nor vanish. The weights are divided by a power of
    two, which does not round them.
    """
    weight = check_sample_weight(sample_weight, outputs, ensure_non_negative=True)
    _, exponent = np.frexp(weight.max(initial=0.0))
    scaled: Floats = np.ldexp(weight, -exponent)
    return scaled


def kernel_loss(
    model: Any, X: Any, y: Any, sample_weight: Any = None, *, kernel: Any = None
) -> float:
    """Return the mean squared distance ‖φ(y) − F(x)‖² between predictions and true outputs.

    A model predicts F(x), a weighted sum of the training outputs' features. The loss compares it
    with the features φ(y) of the true output directly, without decoding an output.

    Parameters
    ----------
    model : estimator
        A fitted model of okforest, or a pipeline that ends with one.
    X : array-like of shape (n, p)
        Inputs.
    y : array-like
        Their true outputs, as accepted by the kernel.
    sample_weight : array-like of shape (n,), optional
        Weights of the mean.
    kernel : OutputKernel, str or callable, optional
        The kernel in whose feature space the loss is measured; by default the kernel of the
        model. Use the same kernel to compare models that have different ones.

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
    span, W, outputs, weight = _predicted(model, X, y, sample_weight, kernel)
    return float(np.average(span.losses(W, outputs), weights=weight))


def kernel_loss_samples(model: Any, X: Any, y: Any, *, kernel: Any = None) -> Floats:
    """Return the squared distance ‖φ(y) − F(x)‖² between prediction and true output of every row.

    :func:`kernel_loss` is the mean. Rows of large losses are those that the model does not explain.

    Parameters
    ----------
    model : estimator
        A fitted model of okforest, or a pipeline that ends with one.
    X : array-like of shape (n, p)
        Inputs.
    y : array-like
        Their true outputs, as accepted by the kernel.
    kernel : OutputKernel, str or callable, optional
        The kernel in whose feature space losses are measured; by default the kernel of the model.

    Returns
    -------
    losses : ndarray of shape (n,)
        One loss for each row.

    Examples
    --------
    >>> from okforest import OKTree
    >>> from okforest.metrics import kernel_loss_samples
    >>> tree = OKTree().fit([[0.0], [1.0]], [1.0, 5.0])
    >>> kernel_loss_samples(tree, [[0.0], [1.0]], [1.0, 7.0])
    array([0., 4.])
    """
    span, W, outputs, _ = _predicted(model, X, y, None, kernel)
    return span.losses(W, outputs)


def kernel_r2(
    model: Any, X: Any, y: Any, sample_weight: Any = None, *, kernel: Any = None
) -> float:
    """Return the kernel R², 1 − Σ‖φ(y) − F(x)‖² / Σ‖φ(y) − φ̄‖².

    φ̄ is the mean of φ over the given outputs. For the linear kernel it equals
    :func:`sklearn.metrics.r2_score` with ``multioutput="variance_weighted"``.

    Parameters
    ----------
    model : estimator
        A fitted model of okforest, or a pipeline that ends with one.
    X : array-like of shape (n, p)
        Inputs.
    y : array-like
        Their true outputs, as accepted by the kernel.
    sample_weight : array-like of shape (n,), optional
        Weights of the sums.
    kernel : OutputKernel, str or callable, optional
        The kernel in whose feature space the score is measured; by default the kernel of the
        model. Use the same kernel to compare models that have different ones.

    Returns
    -------
    score : float
        1 for perfect predictions, 0 for predicting the mean of y.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from okforest import OKTree
    >>> from okforest.metrics import kernel_r2
    >>> X, y = load_diabetes(return_X_y=True)
    >>> kernel_r2(OKTree(random_state=0).fit(X, y), X, y)
    1.0
    """
    return weights_r2(*_predicted(model, X, y, sample_weight, kernel))


def weights_r2(span: Span, W: WeightMatrix, outputs: Outputs, sample_weight: Floats) -> float:
    """Return the kernel R² of predictions given by their weights, for outputs in canonical form."""
    return loss_r2(span.kernel, span.losses(W, outputs), outputs, sample_weight)


def loss_r2(kernel: OutputKernel, losses: Floats, outputs: Outputs, sample_weight: Floats) -> float:
    """Return the kernel R² of predictions with these losses in H."""
    if len(outputs) < 2:
        warn("R² needs at least two outputs.", UndefinedMetricWarning)
        return float("nan")
    weight = sample_weight
    spread = Span(kernel.resolve(outputs), outputs).spread(weight)
    loss = weight @ losses
    square = weight @ kernel.diag(outputs)
    if spread <= 1e-28 * square:  # constant outputs, up to the rounding of their mean
        return 1.0 if loss <= 1e-13 * square else 0.0
    return float(1.0 - loss / spread)


def output_loss(kernel: Any, y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
    """Return the mean squared distance ‖φ(y) − φ(ŷ)‖² between true and predicted outputs.

    Parameters
    ----------
    kernel : OutputKernel, str or callable
        The kernel. If it has a parameter that is learnt, such as ``sigma="median"``, pass the
        kernel of a fitted model (``model.kernel_``).
    y_true, y_pred : array-like
        True and predicted outputs, as accepted by the kernel.
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
    losses = output_loss_samples(kernel, y_true, y_pred)
    weight = check_score_weight(sample_weight, losses)
    return float(np.average(losses, weights=weight))


def output_loss_samples(kernel: Any, y_true: Any, y_pred: Any) -> Floats:
    """Return the squared distance ‖φ(y) − φ(ŷ)‖² of every pair of a true and a predicted output.

    :func:`output_loss` is the mean.

    Parameters
    ----------
    kernel : OutputKernel, str or callable
        The kernel. If it has a parameter that is learnt, such as ``sigma="median"``, pass the
        kernel of a fitted model (``model.kernel_``).
    y_true, y_pred : array-like
        True and predicted outputs, as accepted by the kernel.

    Returns
    -------
    losses : ndarray of shape (n,)
        One loss for each pair.

    Examples
    --------
    >>> from okforest.metrics import output_loss_samples
    >>> output_loss_samples("dirac", ["a", "b"], ["a", "c"])
    array([0., 2.])
    """
    kernel = as_kernel(kernel)
    true, predicted = kernel.check(y_true), kernel.check(y_pred)
    check_consistent_length(true, predicted)
    check_same_type(predicted, true, "y_pred")
    losses = kernel.diag(true) + kernel.diag(predicted) - 2.0 * kernel.pairs(true, predicted)
    return np.maximum(losses, 0.0)


def unwrap(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the model within pipelines and fitted searches, and X as it takes it."""
    check_sparse(X, "X")
    while isinstance(model, Pipeline) or hasattr(model, "best_estimator_"):
        if isinstance(model, Pipeline):
            X = model[:-1].transform(X) if len(model) > 1 else X
            model = model[-1]
        else:
            model = model.best_estimator_
    return model, X


def span_in(kernel: Any, model: Any) -> Span:
    """Return the training outputs of a model in the feature space of a kernel, None for its own."""
    span: Span = model.span_
    if kernel is None:
        return span
    kernel = as_kernel(kernel)
    outputs = kernel.check(span.outputs)
    return Span(kernel.resolve(outputs), outputs)


def check_truth(span: Span, X: Any, y: Any) -> Outputs:
    """Return true outputs in canonical form, checked against X and the training outputs."""
    outputs = to_host(span.kernel.check(y))
    check_consistent_length(X, outputs)
    check_same_type(outputs, span.outputs, "y")
    return outputs


def _predicted(
    model: Any, X: Any, y: Any, sample_weight: Any, kernel: Any
) -> tuple[Span, WeightMatrix, Outputs, Floats]:
    """Return the predictions for X in a kernel's feature space, the true outputs, their weights."""
    model, X = unwrap(model, X)
    span = span_in(kernel, model)
    outputs = check_truth(span, X, y)
    weight = check_score_weight(sample_weight, outputs)
    return span, model.weight_matrix(X), outputs, weight


def kernel_alignment(K: Any, L: Any) -> float:
    """Return the centred alignment of two Gram matrices: the cosine of the angle between them.

    Of two output kernels, the one that is better aligned with a kernel of the inputs is easier to
    learn from them. This needs no fit and no decoding, and is a filter for many kernels; it does
    not see what a loss of your own would, so choose between the best by cross-validation.

    Parameters
    ----------
    K, L : array-like of shape (n, n)
        Gram matrices of two kernels on the same n rows.

    Returns
    -------
    alignment : float
        ⟨K, L⟩ / (‖K‖ ‖L‖) of the centred matrices: 1 if one is a multiple of the other, 0 if they
        have nothing in common; 0 also for the kernel of a constant.

    References
    ----------
    C. Cortes, M. Mohri, A. Rostamizadeh, "Algorithms for learning kernels based on centered
    alignment", JMLR 13, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import RBF, Dirac
    >>> from okforest.metrics import kernel_alignment
    >>> x = np.array([0.0, 0.1, 5.0, 5.1])
    >>> round(kernel_alignment(RBF(1.0)(x), Dirac()(np.array(["a", "a", "b", "b"]))), 3)
    1.0
    >>> abs(kernel_alignment(RBF(1.0)(x), Dirac()(np.array(["a", "b", "a", "b"])))) < 0.01
    True
    """
    first, second = _centred(K, "K"), _centred(L, "L")
    if first.shape != second.shape:
        raise ValueError(
            f"K has shape {first.shape} and L {second.shape}; pass the Gram matrices of two "
            "kernels on the same rows."
        )
    norms = np.linalg.norm(first) * np.linalg.norm(second)
    return float(np.vdot(first, second) / norms) if norms > 0 else 0.0


def _centred(K: Any, name: str) -> Floats:
    matrix: Floats = np.asarray(K, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"{name} has shape {matrix.shape}; a Gram matrix is square.")
    means = matrix.mean(axis=0)
    centred = matrix - means - matrix.mean(axis=1)[:, None] + means.mean()
    # The rounding errors of a constant are not a kernel.
    size = np.abs(matrix).max() * len(matrix)
    return centred if np.linalg.norm(centred) > 1e-13 * size else np.zeros_like(centred)
