"""A tree in the language of Graphviz."""

from collections.abc import Sequence
from typing import Any

from okforest.inspection._colours import LINE, shade
from okforest.inspection._reading import Reading, Stop


def export_graphviz(
    model: Any,
    tree: int = 0,
    *,
    feature_names: Sequence[str] | None = None,
    decimals: int = 3,
    max_depth: int | None = None,
    filled: bool = True,
) -> str:
    r"""Return a tree as DOT source, for Graphviz and the many tools that read it.

    The left branch is taken where the test holds. Where a missing value goes is said only of
    tests that ask for nothing else.

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
    filled : bool, default=True
        Whether nodes are the bluer, the smaller the variance of their outputs.

    Returns
    -------
    dot : str
        DOT source; ``dot -Tsvg`` draws it.

    See Also
    --------
    plot_tree : A drawing by matplotlib.

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
    reading = Reading(model, tree, feature_names, decimals)
    style = '"rounded,filled"' if filled else '"rounded"'
    lines = [
        "digraph tree {",
        f'  node [shape=box, style={style}, color="{LINE}", fontname="sans-serif"];',
        f'  edge [color="{LINE}", fontname="sans-serif"];',
    ]
    for stop in reading.walk(max_depth):
        lines.append(f"  {stop.node} [{_attributes(reading, stop, filled)}];")
        if stop.depth > 0:
            answer = f' [label="{"yes" if stop.is_left else "no"}"]' if stop.depth == 1 else ""
            lines.append(f"  {stop.parent} -> {stop.node}{answer};")
    return "\n".join([*lines, "}"])


def _attributes(reading: Reading, stop: Stop, filled: bool) -> str:
    words = reading.facts(stop.node) if stop.is_end else [str(reading.test(stop.node))]
    label = "\\n".join(map(_escape, words))
    attributes = f'label="{label}"'
    if filled:
        attributes += f', fillcolor="{shade(reading.purity(stop.node))}"'
    return attributes


def _escape(text: str) -> str:
    """Escape what has a meaning in a quoted string of DOT."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
