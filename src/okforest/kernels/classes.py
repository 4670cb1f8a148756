"""Kernels on class labels."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import DataConversionWarning

from okforest._utils.arrays import Floats, Ints, Outputs, like
from okforest._utils.errors import warn
from okforest.kernels.base import OutputKernel
from okforest.kernels.outputs import read_labels


def predict_proba(self: Any, X: Any) -> Floats:
    """Return the probabilities of classes: the total weights of their training outputs.

    Weights of boosting and ridge regression may be negative. They are then clipped at zero, and
    divided by their sum.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Inputs.

    Returns
    -------
    P : ndarray of shape (n, n_classes)
        One column for each of ``classes_``, with sum one.
    """
    span, W = self.span_, self._checked_weights(X)
    if span.features is not None:  # features indicate the classes
        P = W.feature_sums(span)
    else:
        numbers = np.searchsorted(span.kernel.classes, span.training.outputs)
        P = np.zeros((W.shape[0], len(span.kernel.classes)))
        P[:, numbers] = span.sums_of_equal(W)
    P = np.maximum(P, 0.0)
    total = P.sum(axis=1, keepdims=True)
    P = np.divide(P, total, out=np.full_like(P, 1.0 / P.shape[1]), where=total > 0)
    return like(P, X)


def _classes(model: Any) -> Outputs:
    kernel = vars(model).get("kernel_")
    if not isinstance(kernel, Dirac) or kernel.classes is None:
        raise AttributeError("there are no classes_: the model is not fitted with this kernel.")
    return kernel.classes


class Dirac(OutputKernel):
    """1 if two labels are equal, 0 otherwise: classification with the Gini index.

    Models with this kernel are classifiers of scikit-learn: they have the method
    ``predict_proba(X)`` and the attribute ``classes_``, the labels in order.

    Parameters
    ----------
    classes : ndarray, optional
        The labels seen in training, sorted; filled in when a model is fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import Dirac
    >>> Dirac()(np.array(["cat", "dog", "cat"]))
    array([[1., 0., 1.],
           [0., 1., 0.],
           [1., 0., 1.]])
    """

    known_psd = True
    default_decoder = "majority"
    methods: ClassVar[Mapping[str, Any]] = {
        "predict_proba": predict_proba,
        "classes_": property(_classes),
    }

    def __init__(self, classes: Outputs | None = None):
        self.classes = classes

    def check(self, y: Any) -> Outputs:
        """Return y as a 1-d array of labels."""
        labels = read_labels(y)
        if labels.ndim == 2 and labels.shape[1] == 1:
            warn(
                "A column-vector y was passed when a 1d array was expected; pass y.ravel().",
                DataConversionWarning,
            )
            labels = labels[:, 0]
        if labels.ndim != 1:
            raise ValueError(
                f"y has shape {labels.shape}; the Dirac kernel takes one label per row, "
                "a 1-d array or list."
            )
        if labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
            value = labels[labels != np.floor(labels)][0]
            raise ValueError(
                f"Unknown label type: y holds {value!s}, a number and not a class; use "
                "kernel='linear' for numbers, or convert classes to text or integers."
            )
        return labels

    def resolve(self, y: Outputs) -> "Dirac":
        """Fill in the classes."""
        try:
            return Dirac(np.unique(y))
        except TypeError as error:
            raise ValueError(
                f"y holds labels that cannot be sorted ({error}); convert them to text, "
                "[str(label) for label in y]."
            ) from None

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        return np.equal.outer(y, y if z is None else z).astype(np.float64)

    def pairs(self, y: Outputs, z: Outputs) -> Floats:
        """Return k(y_i, z_i)."""
        return np.asarray(y == z, dtype=np.float64)

    def feature_dim(self, y: Outputs) -> int:
        """Return the number of classes."""
        return len(np.unique(y)) if self.classes is None else len(self.classes)

    def class_numbers(self, y: Outputs) -> Ints | None:
        """Return the positions of labels among the training classes."""
        assert self.classes is not None, "resolve first"
        numbers = np.searchsorted(self.classes, y).astype(np.int32)
        known = numbers < len(self.classes)
        known[known] = self.classes[numbers[known]] == y[known]
        return numbers if known.all() else None

    def features(self, y: Outputs) -> Floats:
        """Return indicators of the training classes; a row of zeros for any other label."""
        assert self.classes is not None, "resolve first"
        return np.equal.outer(y, self.classes).astype(np.float64)
