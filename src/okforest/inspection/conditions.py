"""Conditions on one feature: what a branch of a tree asks of an input."""

from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from okforest.inspection._words import write_number, write_set


@dataclass(frozen=True)
class Condition:
    """A condition on one feature: an interval, a set of categories, or being missing.

    Conditions on the same feature are intersected by ``&``.

    Parameters
    ----------
    feature : int
        The feature's position.
    name : str
        Its name.
    low, high : float
        Numbers x satisfy the condition if low < x ≤ high.
    categories : tuple, optional
        The categories that satisfy it; None for a numeric feature.
    missing : bool
        Whether a missing value (or a category never seen in training) satisfies it.
    tells_missing : bool
        Whether to say so in words: where training had missing values.
    decimals : int
        Decimals of the numbers in words.

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
    tells_missing: bool = False
    decimals: int = field(default=3, repr=False, compare=False)

    def __and__(self, other: "Condition") -> "Condition":
        if self.feature != other.feature:
            raise ValueError(
                f"conditions on features {self.feature} and {other.feature} cannot be merged; "
                "& takes two conditions on one feature."
            )
        return replace(
            self,
            low=max(self.low, other.low),
            high=min(self.high, other.high),
            categories=_intersection(self.categories, other.categories),
            missing=self.missing and other.missing,
        )

    def __str__(self) -> str:
        text = self._words()
        also_missing = self.missing and self.tells_missing and not text.endswith("missing")
        return f"({text} or missing)" if also_missing else text

    def _words(self) -> str:
        if self.low >= self.high or self.categories == ():
            return f"{self.name} is missing"
        if self.categories is not None:
            return f"{self.name} in {write_set(self.categories)}"
        low, high = self._bounds()
        if low and high:
            return f"{low} < {self.name} ≤ {high}"
        if low:
            return f"{self.name} > {low}"
        if high:
            return f"{self.name} ≤ {high}"
        return f"{self.name} is not missing"

    def _bounds(self) -> tuple[str, str]:
        """Write the bounds, "" if infinite, with decimals enough to tell them apart."""
        for decimals in range(self.decimals, self.decimals + 17):
            low, high = (
                "" if abs(bound) == inf else write_number(bound, decimals)
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
