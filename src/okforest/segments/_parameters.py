"""Checks of the parameters of segmenters."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any


def check_count(owner: Any, name: str, least: int = 1) -> None:
    """Check that a parameter is an integer of at least this value."""
    value = getattr(owner, name)
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(
            f"{name}={value!r} of {type(owner).__name__}; expected an integer from {least}."
        )


def check_range(owner: Any, name: str) -> None:
    """Check that a parameter is a pair of fractions, 0 < low <= high <= 1."""
    value = getattr(owner, name)
    sound = isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2
    if not sound or not all(isinstance(end, Real) for end in value):
        raise ValueError(f"{name}={value!r} of {type(owner).__name__}; expected two numbers.")
    if not 0.0 < value[0] <= value[1] <= 1.0:
        raise ValueError(
            f"{name}={value!r} of {type(owner).__name__}; expected 0 < low <= high <= 1."
        )


def check_option(owner: Any, name: str, options: Sequence[str]) -> None:
    """Check that a parameter is one of some words."""
    value = getattr(owner, name)
    if value not in options:
        raise ValueError(
            f"{name}={value!r} of {type(owner).__name__}; use {', '.join(map(repr, options))}."
        )
