"""Integers as users pass them."""

from numbers import Integral
from typing import Any


def is_integer(value: Any) -> bool:
    """Return whether a value is an integer of Python or NumPy; booleans are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)
