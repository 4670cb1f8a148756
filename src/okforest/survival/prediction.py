"""What models with the survival kernel predict: functions, quantiles and risks."""

from typing import Any

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.errors import available_if
from okforest.kernels import Survival, as_kernel
from okforest.survival.decoder import quantile_times, survival_curves, survival_kernel
from okforest.survival.estimates import step_functions


def _predicts_survival(model: Any) -> None:
    try:
        known = survival_kernel(as_kernel(model.kernel)) is not None
    except ValueError:  # fit raises an error that explains it
        known = False
    if not known:
        raise AttributeError(
            f"{type(model).__name__} predicts survival only with kernel='survival'."
        )


class SurvivalMixin:
    """Methods of every model, available if its kernel is on survival times."""

    @available_if(_predicts_survival)
    def predict_survival_function(self, X: Any, return_array: bool = False) -> Outputs:
        """Predict survival functions.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.
        return_array : bool, default=False
            Whether to return an array of values at the times ``event_times_``, or functions.

        Returns
        -------
        survival : ndarray of n functions, or of shape (n, n_times)
            The probability to survive beyond a time. A function has its times and values as
            attributes ``x`` and ``y``, as in scikit-survival.
        """
        curves = self._survival_curves(X)
        return curves if return_array else step_functions(self.event_times_, curves)

    @available_if(_predicts_survival)
    def predict_quantiles(self, X: Any, quantiles: Any = 0.5) -> Floats:
        """Predict quantiles of the survival time.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.
        quantiles : float or array-like of shape (q,), default=0.5
            Levels between 0 and 1; 0.5 is the median.

        Returns
        -------
        times : ndarray of shape (n,) or (n, q)
            The first time by which the event has this probability. Infinite, if the predicted
            function does not fall that low before the last event time.
        """
        return quantile_times(self.event_times_, self._survival_curves(X), quantiles)

    @available_if(_predicts_survival)
    def predict_risk(self, X: Any) -> Floats:
        """Predict how early the event is expected: a higher risk means an earlier event.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.

        Returns
        -------
        risk : ndarray of shape (n,)
            The predicted probability that the event comes by the time of the event of a case
            drawn at random, by the Kaplan–Meier curve of the training outputs. If many cases are
            censored, this curve does not fall to 0, and the mean risk is below 0.5.
        """
        return (1.0 - self._survival_curves(X)) @ self._curve_kernel().falls

    @property
    def event_times_(self) -> Floats:
        """The times of the predicted survival functions, with the survival kernel."""
        return self._curve_kernel().estimate.times

    def _curve_kernel(self) -> Survival:
        part = survival_kernel(self.span_.kernel)  # type: ignore[attr-defined]
        if part is None:
            raise AttributeError(f"{type(self).__name__} has event times with the survival kernel.")
        return part

    def _survival_curves(self, X: Any) -> Floats:
        W = self._checked_weights(X)  # type: ignore[attr-defined]
        return survival_curves(W, self.span_)  # type: ignore[attr-defined]
