"""Leaves as clusters of training rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from okforest._typing import Ints
from okforest.inspection._requirements import require_leaf_outputs
from okforest.inspection._tree_view import TreeView
from okforest.inspection.rules import Rule, leaf_rules


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
