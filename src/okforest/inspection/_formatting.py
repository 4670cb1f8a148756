"""Numbers, outputs and sets of categories as short text."""

import reprlib
from collections.abc import Iterable
from typing import Any

import numpy as np

MAX_ITEMS = 6  # longer lists are abbreviated
_short = reprlib.Repr()
_short.maxstring = _short.maxother = 40  # characters


def format_number(value: float, decimals: int) -> str:
    """Format a number with at most this many decimals.

    Numbers that would round to zero, and very large ones, are written with significant digits.
    """
    value = float(value) + 0.0  # no minus zero
    if value != 0.0 and not 0.5 * 10.0**-decimals <= abs(value) < 1e7:
        return f"{value:.{max(decimals, 1)}g}"
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_output(output: Any, decimals: int) -> str:
    """Format an output, abbreviating long vectors and other long objects."""
    if isinstance(output, np.ndarray | np.generic):
        if output.ndim > 1:
            return f"array of shape {output.shape}"
        output = output.tolist()
    if isinstance(output, list):
        items = [format_output(item, decimals) for item in output]
        if len(items) > MAX_ITEMS:
            items = [*items[:3], "…", items[-1]]
        return f"[{', '.join(items)}]"
    if isinstance(output, float):
        return format_number(output, decimals)
    return _short.repr(output)


def format_categories(categories: Iterable[Any]) -> str:
    """Format a set of categories; a long one is cut, with the number of those left out."""
    items = [str(category) for category in categories]
    if len(items) > MAX_ITEMS:
        items = [*items[: MAX_ITEMS - 1], f"… {len(items) - MAX_ITEMS + 1} more"]
    return f"{{{', '.join(items)}}}"
