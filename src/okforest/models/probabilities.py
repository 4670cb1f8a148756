"""What models of classes and of label sets predict: probabilities; and the accuracy of classes."""

from typing import Any

import numpy as np

from okforest._utils.arrays import Floats, Outputs, like, to_host
from okforest._utils.errors import available_if
from okforest.decode.label_sets import marginals
from okforest.kernels import Dirac, LabelSetKernel, as_kernel
from okforest.kernels.outputs import array_of_objects


def has_classes(model: Any) -> bool:
    """Return whether the outputs of a model are classes: whether its kernel is the Dirac kernel."""
    return isinstance(_kernel(model), Dirac)


def accuracy(true: Outputs, predicted: Any, sample_weight: Floats) -> float:
    """Return the weighted fraction of rows whose class is predicted."""
    return float(np.average(to_host(predicted) == true, weights=sample_weight))


def has_numbers(model: Any) -> bool:
    """Return whether the outputs of a model are numbers or vectors of numbers."""
    kernel = _kernel(model)
    return kernel is not None and kernel.numeric


def _kernel(model: Any) -> Any:
    try:
        return as_kernel(model.kernel)
    except ValueError:  # fit raises an error that explains it
        return None


def _predicts_probabilities(model: Any) -> None:
    if not isinstance(_kernel(model), Dirac | LabelSetKernel):
        raise AttributeError(
            f"{type(model).__name__} has no predict_proba with kernel={model.kernel!r}; it "
            "predicts probabilities of classes, with kernel='dirac', and of labels, with a kernel "
            "on label sets such as 'hamming'."
        )


class _Classes:
    """The classes that the fitted kernel knows; a model may store classes of its own instead."""

    def __get__(self, model: Any, owner: type | None = None) -> Outputs:
        kernel = None if model is None else model.__dict__.get("kernel_")
        if isinstance(kernel, Dirac) and kernel.classes is not None:
            return kernel.classes
        if isinstance(kernel, LabelSetKernel):
            return array_of_objects(list(kernel.labels or []))
        raise AttributeError("there are no classes_: the model is not fitted, or has no classes.")


class ProbabilityMixin:
    """Methods of every model, available if its outputs are classes or label sets."""

    @available_if(_predicts_probabilities)
    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of classes, or of the labels of a set.

        They are the total weights of the training outputs of a class, or with a label. Weights of
        boosting and ridge regression may be negative: probabilities are then clipped at zero, and
        those of classes are divided by their sum.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.

        Returns
        -------
        P : ndarray of shape (n, n_classes)
            One column for each of ``classes_``. Probabilities of classes sum to one; each label of
            a set has a probability of its own.
        """
        span, W = self.span_, self._checked_weights(X)  # type: ignore[attr-defined]
        if not isinstance(span.kernel, Dirac):
            return like(np.clip(marginals(W, span), 0.0, 1.0), X)
        if span.features is not None:  # features indicate the classes
            P = W.feature_sums(span)
        else:
            P = W @ span.kernel.features(span.outputs)
        P = np.maximum(P, 0.0)
        total = P.sum(axis=1, keepdims=True)
        P = np.divide(P, total, out=np.full_like(P, 1.0 / P.shape[1]), where=total > 0)
        return like(P, X)

    #: The classes, sorted, with the Dirac kernel; the labels, with a kernel on label sets.
    classes_ = _Classes()
