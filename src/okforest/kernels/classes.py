"""Kernels on class labels."""

from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.errors import warn
from okforest.kernels.base import OutputKernel
from okforest.kernels.outputs import read_labels


class Dirac(OutputKernel):
    """1 if two labels are equal, 0 otherwise: classification with the Gini index.

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

    def features(self, y: Outputs) -> Floats:
        """Return indicators of the training classes; a row of zeros for any other label."""
        assert self.classes is not None, "resolve first"
        return np.equal.outer(y, self.classes).astype(np.float64)
