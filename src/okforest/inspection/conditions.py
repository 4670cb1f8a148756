"""Conditions on one feature, as in a branch of a tree."""

from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from okforest.inspection._formatting import format_categories, format_number


@dataclass(frozen=True)
class Condition:
    """A condition on one feature: an interval, a set of categories, or being missing.

    ``a & b`` is the condition that both a and b hold; they must be on the same feature.

    Parameters
    ----------
    feature : int
        The position of the feature.
    name : str
        The name of the feature.
    low, high : float
        A number x satisfies the condition if low < x ≤ high.
    categories : tuple, optional
        The categories that satisfy it; None for a numeric feature.
    missing : bool
        Whether a missing value, or a category not seen in training, satisfies it.
    show_missing : bool
        Whether the text mentions missing values that satisfy it; True for features with missing
        values in training.
    decimals : int
        Maximum number of decimals in the text.

    Examples
    --------
    >>> from okforest.inspection import Condition
    >>> str(Condition(0, "age", low=18.0) & Condition(0, "age", high=65.0))
    '18 < age ≤ 65'
    >>> str(Condition(1, "colour", categories=("red", "blue")))
    'colour in {red, blue}'
    """

    feature: int
    name: str
    low: float = -inf
    high: float = inf
    categories: tuple[Any, ...] | None = None
    missing: bool = False
    show_missing: bool = False
    decimals: int = field(default=3, repr=False, compare=False)

    def __and__(self, other: "Condition") -> "Condition":
        if self.feature != other.feature:
            raise ValueError(
                f"conditions on features {self.feature} and {other.feature} cannot be merged; "
                "& needs two conditions on the same feature."
            )
        return replace(
            self,
            low=max(self.low, other.low),
            high=min(self.high, other.high),
            categories=_intersection(self.categories, other.categories),
            missing=self.missing and other.missing,
        )

    def __str__(self) -> str:
        text = self._text()
        or_missing = self.missing and self.show_missing and not text.endswith("missing")
        return f"({text} or missing)" if or_missing else text

    def _text(self) -> str:
        """Return the condition on values that are not missing, if there is one."""
        if self.low >= self.high or self.categories == ():
            return f"{self.name} is missing"
        if self.categories is not None:
            return f"{self.name} in {format_categories(self.categories)}"
        low, high = self._bounds()
        if low and high:
            return f"{low} < {self.name} ≤ {high}"
        if low:
            return f"{self.name} > {low}"
        if high:
            return f"{self.name} ≤ {high}"
        return f"{self.name} is not missing"

    def _bounds(self) -> tuple[str, str]:
        """Return the bounds as text, "" if infinite, with enough decimals to differ."""
        for decimals in range(self.decimals, self.decimals + 17):
            low, high = (
                "" if abs(bound) == inf else format_number(bound, decimals)
                for bound in (self.low, self.high)
            )
            if low != high:
                break
        return low, high


def _intersection(a: tuple[Any, ...] | None, b: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    if a is None or b is None:
        return b if a is None else a
    allowed = set(b)
    return tuple(value for value in a if value in allowed)
