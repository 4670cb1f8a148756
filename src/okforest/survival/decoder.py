"""The decoder of survival times: the mean time of a predicted survival function."""

from okforest._utils.arrays import Outputs
from okforest.decode import Decoder
from okforest.decode.base import Need
from okforest.kernels.base import describe_kernel
from okforest.survival.estimates import restricted_means
from okforest.survival.kernel import Survival, survival_curves, survival_kernel
from okforest.weights import Span, WeightMatrix


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
        return restricted_means(part.estimate.x, survival_curves(W, span))
