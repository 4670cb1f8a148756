"""Survival functions, quantiles and mean times from weights over exact and censored times."""

from typing import Any

import numpy as np

from okforest._utils.arrays import Floats, Outputs
from okforest.decode.base import Decoder, Need
from okforest.kernels import OutputKernel, Survival
from okforest.kernels.base import describe_kernel
from okforest.weights import Span, WeightMatrix, as_weights


def survival_kernel(kernel: OutputKernel) -> Survival | None:
    """Return the kernel, or the first part of a composed kernel, that knows survival curves."""
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


def quantile_times(times: Floats, curves: Floats, quantiles: Any) -> Floats:
    """Return the first time at which 1 − S reaches each quantile; infinite if it does not."""
    levels = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
    if levels.ndim != 1 or not ((levels > 0) & (levels < 1)).all():
        raise ValueError(f"quantiles={quantiles!r}; use numbers between 0 and 1, such as 0.5.")
    reached = 1.0 - curves[:, :, None] >= levels - 1e-12
    found = np.append(times, np.inf)[np.where(reached.any(axis=1), reached.argmax(axis=1), -1)]
    return found[:, 0] if np.ndim(quantiles) == 0 else found


def restricted_means(times: Floats, curves: Floats) -> Floats:
    """Return the areas under survival functions up to the last time."""
    return np.asarray(times[0] + curves[:, :-1] @ np.diff(times))


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
        """Check that the kernel knows survival curves."""
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
        return restricted_means(part.estimate.times, survival_curves(W, span))
