"""What may be missing, with errors that name the remedy: optional packages, methods of a state."""

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
