"""A tree as a matplotlib figure, and as Graphviz source."""

import textwrap
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from okforest._utils.plotting import LINE, NEUTRAL, new_axes, shade
from okforest.inspection.requirements import require_leaf_outputs
from okforest.inspection.tree_view import Node, TreeView

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text


def node_positions(nodes: Iterable[Node]) -> dict[int, tuple[float, int]]:
    """Return the column and row of each node.

    Ends are in columns 0, 1, …, from left to right; parents are centred above their children; the
    root is in row 0. Edges therefore never cross.
    """
    nodes = list(nodes)
    columns: dict[int, float] = {}
    for node in nodes:
        if node.is_end:
            columns[node.number] = float(len(columns))
    children: dict[int, list[int]] = {}
    for node in nodes:
        children.setdefault(node.parent, []).append(node.number)
    for node in reversed(nodes):  # children before their parent
        if not node.is_end:
            left, right = children[node.number]
            columns[node.number] = (columns[left] + columns[right]) / 2
    return {node.number: (columns[node.number], node.depth) for node in nodes}


LINE_LENGTH = 18  # characters after which the condition in a box is wrapped
MAX_FONT, MIN_FONT = 10.0, 3.0
PAD, GAP = 0.5, 0.2  # padding of a text in its box and gap around the box, in font sizes
MAX_FIGURE_INCHES = 60.0

# In units of a row's height, from its middle: the maximum height of a box; if a leaf's output is
# drawn, the middle of its box and the position of the output.
BOX_HEIGHT = 0.72
BOX_HEIGHT_OVER_OUTPUT = 0.4
BOX_RISE = 0.25
OUTPUT_BOTTOM, OUTPUT_HEIGHT, OUTPUT_WIDTH = -0.41, 0.44, 0.84


def plot_tree(
    model: Any,
    tree: int = 0,
    *,
    ax: "Axes | None" = None,
    max_depth: int | None = None,
    feature_names: Sequence[str] | None = None,
    decimals: int = 3,
    draw_output: Callable[["Axes", Any], object] | None = None,
) -> "Axes":
    """Plot a tree.

    A split shows a condition; inputs that satisfy it go left. A leaf shows its number (as returned
    by ``apply``), the number of training rows in it, the variance of their outputs in the kernel's
    feature space H, and the output nearest to their mean in H. Darker blue means lower variance. If
    a feature had missing values in training, a condition ends with "or missing" if they go left.

    Trees of an OKBoost are fitted to residuals: their leaves show the variance of the residuals,
    and no output.

    Parameters
    ----------
    model : estimator
        A fitted tree or forest, or an OKBoost with ``base="tree"``.
    tree : int, default=0
        Which tree of a forest, or which round of an OKBoost, counted from 0.
    ax : matplotlib Axes, optional
        Axes to plot on; by default the axes of a new figure, large enough for the tree.
    max_depth : int, optional
        Depth at which branches are cut; the leaves below are counted. Large trees are legible only
        if they are cut.
    feature_names : sequence of str, optional
        Names of the features; by default those seen in ``fit``, or x0, x1, …
    decimals : int, default=3
        Maximum number of decimals.
    draw_output : callable, optional
        A function ``draw_output(ax, output)`` that draws an output, such as an image or a curve, on
        small axes. The output of each leaf is then drawn instead of being written.

    Returns
    -------
    ax : matplotlib Axes
        The axes.

    See Also
    --------
    export_text : The same as text.
    export_graphviz : The same for Graphviz.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from okforest import OKTree
    >>> from okforest.inspection import plot_tree
    >>> digits = load_digits().data
    >>> tree = OKTree(kernel="rbf", max_depth=3).fit(digits[:300, :32], digits[:300, 32:])
    >>> def draw(ax, output):
    ...     ax.imshow(output.reshape(4, 8), cmap="gray_r")
    >>> ax = plot_tree(tree, draw_output=draw)
    """
    view = TreeView(model, tree, feature_names, decimals)
    if draw_output is not None:
        _check_draw_output(model, draw_output)
    nodes = list(view.walk(max_depth))
    positions = node_positions(nodes)
    n_columns = sum(node.is_end for node in nodes)
    n_rows = 1 + max(node.depth for node in nodes)
    row_inches = 1.1 if draw_output is None else 1.6
    figsize = (max(5.0, 1.5 * n_columns), max(1.0, row_inches * n_rows))
    ax = new_axes(ax, (min(figsize[0], MAX_FIGURE_INCHES), min(figsize[1], MAX_FIGURE_INCHES)))
    ax.set_axis_off()
    ax.set_xlim(-0.5, n_columns - 0.5)
    ax.set_ylim(0.5 - n_rows, 0.5 if n_rows == 1 else 0.4)  # row r is at height -r

    boxes = []
    for node in nodes:
        column, row = positions[node.number]
        drawn = draw_output is not None and view.is_leaf(node.number)
        height = -row + BOX_RISE if drawn else float(-row)
        if node.depth > 0:
            _draw_edge(ax, positions[node.parent], column, height, node)
        boxes.append(_draw_box(ax, column, height, view, node, not drawn))
        if draw_output is not None and drawn:
            output = model.outputs_[view.prototype(node.number)]
            _draw_inset(ax, column, row, draw_output, output)
    _fit_font(ax, boxes, BOX_HEIGHT if draw_output is None else BOX_HEIGHT_OVER_OUTPUT)
    return ax


