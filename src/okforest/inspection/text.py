"""A tree as indented text."""

from collections.abc import Sequence
from typing import Any

from okforest.inspection._tree_view import TreeView


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
