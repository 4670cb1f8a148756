"""Survival functions from the training rows in the leaves of a forest."""

from typing import Any, ClassVar

import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from okforest._step_function import step_functions
from okforest._typing import Floats, Ints, Outputs
from okforest.decode.survival import quantile_times
from okforest.kernels import Survival
from okforest.refit._leaves import LeafExpansion, leaves_of


class LeafCurves:
    """Survival functions and quantiles: means of the curves of training rows in the same leaves."""

    _derived: ClassVar[tuple[str, ...]] = ("_kept_curves",)

    estimator_: Any
    outputs_: Floats
    training_leaves_: Ints
    curves_: Survival

    def _rows(self, X: Any) -> sp.csr_array:
        """Return the leaves of inputs."""
        check_is_fitted(self, "training_leaves_")
        return LeafExpansion(self.estimator_.trees_).rows(leaves_of(self.estimator_, X))

    def predict_survival_function(self, X: Any, return_array: bool = False) -> Outputs:
        """Predict survival functions: means of the curves of training rows in the same leaves.

        Censored rows have the Kaplan–Meier curve, given survival so far. The refit changes
        predicted values, not these curves.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.
        return_array : bool, default=False
            Whether to return an array of values at the times ``event_times_``, or functions.

        Returns
        -------
        survival : ndarray of n functions, or of shape (n, n_times)
            The probability to survive beyond a time.
        """
        curves = self._rows(X) @ self._curves_of_leaves()
        return curves if return_array else step_functions(self.event_times_, curves)

    def _curves_of_leaves(self) -> Floats:
        """Return the mean curve of every leaf, of shape (n_leaves, n_times), made when needed."""
        kept = self.__dict__.get("_kept_curves")
        if kept is None or kept[0] is not self.training_leaves_:
            expansion = LeafExpansion(self.estimator_.trees_)
            members = expansion.means_over(expansion.rows(self.training_leaves_))
            curves = members @ self.curves_.curves(self.outputs_)
            kept = self._kept_curves = (self.training_leaves_, curves)
        return kept[1]

    @property
    def event_times_(self) -> Floats:
        """The times of the predicted survival functions."""
        return self.curves_.estimate.times

    def predict_quantiles(self, X: Any, quantiles: Any = 0.5) -> Floats:
        """Predict quantiles of the output, from the predicted survival functions.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.
        quantiles : float or array-like of shape (q,), default=0.5
            Levels between 0 and 1; 0.5 is the median.

        Returns
        -------
        times : ndarray of shape (n,) or (n, q)
            Infinite where the predicted function does not fall that low.
        """
        curves = self.predict_survival_function(X, return_array=True)
        return quantile_times(self.event_times_, curves, quantiles)
