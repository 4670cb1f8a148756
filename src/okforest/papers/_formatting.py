"""Numbers as text in tables and paragraphs."""

import numpy as np

from okforest._utils.arrays import Floats


def count(n: int, noun: str) -> str:
    """Return a number and a noun in the singular or plural."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def mean_and_std(values: Floats, digits: int = 4) -> str:
    """Return the mean and the sample standard deviation, or the mean alone for one value."""
    if len(values) < 2:
        return f"{np.mean(values):.{digits}f}"
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1):.{digits}f}"


def published(value: float | tuple[float, float] | None, digits: int = 4) -> str:
    """Return a published mean, with its standard deviation if known; None gives an empty cell."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        return f"{value[0]:.{digits}f} ± {value[1]:.{digits}f}"
    return f"{value:.{digits}f}"
