"""One tree of a fitted model: a walk over its nodes, their conditions, and numbers as text."""

import reprlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf, nan
from typing import Any

import numpy as np
import scipy.sparse as sp

from okforest._utils.arrays import Ints
from okforest._utils.codings import Codings, column_of_coordinates
from okforest._utils.parameters import as_integer
from okforest.engine import Trees
from okforest.inspection.requirements import (
    feature_names_of,
    leaves_have_outputs,
    require_tree_number,
    require_trees,
)
from okforest.weights import LeafWeights, Span

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


# Relative: smaller variances and differences of distances are rounding errors.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Node:
    """A visited node.

    Parameters
    ----------
    number : int
        Its number in the tree.
    depth : int
        Its depth; 0 for the root.
    parent : int
        The number of its parent; -1 for the root.
    is_left : bool
        Whether it is a left child.
    is_end : bool
        Whether the walk ends here: at a leaf, or at the maximum depth.
    """

    number: int
    depth: int
    parent: int
    is_left: bool
    is_end: bool


class TreeView:
    """One tree of a fitted model, with names for its features.

    Parameters
    ----------
    model : estimator
        A fitted tree, forest or OKBoost with trees; anything else raises an error.
    tree : int
        The number of the tree.
    feature_names : sequence of str, optional
        Names of the features; by default those seen in ``fit``, or x0, x1, …
    decimals : int
        Maximum number of decimals in text.
    """

    def __init__(
        self, model: Any, tree: int, feature_names: Sequence[str] | None = None, decimals: int = 3
    ):
        require_trees(model)
        self.model = model
        self.tree: Trees = model.trees_[require_tree_number(model, tree)]
        self.names = feature_names_of(model, feature_names)
        self.codings: Codings = getattr(model, "codings_", [None] * len(self.names))
        self.columns = column_of_coordinates(self.codings)
        self.decimals = as_integer("decimals", decimals, 0)
        self.has_variance = hasattr(model, "outputs_")
        self.has_prototypes = leaves_have_outputs(model)

    def walk(self, max_depth: int | None = None, root: int = 0) -> Iterator[Node]:
        """Visit the nodes below a root: parents before their children, left before right."""
        deepest = inf
        if max_depth is not None:
            deepest = as_integer("max_depth", max_depth, 0)
        stack = [(root, 0, -1, False)]
        while stack:
            number, depth, parent, is_left = stack.pop()
            is_end = self.is_leaf(number) or depth >= deepest
            yield Node(number, depth, parent, is_left, is_end)
            if not is_end:
                left = int(self.tree.left[number])
                stack.append((left + 1, depth + 1, number, False))
                stack.append((left, depth + 1, number, True))

    def is_leaf(self, node: int) -> bool:
        """Return whether a node is a leaf."""
        return bool(self.tree.left[node] < 0)

    def condition(self, node: int, is_left: bool) -> Condition:
        """Return the condition on which inputs go to the left or right child of a node."""
        coordinate = int(self.tree.feature[node])
        feature = int(self.columns[coordinate])
        threshold = float(self.tree.threshold[node])
        left_categories = self.tree.left_categories(node)
        low, high, categories = (-inf, threshold, None) if is_left else (threshold, inf, None)
        if left_categories is not None:
            values = np.asarray(self.model.categories_[feature])
            goes_left = np.isin(np.arange(len(values)), left_categories)
            low, high = -inf, inf
            categories = tuple(values[goes_left == is_left].tolist())
        missing_left = bool(self.tree.missing_left[node])
        coding = self.codings[feature]
        if coding is not None:  # levels on either side of a threshold on one of their coordinates
            first = int(np.searchsorted(self.columns, feature))
            below = coding[:, coordinate - first] <= threshold
            low, high, missing_left = -inf, inf, bool(below[-2])
            values = np.asarray(self.model.categories_[feature])
            categories = tuple(values[below[:-2] == is_left].tolist())
        return Condition(
            feature,
            self.names[feature],
            low,
            high,
            categories,
            missing=missing_left == is_left,
            show_missing=bool(self.model.has_missing_[feature]),
            decimals=self.decimals,
        )

    def rows(self, node: int) -> Ints:
        """Return the training rows in a node, in ascending order."""
        return np.sort(self.tree.members[self.tree.begin[node] : self.tree.end[node]])

    def variance(self, node: int) -> float:
        """Return the variance in H of a node's outputs (OKBoost: residuals); NaN without y."""
        if not self.has_variance:
            return nan
        variance = self.tree.variance[[node, 0]] / self.tree.weight[[node, 0]]
        if hasattr(self.model, "codings_") and self.has_prototypes:  # leaves have other members
            variance[0] = self._member_variance(node)
        return float(variance[0]) if variance[0] > ROUNDING * variance[1] else 0.0

    def _member_variance(self, node: int) -> float:
        """Return the variance in H of the outputs of a node's members."""
        span = slice(self.tree.begin[node], self.tree.end[node])
        rows = self.tree.members[span]
        weight = self.tree.row_weight[rows]
        if len(self.tree.times):
            weight = weight * self.tree.times[span]
        share, outputs = weight / weight.sum(), self.model.outputs_[rows]
        mean = sp.csr_array(share[None, :])
        products = Span(self.model.kernel_, outputs).inner(mean, outputs)[0]
        return float(share @ self.model.kernel_.diag(outputs) - share @ products)

    def purity(self, node: int) -> float:
        """Return 1 − variance / variance of the root, from 0 to 1."""
        total = self.variance(0)
        return min(1.0, max(0.0, 1.0 - self.variance(node) / total)) if total > 0 else 0.0

    def prototype(self, node: int) -> int:
        """Return the row in a node whose output is nearest to the node's mean in H.

        Ties go to the first row.
        """
        rows = self.rows(node)
        if len(rows) == 1:  # as in most leaves of a fully grown tree: no kernel needed
            return int(rows[0])
        leaf = LeafWeights(self.tree, np.array([[node]], dtype=np.int32))
        weight = leaf.tocsr().toarray()[0, rows]
        outputs = self.model.outputs_[rows]
        mean = sp.csr_array(weight[None, :])
        norms = self.model.kernel_.diag(outputs)
        distances = norms - 2.0 * Span(self.model.kernel_, outputs).inner(mean, outputs)[0]
        nearest = distances <= distances.min() + ROUNDING * np.abs(norms).max()
        return int(rows[np.argmax(nearest)])

    def describe(self, node: int, show_prototype: bool = True) -> list[str]:
        """Return the texts at an end of the walk: leaf or leaves, samples, variance, output."""
        if self.is_leaf(node):
            texts = [f"leaf {node}"]
        else:
            n_leaves = sum(self.is_leaf(below.number) for below in self.walk(root=node))
            texts = [f"{n_leaves} leaves"]
        texts.append(f"n = {len(self.rows(node))}")
        if self.has_variance:
            of = "variance" if self.has_prototypes else "residual variance"
            texts.append(f"{of} {format_number(self.variance(node), self.decimals)}")
        if show_prototype and self.has_prototypes and self.is_leaf(node):
            output = self.model.outputs_[self.prototype(node)]
            texts.append(f"output {format_output(output, self.decimals)}")
        return texts
