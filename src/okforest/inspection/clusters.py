"""Leaves as clusters of training objects."""

from dataclasses import dataclass
from typing import Any

from okforest._typing import Ints
from okforest.inspection._reading import Reading, check_outputs
from okforest.inspection.rules import Rule, leaf_rules


@dataclass(frozen=True, eq=False)
class Cluster:
    """The training objects in a leaf.

    Parameters
    ----------
    leaf : int
        The leaf's number, as ``apply`` has it.
    members : ndarray of int32
        The training rows in the leaf, each once, in their order.
    prototype : int
        The member whose output is nearest to the leaf's mean in H.
    rule : Rule
        What the members' inputs have in common.
    variance : float
        The variance of the members' outputs in H.
    """

    leaf: int
    members: Ints
    prototype: int
    rule: Rule
    variance: float


def leaf_clusters(model: Any, tree: int = 0) -> list[Cluster]:
    """Return which training objects share a leaf of a tree, from left to right.

    The clusters of a tree grown on all rows are a partition of these; of a tree grown on drawn
    rows, a partition of the rows drawn.

    Parameters
    ----------
    model : estimator
        A fitted tree or forest of okforest.
    tree : int, default=0
        Which tree of a forest.

    Returns
    -------
    clusters : list of Cluster
        One for each leaf.

    See Also
    --------
    leaf_rules : The rules alone, with names of one's choice.

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
    reading = Reading(model, tree)
    check_outputs(model, "a prototype")
    return [
        Cluster(
            rule.leaf, reading.rows(rule.leaf), reading.prototype(rule.leaf), rule, rule.variance
        )
        for rule in leaf_rules(model, tree)
    ]
