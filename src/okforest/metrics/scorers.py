"""Scorers, for ``scoring=`` in scikit-learn's searches and cross-validation: greater is better."""

from typing import Any

from okforest.metrics.losses import kernel_loss, kernel_r2, output_loss, unwrap


def kernel_r2_scorer(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Score by the kernel R² (the default ``score`` of every model).

    Parameters
    ----------
    model : estimator
        A fitted model of okforest, or a pipeline that ends with one.
    X, y : array-like
        Inputs and their true outputs.
    sample_weight : array-like, optional
        Weights.

    Returns
    -------
    score : float
        The kernel R².
    """
    return kernel_r2(model, X, y, sample_weight)


def kernel_loss_scorer(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Score by minus the mean loss in H, without pre-images.

    Parameters
    ----------
    model : estimator
        A fitted model of okforest, or a pipeline that ends with one.
    X, y : array-like
        Inputs and their true outputs.
    sample_weight : array-like, optional
        Weights.

    Returns
    -------
    score : float
        Minus the loss.
    """
    return -kernel_loss(model, X, y, sample_weight)


def output_loss_scorer(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Score by minus the mean loss in H of the predicted outputs.

    Parameters
    ----------
    model : estimator
        A fitted model of okforest, or a pipeline that ends with one.
    X, y : array-like
        Inputs and their true outputs.
    sample_weight : array-like, optional
        Weights.

    Returns
    -------
    score : float
        Minus the loss.
    """
    model, X = unwrap(model, X)
    return -output_loss(model.kernel_, y, model.predict(X), sample_weight)
