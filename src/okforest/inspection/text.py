"""A tree as indented text."""

from collections.abc import Sequence
from typing import Any

from okforest.inspection._reading import Reading


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

    A line is a branch. At its leaf it says the leaf's number (as ``apply`` has it), how many
    training rows are in it, the variance of their outputs in H, and the output nearest to their
    mean in H. Where a missing value goes is said only of tests that ask for nothing else.

    Parameters
    ----------
    model : estimator
        A fitted tree or forest of okforest.
    tree : int, default=0
        Which tree of a forest.
    feature_names : sequence of str, optional
        Names of the features; by default those seen in fitting, or x0, x1, …
    decimals : int, default=3
        Most decimals of a number.
    max_depth : int, optional
        Depth below which leaves are only counted.
    show_prototype : bool, default=True
        Whether to show an output at each leaf; without y, none is.

    Returns
    -------
    text : str
        One line per branch.

    See Also
    --------
    plot_tree : The same as a drawing.
    leaf_rules : The way to each leaf, as one rule.

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
    reading = Reading(model, tree, feature_names, decimals)
    lines = []
    margins = {0: ""}  # what stands before the branches below a node
    for stop in reading.walk(max_depth):
        facts = ", ".join(reading.facts(stop.node, show_prototype)) if stop.is_end else ""
        if stop.depth == 0:
            lines += [facts] if stop.is_end else []
            continue
        margin = margins[stop.parent]
        margins[stop.node] = margin + ("│  " if stop.is_left else "   ")
        corner = "├─" if stop.is_left else "└─"
        arrow = " → " if stop.is_end else ""
        lines.append(f"{margin}{corner} {reading.branch(stop.parent, stop.is_left)}{arrow}{facts}")
    return "\n".join(lines)
