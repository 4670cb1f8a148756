"""Warnings that point at the user's line; optional packages and methods, with errors that help."""

import sys
import warnings
from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any


def install_extra(extra: str) -> str:
    """Return how to install the optional packages of an extra; okforest is on no package index."""
    return (
        f"pip install '.[{extra}]' in a clone of okforest, or pip install 'okforest[{extra}]' "
        "anywhere else, once okforest is installed"
    )


class available_if:
    """Decorate a method that exists only if ``check(object)`` raises no AttributeError.

    It is :func:`sklearn.utils.metaestimators.available_if`, except that the error of the check
    reaches the user: it says what to change.
    """

    def __init__(self, check: Callable[[Any], Any]):
        self.check = check

    def __call__(self, method: Callable[..., Any]) -> Any:
        """Return the method, as a descriptor."""
        return _Conditional(method, self.check)


class _Conditional:
    def __init__(self, method: Callable[..., Any], check: Callable[[Any], Any]):
        self.method, self.check = method, check
        update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        if owner is None:
            return self.method
        self.check(owner)
        return MethodType(self.method, owner)


INSIDE = ("okforest", "sklearn", "joblib")  # packages whose frames are not the user's


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line that is outside of these packages."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] in INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
