"""What differs between versions of scikit-learn, and its private parts that okforest uses."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import _fit_context as fit_context
from sklearn.utils import _safe_indexing as rows_of
from sklearn.utils._param_validation import (
    HasMethods,
    RealNotInt,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils._param_validation import Interval as _Interval
from sklearn.utils.validation import _check_sample_weight as check_sample_weight

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9: no set_callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: callbacks are not supported."""

    def with_callbacks(method: Any) -> Any:
        """Return the method, unchanged."""
        return method


__all__ = [
    "CallbackSupportMixin",
    "HasMethods",
    "Interval",
    "RealNotInt",
    "StrOptions",
    "check_sample_weight",
    "fit_context",
    "rows_of",
    "validate_parameter_constraints",
    "with_callbacks",
]


class Interval(_Interval):
    """An interval of numbers of any type, such as ``np.float32``; True and False are not in it."""

    def is_satisfied_by(self, val: Any) -> bool:
        """Return whether a value of a parameter is in the interval."""
        if isinstance(val, bool | np.bool_):
            return False
        if self.type is RealNotInt and isinstance(val, Real) and not isinstance(val, Integral):
            val = float(val)
        return bool(super().is_satisfied_by(val))
