"""The private parts of scikit-learn that okforest uses; nothing else imports them."""

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

__all__ = [
    "HasMethods",
    "Interval",
    "RealNotInt",
    "StrOptions",
    "check_sample_weight",
    "fit_context",
    "rows_of",
    "validate_parameter_constraints",
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
