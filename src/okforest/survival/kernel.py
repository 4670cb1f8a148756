"""The kernel on survival times, its decoder, and the methods of models that have it.

An output, exact or censored, is its survival curve. Weighted means of curves are predicted
survival functions.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.parameters import COUNT, check_parameters
from okforest.decode import Decoder
from okforest.decode.base import Need
from okforest.kernels.base import OutputKernel, describe_kernel
from okforest.survival.estimates import (
    StepFunction,
    estimate_survival,
    quantile_times,
    restricted_means,
    step_functions,
)
from okforest.survival.outputs import read_intervals, times_only
from okforest.weights import Span, WeightMatrix, as_weights


def predict_survival_function(self: Any, X: Any, return_array: bool = False) -> Outputs:
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
    curves = _predicted_curves(self, X)
    return curves if return_array else step_functions(_event_times(self), curves)


def predict_quantiles(self: Any, X: Any, quantiles: Any = 0.5) -> Floats:
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
    return quantile_times(_event_times(self), _predicted_curves(self, X), quantiles)


def predict_risk(self: Any, X: Any) -> Floats:
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
    return (1.0 - _predicted_curves(self, X)) @ _curve_kernel(self).falls


def _event_times(model: Any) -> Floats:
    """Return the times of the predicted survival functions."""
    return _curve_kernel(model).estimate.x


def _predicted_curves(model: Any, X: Any) -> Floats:
    return survival_curves(model._checked_weights(X), model.span_)


def _curve_kernel(model: Any) -> "Survival":
    part = survival_kernel(model.span_.kernel)
    if part is None:
        raise AttributeError(f"{type(model).__name__} was fitted with another kernel.")
    return part


class Survival(OutputKernel):
    """The inner product of survival curves: survival analysis with any model.

    The output of a case is a curve on a grid of event times. It is 1 before the time of the case
    and 0 after its event. If the case was censored, the curve continues as the Kaplan–Meier curve
    of the training outputs, given survival so far; for an interval (lower, upper] it falls from 1
    to 0 within the interval. Differences of curves are weighted by the fall of the Kaplan–Meier
    curve at each time. (Weights of rows count in models, not in the Kaplan–Meier curve.) The
    weighted mean of the curves is a predicted survival function. Leaves of trees and forests hold
    10 cases or more, unless ``min_samples_leaf`` is set.

    Models with this kernel have more methods and an attribute; ``help(model.predict_risk)`` shows
    the parameters:

    - ``predict_survival_function(X, return_array=False)``: survival functions, or their values.
    - ``predict_quantiles(X, quantiles=0.5)``: times, such as medians.
    - ``predict_risk(X)``: how early the event is expected.
    - ``event_times_``: the times of the predicted functions.

    Parameters
    ----------
    n_times : int, default=128
        The largest size of the grid. If there are more event times, they are chosen evenly by the
        fall of the Kaplan–Meier curve.
    times : ndarray of shape (m,), optional
        The grid; filled in when a model is fitted.
    survival : ndarray of shape (m,), optional
        The Kaplan–Meier curve of the training outputs (the estimate of Turnbull, if some are known
        up to an interval) on the grid; filled in when a model is fitted.

    See Also
    --------
    okforest.survival.concordance_index : How well risks rank the times.

    Examples
    --------
    Two deaths, at times 1 and 3, and a case censored at time 2. At time 1 one case of three has
    died; the censored case has the curve of the third one from then on:

    >>> import numpy as np
    >>> from okforest.survival import Survival
    >>> kernel = Survival()
    >>> y = kernel.check(np.rec.fromarrays([[True, True, False], [1, 3, 2]], names="event,time"))
    >>> kernel.resolve(y).curves(y)
    array([[0., 0.],
           [1., 0.],
           [1., 0.]])
    """

    known_psd = True
    default_decoder = "survival_time"
    methods: ClassVar[Mapping[str, Any]] = {
        "predict_survival_function": predict_survival_function,
        "predict_quantiles": predict_quantiles,
        "predict_risk": predict_risk,
        "event_times_": property(_event_times),
    }
    methods_as_part = True
    default_min_samples_leaf = 10  # chosen on data sets: benchmarks/results/survival_defaults.md

    _parameter_constraints: ClassVar[dict[str, Any]] = {"n_times": [COUNT]}

    def __init__(
        self, n_times: int = 128, times: Floats | None = None, survival: Floats | None = None
    ):
        self.n_times = n_times
        self.times = times
        self.survival = survival

    def check(self, y: Any) -> Outputs:
        """Return times as intervals, of shape (n, 2)."""
        return times_only(read_intervals(y))

    def resolve(self, y: Outputs) -> "Survival":
        """Fill in the grid and the survival function of the outputs."""
        if self.times is not None and self.survival is not None:
            return self
        check_parameters(self)
        estimate = estimate_survival(y)
        kept = _evenly_spaced(estimate.y, int(self.n_times))
        return Survival(self.n_times, estimate.x[kept], estimate.y[kept])

    @property
    def estimate(self) -> StepFunction:
        """The survival function of the training outputs."""
        assert self.times is not None, "resolve first"
        assert self.survival is not None
        return StepFunction(self.times, self.survival)

    @property
    def falls(self) -> Floats:
        """The fall of the survival function at each time: the weights of the curves' values."""
        return -np.diff(self.estimate.y, prepend=1.0)

    def curves(self, y: Outputs) -> Floats:
        """Return the survival curves of outputs on the grid, of shape (n, m)."""
        times, survival = self.estimate.x, self.estimate.y
        return conditional_curves(times, np.broadcast_to(survival, (len(y), len(times))), y)

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        features = self.features(y)
        return features @ (features if z is None else self.features(z)).T

    def pairs(self, y: Outputs, z: Outputs) -> Floats:
        """Return k(y_i, z_i)."""
        return np.einsum("ij,ij->i", self.features(y), self.features(z))

    def feature_dim(self, y: Outputs) -> int:
        """Return the size of the grid."""
        if self.times is not None:
            return len(self.times)
        return min(int(self.n_times), len(np.unique(y[np.isfinite(y[:, 1]), 1])))

    def features(self, y: Outputs) -> Floats:
        """Return the curves, weighted by the square roots of the falls."""
        return self.curves(y) * np.sqrt(self.falls)


