"""Kernels on survival times, exact or censored: an output is its survival curve."""

from typing import Any, ClassVar

import numpy as np

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.parameters import COUNT, check_parameters
from okforest.kernels.base import OutputKernel
from okforest.survival.estimates import SurvivalEstimate, estimate_survival
from okforest.survival.outputs import read_intervals, times_only


class Survival(OutputKernel):
    """The inner product of survival curves: survival analysis with any model.

    The output of a case is a curve on a grid of event times. It is 1 before the time of the case
    and 0 after its event. If the case was censored, the curve continues as the Kaplan–Meier curve
    of the training outputs, given survival so far; for an interval (lower, upper] it falls from 1
    to 0 within the interval. Differences of curves are weighted by the fall of the Kaplan–Meier
    curve at each time. (Weights of rows count in models, not in the Kaplan–Meier curve.) The
    weighted mean of the curves is a predicted survival function: models with this kernel have the
    methods ``predict_survival_function``, ``predict_quantiles`` and ``predict_risk``. Leaves of
    trees and forests hold 10 cases or more, unless ``min_samples_leaf`` is set.

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
    okforest.metrics.concordance_index : How well risks rank the times.

    Examples
    --------
    Two deaths, at times 1 and 3, and a case censored at time 2. At time 1 one case of three has
    died; the censored case has the curve of the third one from then on:

    >>> import numpy as np
    >>> from okforest.kernels import Survival
    >>> kernel = Survival()
    >>> y = kernel.check(np.rec.fromarrays([[True, True, False], [1, 3, 2]], names="event,time"))
    >>> kernel.resolve(y).curves(y)
    array([[0., 0.],
           [1., 0.],
           [1., 0.]])
    """

    known_psd = True
    default_decoder = "survival_time"
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
        times, survival = estimate_survival(y)
        kept = _evenly_spaced(survival, int(self.n_times))
        return Survival(self.n_times, times[kept], survival[kept])

    @property
    def estimate(self) -> SurvivalEstimate:
        """The survival function of the training outputs."""
        assert self.times is not None, "resolve first"
        assert self.survival is not None
        return SurvivalEstimate(self.times, self.survival)

    @property
    def falls(self) -> Floats:
        """The fall of the survival function at each time: the weights of the curves' values."""
        return -np.diff(self.estimate.survival, prepend=1.0)

    def curves(self, y: Outputs) -> Floats:
        """Return the survival curves of outputs on the grid, of shape (n, m)."""
        times, survival = self.estimate
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


def _evenly_spaced(survival: Floats, n: int) -> Any:
    """Return positions of at most n times, evenly spaced on the scale of the survival function."""
    if len(survival) <= n:
        return np.arange(len(survival))
    levels = np.linspace(1.0 - survival[0], 1.0 - survival[-1], n)
    return np.unique(np.searchsorted(1.0 - survival, levels - 1e-12))
