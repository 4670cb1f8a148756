"""Parameters as users pass them: integers, and parameters of kernels that searches set."""

from numbers import Integral
from typing import Any


def is_integer(value: Any) -> bool:
    """Return whether a value is an integer of Python or NumPy; booleans are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)
