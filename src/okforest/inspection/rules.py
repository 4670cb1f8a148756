"""The path to each leaf as one rule."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from okforest.inspection._tree_view import TreeView
from okforest.inspection.conditions import Condition


@dataclass(frozen=True)
class Rule:
    """A leaf and the conditions that lead to it, at most one for each feature.

    Parameters
    ----------
    leaf : int
        The leaf's number, as returned by ``apply``.
    conditions : tuple of Condition
        An input reaches the leaf if and only if it satisfies them all.
    n_samples : int
        Number of training rows in the leaf.
    weight : float
        Their total weight.
    variance : float
        The variance of their outputs in the kernel's feature space H; for an OKBoost, of their
        residuals. NaN if the model was fitted without y.

    Examples
    --------
    >>> from okforest import OKTree
    >>> from okforest.inspection import leaf_rules
    >>> tree = OKTree().fit([[0], [0], [1]], [1.0, 3.0, 5.0])
    >>> rule = leaf_rules(tree, feature_names=["dose"])[0]
    >>> print(rule)
    dose ≤ 0.5
    >>> rule.n_samples, rule.variance
    (2, 1.0)
    """

    leaf: int
    conditions: tuple[Condition, ...]
    n_samples: int
    weight: float
    variance: float

    def __str__(self) -> str:
        return " and ".join(map(str, self.conditions)) or "always"


def leaf_rules(
    model: Any,
    tree: int = 0,
    *,
    feature_names: Sequence[str] | None = None,
    decimals: int = 3,
) -> list[Rule]:
    """Return the rule of each leaf of a tree, from left to right.

    All conditions on one feature are merged into one interval or set of categories. Whether a
    missing value satisfies a condition is in its attribute ``missing``; its text mentions missing
    values only for features that had some in training.

    Parameters
    ----------
    model : estimator
        A fitted tree or forest, or an OKBoost with ``base="tree"``.
    tree : int, default=0
        Which tree of a forest, or which round of an OKBoost, counted from 0.
    feature_names : sequence of str, optional
        Names of the features; by default those seen in ``fit``, or x0, x1, …
    decimals : int, default=3
        Maximum number of decimals in the text; the conditions hold the exact bounds.

    Returns
    -------
    rules : list of Rule
        One for each leaf; ``str(rule)`` is its text.

    See Also
    --------
    leaf_clusters : The training rows that satisfy each rule.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from okforest import OKTree
    >>> from okforest.inspection import leaf_rules
    >>> iris = load_iris()
    >>> tree = OKTree(kernel="dirac", max_depth=3, random_state=0).fit(iris.data, iris.target)
    >>> for rule in leaf_rules(tree, feature_names=["s. length", "s. width", "length", "width"]):
    ...     print(rule.n_samples, rule, sep=": ")
    50: width ≤ 0.8
    48: 0.8 < width ≤ 1.75 and length ≤ 4.95
    6: 0.8 < width ≤ 1.75 and length > 4.95
    3: width > 1.75 and length ≤ 4.85
    43: width > 1.75 and length > 4.85
    """
    view = TreeView(model, tree, feature_names, decimals)
    paths: dict[int, dict[int, Condition]] = {0: {}}  # by node, then by feature
    rules = []
    for node in view.walk():
        if node.depth > 0:
            condition = view.condition(node.parent, node.is_left)
            paths[node.number] = _extended(paths[node.parent], condition)
        if node.is_end:
            rules.append(
                Rule(
                    node.number,
                    tuple(paths[node.number].values()),
                    len(view.rows(node.number)),
                    float(view.tree.weight[node.number]),
                    view.variance(node.number),
                )
            )
    return rules


def _extended(path: dict[int, Condition], condition: Condition) -> dict[int, Condition]:
    earlier = path.get(condition.feature)
    return {**path, condition.feature: earlier & condition if earlier else condition}
