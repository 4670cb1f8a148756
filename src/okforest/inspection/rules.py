"""A tree as text and as rules; its leaves as clusters of training rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from okforest._utils.arrays import Ints
from okforest.inspection.requirements import require_leaf_outputs
from okforest.inspection.tree_view import Condition, TreeView


def export_text(
    model: Any,
    tree: int = 0,
    *,
    feature_names: Sequence[str] | None = None,
    decimals: int = 3,
    max_depth: int | None = None,
    show_prototype: bool = True,
) -> str:
    """Return a tree as indented text.

    Each line is a branch with its condition. A branch that ends in a leaf shows the leaf's number
    (as returned by ``apply``), the number of training rows in it, the variance of their outputs in
    the kernel's feature space H, and the output nearest to their mean in H. If a feature had
    missing values in training, its condition ends with "or missing" in the branch that they follow.

    Trees of an OKBoost are fitted to residuals: their leaves show the variance of the residuals,
    and no output.

    Parameters
    ----------
    model : estimator
        A fitted tree or forest, or an OKBoost with ``base="tree"``.
    tree : int, default=0
        Which tree of a forest, or which round of an OKBoost, counted from 0.
    feature_names : sequence of str, optional
        Names of the features; by default those seen in ``fit``, or x0, x1, …
    decimals : int, default=3
        Maximum number of decimals.
    max_depth : int, optional
        Depth at which branches are cut; the leaves below are counted.
    show_prototype : bool, default=True
        Whether to show an output in each leaf, if the model has been fitted with y.

    Returns
    -------
    text : str
        One line per branch.

    See Also
    --------
    plot_tree : The same as a figure.
    leaf_rules : The path to each leaf as one rule.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from okforest import OKTree
    >>> from okforest.inspection import export_text
    >>> iris = load_iris()
    >>> tree = OKTree(kernel="dirac", max_depth=2, random_state=0)
    >>> tree = tree.fit(iris.data, iris.target_names[iris.target])
    >>> print(export_text(tree, feature_names=iris.feature_names))
    ├─ petal width (cm) ≤ 0.8 → leaf 1, n = 50, variance 0, output 'setosa'
    └─ petal width (cm) > 0.8
       ├─ petal width (cm) ≤ 1.75 → leaf 3, n = 54, variance 0.168, output 'versicolor'
       └─ petal width (cm) > 1.75 → leaf 4, n = 46, variance 0.043, output 'virginica'
    """
    view = TreeView(model, tree, feature_names, decimals)
    lines = []
    margins = {0: ""}  # the text before the branches below each node
    for node in view.walk(max_depth):
        texts = ", ".join(view.describe(node.number, show_prototype)) if node.is_end else ""
        if node.depth == 0:
            lines += [texts] if node.is_end else []
            continue
        margin = margins[node.parent]
        margins[node.number] = margin + ("│  " if node.is_left else "   ")
        corner = "├─" if node.is_left else "└─"
        arrow = " → " if node.is_end else ""
        lines.append(f"{margin}{corner} {view.condition(node.parent, node.is_left)}{arrow}{texts}")
    return "\n".join(lines)


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


@dataclass(frozen=True, eq=False)
class Cluster:
    """The training rows in a leaf.

    Parameters
    ----------
    leaf : int
        The leaf's number, as returned by ``apply``.
    members : ndarray of int32
        The training rows in the leaf, without repetition, in ascending order.
    prototype : int
        The member whose output is nearest to the leaf's mean in the kernel's feature space H.
    rule : Rule
        The rule that the members' inputs satisfy.
    variance : float
        The variance of the members' outputs in H.

    Examples
    --------
    >>> from okforest import OKTree
    >>> from okforest.inspection import leaf_clusters
    >>> tree = OKTree().fit([[0], [0], [1]], [1.0, 3.0, 5.0])
    >>> cluster = leaf_clusters(tree)[0]
    >>> cluster.members, cluster.prototype, cluster.variance
    (array([0, 1], dtype=int32), 0, 1.0)
    """

    leaf: int
    members: Ints
    prototype: int
    rule: Rule
    variance: float


def leaf_clusters(
    model: Any,
    tree: int = 0,
    *,
    feature_names: Sequence[str] | None = None,
    decimals: int = 3,
) -> list[Cluster]:
    """Return the training rows in each leaf of a tree, from left to right.

    The clusters are a partition of the rows that the tree was fitted to: all rows, or with
    bootstrap the rows drawn for the tree.

    Parameters
    ----------
    model : estimator
        A fitted tree or forest. Trees of an OKBoost are refused: they group rows by residuals, not
        by outputs.
    tree : int, default=0
        Which tree of a forest, counted from 0.
    feature_names : sequence of str, optional
        Names of the features in rules; by default those seen in ``fit``, or x0, x1, …
    decimals : int, default=3
        Maximum number of decimals in the text of rules.

    Returns
    -------
    clusters : list of Cluster
        One for each leaf.

    See Also
    --------
    leaf_rules : The rules alone, also for an OKBoost.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from okforest import OKTree
    >>> from okforest.inspection import leaf_clusters
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> tree = OKTree(kernel="dirac", max_depth=2, random_state=0).fit(X, y)
    >>> for cluster in leaf_clusters(tree):
    ...     print(f"{len(cluster.members)} like {cluster.prototype}: {cluster.rule}")
    50 like 0: petal width (cm) ≤ 0.8
    54 like 50: 0.8 < petal width (cm) ≤ 1.75
    46 like 100: petal width (cm) > 1.75
    """
    view = TreeView(model, tree)
    require_leaf_outputs(model, "leaf_clusters")
    return [
        Cluster(rule.leaf, view.rows(rule.leaf), view.prototype(rule.leaf), rule, rule.variance)
        for rule in leaf_rules(model, tree, feature_names=feature_names, decimals=decimals)
    ]