def _check_draw_output(model: Any, draw_output: Any) -> None:
    if not callable(draw_output):
        raise TypeError(
            f"draw_output is of type {type(draw_output).__name__}; expected a function "
            "draw_output(ax, output)."
        )
    require_leaf_outputs(model, "draw_output")


def _draw_box(
    ax: "Axes", x: float, y: float, view: TreeView, node: Node, show_prototype: bool
) -> "Text":
    if node.is_end:
        text = "\n".join(view.describe(node.number, show_prototype))
    else:
        # Non-breaking spaces keep a sign and its number on one line.
        condition = str(view.condition(node.number, is_left=True))
        condition = condition.replace("≤ ", "≤\xa0").replace("in {", "in\xa0{")
        text = textwrap.fill(condition, LINE_LENGTH, break_long_words=False, break_on_hyphens=False)
    return ax.text(
        x,
        y,
        text,
        ha="center",
        va="center",
        fontsize=MAX_FONT,
        linespacing=1.25,
        parse_math=False,  # a name may have a dollar sign
        zorder=2,
        in_layout=False,  # otherwise a layout engine shrinks the axes to make room for it
        bbox={
            "boxstyle": f"round,pad={PAD},rounding_size=0.3",
            "facecolor": shade(view.purity(node.number)) if view.has_variance else NEUTRAL,
            "edgecolor": LINE,
            "linewidth": 0.8,
        },
    )


def _draw_edge(ax: "Axes", parent: tuple[float, int], x: float, y: float, node: Node) -> None:
    """Draw an edge down, across and down; its horizontal part is between rows, clear of boxes."""
    parent_x, row = parent
    middle = -row - 0.5
    ax.plot([parent_x, parent_x, x, x], [-row, middle, middle, y], color=LINE, lw=0.9, zorder=1)
    if node.depth == 1:
        ax.text(
            (parent_x + x) / 2,
            middle,
            "yes" if node.is_left else "no",
            ha="center",
            va="center",
            fontsize=MAX_FONT - 1,
            color=LINE,
            bbox={"facecolor": ax.figure.get_facecolor(), "edgecolor": "none", "pad": 1.5},
        )


def _draw_inset(
    ax: "Axes", column: float, row: int, draw: Callable[["Axes", Any], object], output: Any
) -> None:
    bounds = (column - OUTPUT_WIDTH / 2, -row + OUTPUT_BOTTOM, OUTPUT_WIDTH, OUTPUT_HEIGHT)
    inset = ax.inset_axes(bounds, transform=ax.transData, zorder=3)
    draw(inset, output)
    inset.set_anchor("N")
    inset.set_xticks([])
    inset.set_yticks([])
    for spine in inset.spines.values():
        spine.set(color=LINE, linewidth=0.8)


def _fit_font(ax: "Axes", boxes: list["Text"], box_height: float) -> None:
    """Shrink the font of all boxes until they fit into their rows without overlapping."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # lets a layout engine give the axes their final size
    font = MAX_FONT
    for _ in range(4):  # widths are not quite proportional to the font size: glyphs are hinted
        room = _room(ax, boxes, box_height, 2 * (PAD + GAP) * font * figure.dpi / 72)
        if room >= 1.0 or font <= MIN_FONT:
            break
        font = max(MIN_FONT, font * room)
        for box in boxes:
            box.set_fontsize(font)


def _room(ax: "Axes", boxes: list["Text"], box_height: float, margin: float) -> float:
    """Return the factor by which boxes could grow; ``margin`` is around their texts, in pixels."""
    zero, one = ax.transData.transform([(0.0, 0.0), (1.0, 1.0)])
    column, row = one - zero
    left, right = ax.get_xlim()
    extents = [box.get_window_extent() for box in boxes]
    rooms = [row * box_height / (extent.height + margin) for extent in extents]
    by_row: dict[int, list[tuple[float, float]]] = {}
    for box, extent in zip(boxes, extents, strict=True):
        x, y = box.get_position()
        by_row.setdefault(round(y), []).append((x, extent.width + margin))
    for in_row in by_row.values():
        in_row.sort()
        for (x, width), (next_x, next_width) in pairwise(in_row):
            rooms.append(2 * column * (next_x - x) / (width + next_width))
        for x, width in (in_row[0], in_row[-1]):
            rooms.append(2 * column * min(x - left, right - x) / width)
    return float(min(rooms))


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