def conditional_curves(times: Floats, survival: Floats, a: Outputs) -> Floats:
    """Return survival functions (n, m) of n outputs, given that each lies within its interval."""
    lower, upper = a[:, :1], a[:, 1:2]
    steps = np.column_stack([np.ones(len(a)), survival])
    at_lower, at_upper = (
        np.take_along_axis(steps, np.searchsorted(times, bound, side="right"), axis=1)
        for bound in (lower, upper)
    )
    at_upper = np.where(np.isposinf(upper), 0.0, at_upper)
    left = at_lower - at_upper  # the mass within the interval
    fraction = np.divide(survival - at_upper, left, out=np.ones(survival.shape), where=left > 1e-12)
    return np.where(times < lower, 1.0, np.where(times >= upper, 0.0, fraction))


def survival_kernel(kernel: OutputKernel) -> Survival | None:
    """Return the kernel, or the first part of a composed kernel, that has survival curves."""
    if isinstance(kernel, Survival):
        return kernel
    parts = kernel.get_params(deep=False).values()
    found = (survival_kernel(part) for part in parts if isinstance(part, OutputKernel))
    return next((part for part in found if part is not None), None)


def survival_curves(W: WeightMatrix, span: Span) -> Floats:
    """Return the predicted survival functions on the kernel's grid, of shape (n, m).

    They are weighted means of the training curves. Boosting and ridge regression have negative
    weights: their curves are made to fall from 1 to 0.
    """
    W, kernel = as_weights(W), span.kernel
    if isinstance(kernel, Survival) and span.features is not None:
        falls = np.sqrt(kernel.falls)
        curves = W.feature_sums(span) / falls
    else:
        part = survival_kernel(kernel)
        assert part is not None
        curves = W @ part.curves(span.outputs)
    return np.minimum.accumulate(np.clip(curves, 0.0, 1.0), axis=1)


def _evenly_spaced(survival: Floats, n: int) -> Any:
    """Return positions of at most n times, evenly spaced on the scale of the survival function."""
    if len(survival) <= n:
        return np.arange(len(survival))
    levels = np.linspace(1.0 - survival[0], 1.0 - survival[-1], n)
    return np.unique(np.searchsorted(1.0 - survival, levels - 1e-12))


class SurvivalTime(Decoder):
    """The mean time of the predicted survival function, restricted to the last time of its grid.

    It is the area under the curve up to that time. Beyond it nothing was observed, so it is smaller
    than the mean time unless the curve has reached 0.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest import OKTree
    >>> y = np.rec.fromarrays([[True, True, False], [1.0, 2.0, 4.0]], names="event,time")
    >>> tree = OKTree(kernel="survival", decoder="survival_time").fit([[0]] * 3, y)
    >>> tree.predict([[0]])
    array([1.66666667])
    """

    def check(self, span: Span) -> None:
        """Check that the kernel has survival curves."""
        if survival_kernel(span.kernel) is None:
            raise ValueError(
                f"decoder 'survival_time' needs kernel=Survival(), and the kernel is "
                f"{describe_kernel(span.kernel)}; use decoder='auto'."
            )

    def needs(self, span: Span) -> frozenset[Need]:
        """Return "weights", or nothing if the explicit features are the curves, scaled."""
        are_curves = isinstance(span.kernel, Survival) and span.features is not None
        return frozenset(() if are_curves else {"weights"})

    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return one time for each row of W."""
        part = survival_kernel(span.kernel)
        assert part is not None
        return restricted_means(part.estimate.x, survival_curves(W, span))
