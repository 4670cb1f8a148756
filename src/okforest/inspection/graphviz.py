"""A tree as Graphviz source."""

from collections.abc import Sequence
from typing import Any

from okforest._plotting import LINE, shade
from okforest.inspection._tree_view import Node, TreeView


def export_graphviz(
    model: Any,
    tree: int = 0,
    *,
    feature_names: Sequence[str] | None = None,
    decimals: int = 3,
    max_depth: int | None = None,
    filled: bool = True,
) -> str:
    r"""Return a tree as DOT source, for Graphviz and other tools that read it.

    Inputs that satisfy the condition in a node go left. Leaves show the same as in
    :func:`export_text`.

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
    filled : bool, default=True
        Whether to colour nodes: darker blue means lower variance.

    Returns
    -------
    dot : str
        DOT source; ``dot -Tsvg`` renders it.

    See Also
    --------
    plot_tree : The same as a matplotlib figure.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from okforest import OKTree
    >>> from okforest.inspection import export_graphviz
    >>> X, y = load_diabetes(return_X_y=True, scaled=False)
    >>> tree = OKTree(max_depth=1, random_state=0).fit(X, y)
    >>> print(export_graphviz(tree, decimals=1, filled=False))
    digraph tree {
      node [shape=box, style="rounded", color="#5b6770", fontname="sans-serif"];
      edge [color="#5b6770", fontname="sans-serif"];
      0 [label="x8 ≤ 4.6"];
      1 [label="leaf 1\nn = 218\nvariance 3240.8\noutput 110"];
      0 -> 1 [label="yes"];
      2 [label="leaf 2\nn = 224\nvariance 5135.6\noutput 192"];
      0 -> 2 [label="no"];
    }
    """
    view = TreeView(model, tree, feature_names, decimals)
    style = '"rounded,filled"' if filled else '"rounded"'
    lines = [
        "digraph tree {",
        f'  node [shape=box, style={style}, color="{LINE}", fontname="sans-serif"];',
        f'  edge [color="{LINE}", fontname="sans-serif"];',
    ]
    for node in view.walk(max_depth):
        lines.append(f"  {node.number} [{_attributes(view, node, filled)}];")
        if node.depth > 0:
            answer = f' [label="{"yes" if node.is_left else "no"}"]' if node.depth == 1 else ""
            lines.append(f"  {node.parent} -> {node.number}{answer};")
    return "\n".join([*lines, "}"])


def _attributes(view: TreeView, node: Node, filled: bool) -> str:
    condition = None if node.is_end else view.condition(node.number, is_left=True)
    texts = view.describe(node.number) if condition is None else [str(condition)]
    label = "\\n".join(map(_escape, texts))
    attributes = f'label="{label}"'
    if filled:
        attributes += f', fillcolor="{shade(view.purity(node.number))}"'
    return attributes


def _escape(text: str) -> str:
    """Escape the special characters of a quoted DOT string."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
