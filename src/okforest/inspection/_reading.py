"""The walk over one tree of a fitted model, and what can be said of each of its nodes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, nan
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from okforest._typing import Ints
from okforest.embedding import Span
from okforest.engine import LeafWeights, Trees
from okforest.inspection._words import write_number, write_output
from okforest.inspection.conditions import Condition
from okforest.models._trees import Grower, TreeModel

# Relative: variances below it, and differences of distances, are rounding.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Stop:
    """A node on the walk; ``parent`` is -1 at the root, and an ``end`` has nothing shown below."""

    node: int
    depth: int
    parent: int
    is_left: bool
    is_end: bool


class Reading:
    """One tree of a fitted model, with names for its features.

    Parameters
    ----------
    model : TreeModel
        A fitted model; anything else is refused.
    tree : int
        Which of its trees.
    feature_names : sequence of str, optional
        Names of the features; by default those seen in fitting, or x0, x1, …
    decimals : int
        Decimals of the numbers in words.
    """

    def __init__(
        self, model: Any, tree: int, feature_names: Sequence[str] | None = None, decimals: int = 3
    ):
        check_model(model)
        self.model = model
        self.tree: Trees = model.trees_[check_tree(model, tree)]
        self.names = check_names(model, feature_names)
        self.decimals = decimals
        self.has_outputs = hasattr(model, "outputs_")

    def walk(self, max_depth: int | None = None, root: int = 0) -> Iterator[Stop]:
        """Visit nodes from a root downwards, a node before its children, left before right."""
        deepest = inf if max_depth is None else max_depth
        stack = [(root, 0, -1, False)]
        while stack:
            node, depth, parent, is_left = stack.pop()
            is_end = self.is_leaf(node) or depth >= deepest
            yield Stop(node, depth, parent, is_left, is_end)
            if not is_end:
                left = int(self.tree.left[node])
                stack.append((left + 1, depth + 1, node, False))
                stack.append((left, depth + 1, node, True))

    def is_leaf(self, node: int) -> bool:
        """Tell whether a node is a leaf."""
        return bool(self.tree.left[node] < 0)

    def test(self, node: int) -> Condition:
        """Return the test of a node: the condition of its left branch."""
        return self.branch(node, is_left=True)

    def branch(self, node: int, is_left: bool) -> Condition:
        """Return what the left or right branch of a node asks."""
        feature = int(self.tree.feature[node])
        threshold = float(self.tree.threshold[node])
        left_categories = self.tree.left_categories(node)
        low, high, categories = (-inf, threshold, None) if is_left else (threshold, inf, None)
        if left_categories is not None:
            values = np.asarray(self.model.categories_[feature])
            goes_left = np.isin(np.arange(len(values)), left_categories)
            low, high = -inf, inf
            categories = tuple(values[goes_left == is_left].tolist())
        return Condition(
            feature,
            self.names[feature],
            low,
            high,
            categories,
            missing=bool(self.tree.missing_left[node]) == is_left,
            tells_missing=bool(self.model.has_missing_[feature]),
            decimals=self.decimals,
        )

    def rows(self, node: int) -> Ints:
        """Return the training rows in a node, in their order."""
        return np.sort(self.tree.members[self.tree.begin[node] : self.tree.end[node]])

    def variance(self, node: int) -> float:
        """Return the variance of a node's outputs in H; NaN without outputs."""
        if not self.has_outputs:
            return nan
        variance = self.tree.variance[[node, 0]] / self.tree.weight[[node, 0]]
        return float(variance[0]) if variance[0] > ROUNDING * variance[1] else 0.0

    def purity(self, node: int) -> float:
        """Return the part of the root's variance that a node is free of, from 0 to 1."""
        total = self.variance(0)
        return min(1.0, max(0.0, 1.0 - self.variance(node) / total)) if total > 0 else 0.0

    def prototype(self, node: int) -> int:
        """Return the row in a node whose output is nearest to the node's mean in H.

        Of several, the first.
        """
        rows = self.rows(node)
        if len(rows) == 1:  # as in most leaves of a full-grown tree: no kernel needed
            return int(rows[0])
        leaf = LeafWeights(self.tree, np.array([[node]], dtype=np.int32))
        weight = leaf.tocsr().toarray()[0, rows]
        outputs = self.model.outputs_[rows]
        mean = sp.csr_array(weight[None, :])
        norms = self.model.kernel_.diag(outputs)
        distances = norms - 2.0 * Span(self.model.kernel_, outputs).inner(mean, outputs)[0]
        nearest = distances <= distances.min() + ROUNDING * np.abs(norms).max()
        return int(rows[np.argmax(nearest)])

    def facts(self, node: int, show_prototype: bool = True) -> list[str]:
        """Return what is said of an end of the walk: which it is, samples, variance, output."""
        if self.is_leaf(node):
            facts = [f"leaf {node}"]
        else:
            below = sum(self.is_leaf(stop.node) for stop in self.walk(root=node))
            facts = [f"{below} leaves"]
        facts.append(f"n = {len(self.rows(node))}")
        if self.has_outputs:
            facts.append(f"variance {write_number(self.variance(node), self.decimals)}")
            if show_prototype and self.is_leaf(node):
                output = self.model.outputs_[self.prototype(node)]
                facts.append(f"output {write_output(output, self.decimals)}")
        return facts


def check_model(model: Any, *, boosted: bool = False) -> None:
    """Raise an error that says what to do unless this is a fitted tree or forest.

    Boosted trees, whose leaves are means of residuals and not of outputs, are one if allowed.
    """
    if not isinstance(model, Grower if boosted else TreeModel):
        raise TypeError(
            f"model is a {type(model).__name__}; expected a fitted OKTree or forest of okforest"
            f"{', or OKBoost' if boosted else ''}. Of a pipeline or a search, pass the model "
            "inside: pipeline[-1], search.best_estimator_."
        )
    check_is_fitted(model, "trees_")


def check_outputs(model: Any, purpose: str) -> None:
    """Raise an error unless the model was fitted with y, which the purpose needs."""
    if not hasattr(model, "outputs_"):
        raise ValueError(
            f"this {type(model).__name__} was fitted without y, and {purpose} needs outputs. "
            "Fit it with y."
        )


def check_tree(model: Any, tree: int) -> int:
    """Return the number of a tree, which must exist."""
    n_trees = len(model.trees_)
    if not isinstance(tree, Integral) or not 0 <= tree < n_trees:
        raise ValueError(
            f"tree={tree!r}; this {type(model).__name__} has {n_trees} "
            f"{'tree' if n_trees == 1 else 'trees'}: use an integer from 0 to {n_trees - 1}."
        )
    return int(tree)


def check_names(model: Any, feature_names: Sequence[str] | None) -> list[str]:
    """Return one name for each feature."""
    if feature_names is None:
        feature_names = getattr(model, "feature_names_in_", None)
    if feature_names is None:
        return [f"x{feature}" for feature in range(model.n_features_in_)]
    if len(feature_names) != model.n_features_in_:
        raise ValueError(
            f"feature_names has {len(feature_names)} names; the model was fitted with "
            f"{model.n_features_in_} features. Give one name per feature, in their order."
        )
    return [str(name) for name in feature_names]
