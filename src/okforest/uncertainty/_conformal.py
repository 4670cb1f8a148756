"""What conformal sets and intervals share."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from okforest._sparse import check_sparse
from okforest._state import FittedState
from okforest._typing import Floats, Outputs
from okforest._validation import adopt_inputs
from okforest.uncertainty._calibration import Calibration, Method, calibrate


class Conformal(FittedState):
    """A model that is calibrated on rows it was not fitted to."""

    estimator: Any
    method: Method
    calibration_size: float
    cv: Any
    random_state: Any

    estimator_: Any
    estimators_: list[Any]
    scores_: list[Floats]
    n_calibration_: int

    def _calibrate(self, X: Any, y: Any) -> Calibration:
        """Fit the models and store them; return their predictions for the rows left out."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        _check_rows(X)
        fitted = calibrate(
            self.estimator,
            X,
            y,
            method=self.method,
            calibration_size=self.calibration_size,
            cv=self.cv,
            random_state=self.random_state,
        )
        self.estimator_ = fitted.estimator
        self.estimators_ = [part.model for part in fitted.parts]
        if hasattr(fitted.estimator, "n_features_in_"):  # images, for example, have none
            adopt_inputs(self, fitted.estimator)
        return fitted

    def predict(self, X: Any) -> Outputs:
        """Predict outputs, as ``estimator_`` does.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.

        Returns
        -------
        y : ndarray of n outputs
            The predictions.
        """
        check_is_fitted(self)
        _check_rows(X)
        check_sparse(X, "X")
        outputs: Outputs = self.estimator_.predict(X)
        return outputs

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.target_tags.multi_output = inner.target_tags.multi_output
        return tags


def _check_rows(X: Any) -> None:
    """Raise a ValueError unless X may have rows."""
    if X is None or np.isscalar(X):
        raise ValueError(f"X is {X!r}; pass inputs, with a row for each output.")
    if isinstance(X, Mapping) and not sp.issparse(X):  # SciPy's dok_array is a mapping
        raise ValueError(
            f"X is a {type(X).__name__}, whose rows are not known; pass a frame or an array: "
            "pandas.DataFrame(X)."
        )
