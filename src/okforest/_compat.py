"""The private parts of scikit-learn that okforest uses; nothing else imports them."""

from sklearn.base import _fit_context as fit_context
from sklearn.utils import _safe_indexing as rows_of
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions
from sklearn.utils.validation import _check_sample_weight as check_sample_weight

__all__ = [
    "HasMethods",
    "Interval",
    "RealNotInt",
    "StrOptions",
    "check_sample_weight",
    "fit_context",
    "rows_of",
]
