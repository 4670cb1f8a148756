"""Checks of what users pass: integers, and lists of names or labels."""

from collections.abc import Iterable
from typing import Any

from okforest._utils.parameters import is_integer


def as_integer(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return an integer, or raise a ValueError that names the range."""
    if not is_integer(value) or value < least or (most is not None and value > most):
        until = "" if most is None else f" to {most}"
        raise ValueError(f"{name}={value!r}; expected an integer from {least}{until}.")
    return int(value)


def as_list(name: str, values: Iterable[Any]) -> list[Any]:
    """Return a list. A single text is refused: it would be taken for a list of letters."""
    if isinstance(values, str):
        raise ValueError(f"{name}={values!r} is a single text; pass a list, [{values!r}].")
    if not isinstance(values, Iterable):
        raise TypeError(f"{name}={values!r}; expected a list, such as [{values!r}].")
    return list(values)
