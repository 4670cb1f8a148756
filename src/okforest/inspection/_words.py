"""How numbers, outputs and lists are written."""

import reprlib
from collections.abc import Iterable
from typing import Any

import numpy as np

LONGEST_LIST = 6  # items; longer lists are abbreviated
_brief = reprlib.Repr()
_brief.maxstring = _brief.maxother = 40  # characters


def write_number(value: float, decimals: int) -> str:
    """Write a number with at most so many decimals.

    Where these would hide it, or be lost in its digits, it is given in significant digits.
    """
    value = float(value) + 0.0  # no minus zero
    if value != 0.0 and not 0.5 * 10.0**-decimals <= abs(value) < 1e7:
        return f"{value:.{max(decimals, 1)}g}"
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def write_output(output: Any, decimals: int) -> str:
    """Write an output briefly: long vectors and other long objects are abbreviated."""
    if isinstance(output, np.ndarray | np.generic):
        if output.ndim > 1:
            return f"array of shape {output.shape}"
        output = output.tolist()
    if isinstance(output, list):
        items = [write_output(item, decimals) for item in output]
        if len(items) > LONGEST_LIST:
            items = [*items[:3], "…", items[-1]]
        return f"[{', '.join(items)}]"
    if isinstance(output, float):
        return write_number(output, decimals)
    return _brief.repr(output)


def write_set(values: Iterable[Any]) -> str:
    """Write a set of categories; a long one is cut, with the number of those left out."""
    items = [str(value) for value in values]
    if len(items) > LONGEST_LIST:
        items = [*items[: LONGEST_LIST - 1], f"… {len(items) - LONGEST_LIST + 1} more"]
    return f"{{{', '.join(items)}}}"
